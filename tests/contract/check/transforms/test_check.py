"""Archives after transforms of real engines: faults are seen, and what changes nothing proves nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as F

from t2n_core import ModelExport, TractNNEF, errors
from t2n_core.check.transforms.outcomes import CHANGED, TRANSFORMS
from t2n_core.engine.tract.transforms.table import KNOWN, transforms_of
from t2n_core.errors import InputError
from t2n_core.export.result import ExportResult
from t2n_core.inference_target import KhronosNNEF
from t2n_core.parity.outcome import Outcome, Stage, Status
from tests.releases import NEWEST


class Rope(nn.Module):
    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat([-second, first], -1) * sin


class Decoder(nn.Module):
    """One layer of attention whose caches grow."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = (projection(x).view(1, -1, 2, 8).transpose(1, 2) for projection in (self.query, self.key, self.value))
        keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        return F.scaled_dot_product_attention(q, keys, values).transpose(1, 2).reshape(1, -1, 16), keys, values


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 32))


def convolutions() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=8))


PAST = Dim("P", min=0, max=199)
MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[tuple[int, ...], ...], dict[str, Any], dict[str, Any]]] = {
    "mlp": (mlp, ((3, 64),), {}, {}),
    "batched": (mlp, ((3, 64),), {"dynamic_axes": {"input": {0: "B"}}}, {}),
    "conv": (convolutions, ((2, 3, 9, 11),), {}, {}),
    "gelu": (nn.GELU, ((2, 3),), {}, {}),
    "rope": (Rope, ((2, 4, 5, 8), (5, 8), (5, 8)), {}, {}),
    "attention": (lambda: nn.Softmax(-1), ((2, 3, 7),), {}, {}),
    "gru": (lambda: nn.GRU(6, 8, batch_first=True), ((2, 5, 6),), {}, {}),
    "lstm": (lambda: nn.LSTM(6, 8, batch_first=True), ((2, 5, 6),), {}, {}),
    "decoder": (
        Decoder,
        ((1, 3, 16), (1, 2, 5, 8), (1, 2, 5, 8)),
        {"dynamic_axes": {"x": {1: "S"}, "keys": {2: PAST}, "values": {2: PAST}}},
        {"reify_sdpa_operator": True},
    ),
}


def exported(name: str, version: str, folder: Path) -> ExportResult:
    make, shapes, options, of_target = MODELS[name]
    torch.manual_seed(17)
    model = make().eval()
    inputs = tuple(torch.randn(shape) for shape in shapes)
    return ModelExport(model, inputs, **options).to(TractNNEF(version, **of_target), folder / "model.nnef.tar")


RIGHT = [
    ("mlp", "f32_to_f16", NEWEST),
    ("mlp", "f32_to_f16", "0.22.4"),
    ("mlp", "f32_to_f16", "0.21.19"),
    ("mlp", '{"name": "f32_to_f16", "exclude": ["0"]}', NEWEST),
    ("mlp", '{"name": "float_precision", "from": "f32", "to": "f64"}', NEWEST),
    ("mlp", "block_quant", NEWEST),
    ("mlp", "batchify", NEWEST),
    ("mlp", "round_trip", NEWEST),
    ("mlp", "round_trip", "0.19.15"),
    ("mlp", '{"name": "set_property", "key": "tract.name", "value": "mlp"}', NEWEST),
    ("batched", '{"name": "set_symbols", "values": {"B": 6}}', NEWEST),
    ("conv", "conv_nhwc", NEWEST),
    ("rope", "transformers_detect_all", NEWEST),
    ("rope", "detect_apply_rope", "0.22.4"),
    ("attention", "softmax_fast_compact", "0.22.4"),
    ("lstm", "force_scan_external_state", NEWEST),
    ("decoder", "detect_kv_cache", NEWEST),
    ("decoder", "quantize_kv_storage", NEWEST),
    ("decoder", "quantize_kv_storage_int4", NEWEST),
    ("decoder", '{"name": "select_outputs", "outputs": ["output_0"]}', NEWEST),
]


@pytest.mark.parametrize(("model", "transform", "version"), RIGHT)
def test_what_is_right_passes(model: str, transform: str, version: str, tmp_path: Path) -> None:
    outcome = exported(model, version, tmp_path).check_transform(transform)
    assert outcome.status is Status.PASS, outcome.describe()
    assert (outcome.facts[TRANSFORMS], outcome.facts[CHANGED]) == ([transform], [True])


@pytest.mark.parametrize(
    ("release", "transforms"),
    [
        (NEWEST, ("detect_kv_cache", "unfold_kv_cache", "round_trip")),
        ("0.23.8", ("detect_kv_cache", "fuse_inplace_kv_sdpa")),
    ],
)
def test_several_are_applied_in_turn(release: str, transforms: tuple[str, ...], tmp_path: Path) -> None:
    outcome = exported("decoder", release, tmp_path).assert_transform(*transforms)
    assert outcome.status is Status.PASS, outcome.describe()
    assert outcome.facts[CHANGED] == [True] * len(transforms)


