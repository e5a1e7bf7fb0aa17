"""Options that had no effect are told: once, in a warning, and in the result."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF, rewriter
from t2n_core.errors import OptionWarning, RewriteWarning
from tests.contract.options.exports import Attention, exported
from tests.releases import NEWEST

FRAGMENTS = [
    f"fragment {name}(x: tensor<scalar>) -> (y: tensor<scalar>)\n{{\n    y = x * 2.0;\n}}" for name in ("one", "two")
]
QUERY = torch.randn(1, 2, 3, 4)


class Masked(nn.Module):
    """Attention with a mask that is computed."""

    def forward(self, x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(x, x, x, attn_mask=x @ x.mT > 0)


class Mixed(nn.Module):
    """A convolution, a recurrent net and an embedding beside a layer that is compressed."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.line = nn.Embedding(7, 32), nn.Linear(32, 4)
        self.conv, self.rnn = nn.Conv1d(4, 4, 3), nn.GRU(4, 8)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.rnn(self.conv(self.line(self.words(tokens)).mT).mT)[0]


CONV, TOKENS = nn.Conv1d(32, 32, 3), torch.zeros(2, 5, dtype=torch.int64)
NO_OPERATOR = "reify_sdpa_operator had no effect: no attention of the model can be written as that operator"
CASES: dict[str, tuple[nn.Module, Any, dict[str, Any], list[str]]] = {
    "no attention": (nn.ReLU(), QUERY, {"reify_sdpa_operator": True}, [NO_OPERATOR]),
    "computed mask": (
        Masked(),
        QUERY,
        {"reify_sdpa_operator": True},
        [f"{NO_OPERATOR}: nothing proves that its mask leaves no query without a key"],
    ),
    "attention": (Attention(), (QUERY, QUERY, QUERY), {"reify_sdpa_operator": True}, []),
    "attention of float32": (
        Attention(),
        (QUERY, QUERY, QUERY),
        {"reify_sdpa_operator": True, "force_attention_inner_in_f32": True},
        ["force_attention_inner_in_f32 had no effect: no float16 attention"],
    ),
    "products of float32": (
        CONV,
        torch.randn(2, 32, 5),
        {"force_linear_accumulation_in_f32": True, "force_norm_in_f32": True},
        [
            "force_linear_accumulation_in_f32 had no effect: the graph has no",
            "force_norm_in_f32 had no effect: the graph",
        ],
    ),
    "products of float16": (nn.Linear(4, 3).half(), QUERY.half(), {"force_linear_accumulation_in_f32": True}, []),
    "upsampling by a half": (
        nn.Upsample(scale_factor=1.5),
        QUERY,
        {"upsample_with_debox": True},
        ["upsample_with_debox had no effect: the model has no nearest upsampling by integer factors"],
    ),
    "upsampling": (nn.Upsample(scale_factor=2), QUERY, {"upsample_with_debox": True}, []),
    "no activation that loses a NaN": (
        nn.Linear(4, 3),
        QUERY,
        {"keep_nan": True},
        ["keep_nan had no effect: the model has no operator in which the engine loses a NaN"],
    ),
    "convolution": (
        CONV,
        torch.randn(2, 32, 5),
        {"weights": {"none": "q4_0"}},
        ["weights had no effect: no weight of two axes or more was chosen that can be stored so"],
    ),
    "some weights": (
        Mixed(),
        TOKENS,
        {"weights": "q4_0"},
        ["weights had a partial effect: `rnn.weight_ih_l0`, `rnn.weight_hh_l0` stay float32: no release"],
    ),
    "embeddings": (nn.Sequential(nn.Embedding(7, 32), nn.Linear(32, 4)), TOKENS, {"weights": "q4_0"}, []),
    "odd embeddings": (
        nn.Sequential(nn.Embedding(7, 33), nn.Linear(33, 32), nn.Linear(32, 4)),
        TOKENS,
        {"weights": "q4_0"},
        ["weights had a partial effect: `0.weight`, `1.weight` stay float32: rows of 33 elements, no multiple of 32"],
    ),
    "fragments": (
        nn.ReLU(),
        QUERY,
        {"custom_fragments": FRAGMENTS},
        ["custom_fragments had no effect: nothing calls `one`", "custom_fragments had no effect: nothing calls `two`"],
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_options_without_effect_are_told_once(name: str, tmp_path: Path) -> None:
    model, args, options, notes = CASES[name]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = exported(model, args, TractNNEF(NEWEST, **options), tmp_path)
    option_warnings = [warning for warning in seen if issubclass(warning.category, OptionWarning)]
    assert len(result.notes) == len(notes)
    assert all(note.startswith(start) for note, start in zip(result.notes, notes, strict=True))
    assert [str(warning.message) for warning in option_warnings] == (["; ".join(result.notes)] if notes else [])
    result.assert_parity("approximate")


def test_a_release_without_the_operator_is_named(tmp_path: Path) -> None:
    target = TractNNEF("0.21.19", reify_sdpa_operator=True, upsample_with_debox=True)
    with pytest.warns(
        OptionWarning, match="tract 0.21.19 has no operator `tract_transformers_sdpa`; available since 0.22.0"
    ):
        result = exported(Attention(), (QUERY, QUERY, QUERY), target, tmp_path)
    assert result.notes[1].startswith("upsample_with_debox had no effect: tract 0.21.19 has no operator `debox`")


def test_a_release_newer_than_the_tables_has_a_note(tmp_path: Path) -> None:
    with pytest.warns(OptionWarning, match=rf"tract 0\.99\.0 is newer .* takes the operators and errata of {NEWEST}"):
        result = ModelExport(nn.ReLU(), QUERY).to(TractNNEF("0.99.0", check_io=False), tmp_path / "net.nnef.tgz")
    assert [note for note in result.notes if "0.99.0" in note]


def test_a_way_of_capture_that_a_graph_has_no_use_for_is_told(tmp_path: Path) -> None:
    for model in (torch.jit.script(nn.ReLU()), torch.export.export(nn.ReLU(), (QUERY,))):
        with pytest.warns(OptionWarning, match="capture='trace' had no effect: .* is already a graph"):
            ModelExport(model, (QUERY,), capture="trace").to(TractNNEF(NEWEST), tmp_path / "m.tgz")


def test_rewriters_that_matched_nothing_are_told(tmp_path: Path) -> None:
    @rewriter.method(nn.Linear, "forward")
    def nothing(ctx: Any, self: nn.Linear, input: Tensor) -> Tensor:
        return ctx.original(input)

    export = ModelExport(nn.ReLU(), (QUERY,), rewriters=[nothing])
    with pytest.warns(RewriteWarning, match="never applied"):
        result = export.to(TractNNEF(NEWEST), tmp_path / "m.tgz")
    (note,) = result.notes
    assert "nothing" in note
    assert "had no effect: the model does not use it" in note


@pytest.mark.parametrize(("axes", "named"), [({0: "B"}, ""), ({2: "H", 3: "W"}, "H, W"), ({0: "B", 3: "W"}, "W")])
def test_convolutions_of_dynamic_images_have_a_note(axes: dict[int, str], named: str, tmp_path: Path) -> None:
    """Their kernels depend on sizes; those of a batch do not."""
    target = TractNNEF(NEWEST, dynamic_axes={"input": axes}, check_io=False)
    notes = ModelExport(nn.Conv2d(3, 4, 3).eval(), torch.randn(2, 3, 7, 9)).to(target, tmp_path / "m").notes
    assert [note.partition(":")[0] for note in notes] == ([f"convolutions over {named}"] if named else [])
