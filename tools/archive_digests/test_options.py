"""Suite `options` of the digests: one small net with each option of an export and of a target that changes archives."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import ModelExport
from t2n_core.nnef.options.precision import PlanEntry, PrecisionPlan


class Net(nn.Module):
    """Convolutions, norms, attention, resizing, a recurrent net: what the options are about."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv1d(8, 32, 3), nn.BatchNorm1d(32)
        self.query, self.key = nn.Linear(32, 32), nn.Linear(32, 32)
        self.layer_norm, self.rnn = nn.LayerNorm(32), nn.GRU(32, 16, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        wide = self.norm(self.conv(x))
        query, key = (part(wide.mT).unflatten(-1, (4, 8)).transpose(1, 2) for part in (self.query, self.key))
        mixed = F.scaled_dot_product_attention(query, key, key).transpose(1, 2).flatten(2)
        output, _ = self.rnn(self.layer_norm(mixed))
        return F.interpolate(output.mT, scale_factor=2.0), self.encode(wide)

    def encode(self, x: Tensor) -> Tensor:
        return torch.relu(x).mean(-1)


class Causal(nn.Module):
    """Convolutions that a stream can run."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(8, 5, 3), nn.ReLU(), nn.Conv1d(5, 4, 2))

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.layers(x)
        return output


class Counter(nn.Module):
    """Sums one state and grows another."""

    def forward(self, x: Tensor, total: Tensor, seen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        seen = torch.cat([seen, x], dim=1)
        return seen.mean(1), total + x.sum(1), seen


FRAGMENT = "fragment own(x: tensor<scalar>) -> (y: tensor<scalar>)\n{\n  y = relu(x) * 2.0;\n}"
PLAN = PrecisionPlan(entries=(PlanEntry("float32", modules=("rnn",)),), accumulation="float32")
LENGTHS = {"x": {2: "T"}}
NETS: dict[str, tuple[type[nn.Module], tuple[int, ...]]] = {"net": (Net, (2, 8, 21)), "causal": (Causal, (1, 8, 21))}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "feature_flags": {"registries": [], "feature_flags": ["transformers"], "reify_sdpa_operator": True},
    "registries": {"registries": [], "reify_sdpa_operator": True},
    "specific_properties": {"specific_properties": {"author": "someone"}},
    "reify_sdpa_operator": {"reify_sdpa_operator": True},
    "upsample_with_debox": {"upsample_with_debox": True},
    "keep_nan": {"keep_nan": True},
    "weights float16": {"weights": "float16"},
    "weights by layer": {"weights": {"rnn*": "float32", "query": "q4_0", "*": "int8"}},
    "precision": {"precision": PLAN},
    "custom_extensions": {"custom_extensions": ["tract_assert T <= 64"], "dynamic_axes": LENGTHS},
    "custom_fragments": {"custom_fragments": [FRAGMENT]},
    "dynamic_axes": {"dynamic_axes": LENGTHS},
    "input_names": {"input_names": ["signal"]},
    "output_names": {"output_names": ["found", "mean"]},
    "fn_name": {"fn_name": "encode"},
    "capture": {"capture": "trace"},
    "raw names": {"nnef_variable_naming_scheme": "raw"},
    "numeric names": {"nnef_variable_naming_scheme": "numeric"},
}
"""Options of the net in float32."""
IN_FLOAT32 = [
    "force_attention_inner_in_f32", "force_linear_accumulation_in_f32", "force_norm_in_f32",
]  # fmt: skip
"""Options of the net in float16, alone and together."""
_OF_EXPORT = ("dynamic_axes", "input_names", "output_names", "fn_name", "capture", "nnef_variable_naming_scheme")


def cell(name: str, target: str = "tract", **options: Any) -> Any:
    """Return a parameter whose cells have these options of the target."""
    return pytest.param(name, id=name.replace(" ", "-"), marks=pytest.mark.nnef_export(target=target, **options))


def of_target(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in _OF_EXPORT}


@lru_cache(maxsize=1)
def export_of(net: str, name: str, dtype: torch.dtype = torch.float32) -> ModelExport:
    torch.manual_seed(11)
    make, shape = NETS[net]
    options = {key: value for key, value in OPTIONS.get(name, {}).items() if key in _OF_EXPORT}
    return ModelExport(make().eval().to(dtype), (torch.randn(shape, dtype=dtype),), **options)


@pytest.mark.parametrize("name", [cell(name, **of_target(options)) for name, options in OPTIONS.items()])
def test_option(name: str, nnef_export: Any) -> None:
    nnef_export(export_of("net", name))


FLOAT16: dict[str, dict[str, Any]] = {name: {name: True} for name in IN_FLOAT32}
FLOAT16 |= {"none": {}, "all": dict.fromkeys(IN_FLOAT32, True)}


@pytest.mark.parametrize("name", [cell(name, reify_sdpa_operator=True, **of) for name, of in FLOAT16.items()])
def test_option_in_float16(name: str, nnef_export: Any) -> None:
    nnef_export(export_of("net", name, torch.float16))


@pytest.mark.parametrize("pulse", [cell("4", pulse=4)])
def test_pulse(pulse: str, nnef_export: Any) -> None:
    nnef_export(export_of("causal", "dynamic_axes"))


@pytest.mark.nnef_export(target="tract")
def test_state(nnef_export: Any) -> None:
    torch.manual_seed(12)
    args = torch.randn(2, 3, 5), torch.randn(2, 5), torch.randn(2, 4, 5)
    nnef_export(ModelExport(Counter().eval(), args, state={"total": 1, "seen": 2}))


@pytest.mark.nnef_export(target="khronos")
@pytest.mark.parametrize("net", list(NETS))
def test_in_the_standard(net: str, nnef_export: Any) -> None:
    nnef_export(export_of(net, "plain"))


class Draw(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.bernoulli(torch.sigmoid(x))


@pytest.mark.nnef_export(target=["tract", "khronos"])
def test_refused(nnef_export: Any) -> None:
    nnef_export(Draw().eval(), torch.randn(2, 3))