def test_a_transform_of_later_releases_alone(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no transform select_outputs"):
        exported("decoder", "0.23.0", tmp_path).check_transform('{"name": "select_outputs", "outputs": ["output_0"]}')


@pytest.mark.parametrize(
    ("model", "transform", "words"),
    [
        ("mlp", "conv_nhwc", "the transform `conv_nhwc` left the model as it was"),
        ("conv", "block_quant", "the transform `block_quant` left the model as it was"),
        ("rope", "quantize_kv_storage", "did no more than `detect_apply_rope`, `detect_kv_cache`"),
        ("gru", "transformers_detect_all", "left the model as it was"),
        ("gelu", "conv_nhwc", "the engine cannot write this model, to tell whether `conv_nhwc` changed it"),
    ],
)
def test_what_changes_nothing_proves_nothing(model: str, transform: str, words: str, tmp_path: Path) -> None:
    outcome = exported(model, NEWEST, tmp_path).check_transform(transform)
    assert outcome.status is Status.WEAK, outcome.describe()
    assert outcome.facts[CHANGED] == [None if model == "gelu" else False]
    assert outcome.error is not None
    assert words in outcome.error.message


def failure(outcome: Outcome, status: Status, stage: Stage, transform: str) -> str:
    assert (outcome.status, outcome.stage) == (status, stage), outcome.describe()
    assert outcome.error is not None
    assert outcome.error.message.startswith(f"after the transform `{transform}`: ")
    return outcome.describe()


@pytest.mark.parametrize(
    ("model", "transform", "judged_by"),
    [("mlp", "f32_to_f16", {"atol": 1e-6}), ("mlp", "block_quant", {"tolerance": "approximate"})],
)
def test_other_numbers_are_seen(model: str, transform: str, judged_by: dict[str, Any], tmp_path: Path) -> None:
    result = exported(model, NEWEST, tmp_path)
    words = failure(result.check_transform(transform, **judged_by), Status.MISMATCH, Stage.COMPARE, transform)
    assert "without the transform the archive passes" in words
    with pytest.raises(errors.ParityError):
        result.assert_transform(transform, **judged_by)


@pytest.mark.parametrize(
    ("model", "transform"),
    [
        ("gru", "f32_to_f16"),
        ("gelu", "round_trip"),
        ("lstm", "block_quant"),
        ("mlp", '{"name": "select_outputs", "outputs": ["inner"]}'),
    ],
)
def test_a_failure_of_the_engine_is_in_the_outcome(model: str, transform: str, tmp_path: Path) -> None:
    outcome = exported(model, NEWEST, tmp_path).check_transform(transform)
    failure(outcome, Status.ERROR, Stage.OPTIMISE, str(outcome.facts[TRANSFORMS][0]))


@pytest.mark.parametrize(
    ("version", "transform", "words"),
    [
        (NEWEST, "nonsense", "tract has no transform"),
        (NEWEST, "pulse", "check_streaming"),
        ("0.22.4", "conv_nhwc", "it has round_trip, f32_to_f16"),
        ("0.20.22", "f32_to_f16", "other transforms came with 0.21.2"),
    ],
)
def test_unknown_names_are_refused(version: str, transform: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        exported("mlp", version, tmp_path).check_transform(transform)
    assert words in str(refused.value)


def test_only_releases_of_tract_transform(tmp_path: Path) -> None:
    result = ModelExport(mlp().eval(), torch.randn(3, 64)).to(KhronosNNEF(), tmp_path / "model")
    with pytest.raises(InputError, match="has no transforms"):
        result.check_transform("f32_to_f16")


def test_caches_that_cannot_be_empty_are_refused(tmp_path: Path) -> None:
    axes = {"x": {1: "S"}, "keys": {2: "P"}, "values": {2: "P"}}
    inputs = tuple(torch.randn(shape) for shape in MODELS["decoder"][1])
    result = ModelExport(Decoder().eval(), inputs, dynamic_axes=axes).to(TractNNEF(NEWEST), tmp_path / "model.tar")
    with pytest.raises(InputError, match="caches start empty"):
        result.check_transform("detect_kv_cache")


@pytest.mark.parametrize("version", [NEWEST, "0.22.4", "0.21.19"])
def test_the_table_is_what_the_release_accepts(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown name is an error of the library, except of one that a registry brings before 0.23."""
    monkeypatch.setattr("t2n_core.engine.tract.transforms.transform.Transform.require", lambda *_: None)
    monkeypatch.setattr("t2n_core.check.transforms.check.plan_runs", stopped)
    result = exported("mlp", version, tmp_path)
    for name, transform in KNOWN.items():
        if transform.of_registry and version != NEWEST:
            continue
        try:
            outcome = result.check_transform(name)
        except _StoppedError:
            is_known = True
        else:
            is_known = outcome.error is None or "could not be found" not in outcome.error.message
        assert is_known == (name in transforms_of(version)), name


class _StoppedError(Exception):
    """The engine has applied the transform, which is all that is asked."""


def stopped(*_: object) -> None:
    raise _StoppedError


class Written:
    """A transform whose text is sent as it is."""

    entry = KNOWN["f32_to_f16"]
    name = "f32_to_f16"

    def __init__(self, text: str) -> None:
        self.text = text

    def text_for(self, version: str) -> str:
        return self.text


def test_the_library_drops_arguments_in_text(tmp_path: Path, tract_engine: Any) -> None:
    """The reason why such a text is refused."""
    result = exported("mlp", NEWEST, tmp_path)
    inputs = [array.astype("float16") for array in result.samples[0].inputs]
    texts = ('{"name": "f32_to_f16"}', 'f32_to_f16(filter: "!=m0_")', '{"name": "f32_to_f16", "exclude": ["m0_"]}')
    replies = [
        tract_engine(NEWEST).run(result.archive, [inputs], transforms=[Written(text)], scratch=tmp_path)
        for text in texts
    ]
    unfiltered, written, excluding = (reply.outputs[0][0] for reply in replies)
    assert unfiltered.tobytes() == written.tobytes()
    assert unfiltered.tobytes() != excluding.tobytes()
