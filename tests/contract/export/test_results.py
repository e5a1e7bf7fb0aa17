"""A result holds what it was made from: exports of the same model for other targets change nothing in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF, rewriter
from t2n_core.check.mismatch.causes import deciding
from t2n_core.engine import ResolvedEngine
from t2n_core.errors import RangeWarning
from tests.nets import net_of
from tests.releases import NEWEST
from tests.tract_cli import make_cli

OLD, NEW = "0.21.19", NEWEST


class Crop(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:, :5].sum(1)


@rewriter.method(Crop, "forward", target="tract", versions="<0.22")
def masked(ctx: object, self: Crop, x: Tensor) -> Tensor:
    """Return the same, of a mask: a capture of its own, for old releases."""
    return torch.where((torch.arange(x.shape[1]) < 5)[:, None], x, 0.0).sum(1)


class Branch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2.0 if x.shape[1] > 5 else x * 3.0


@rewriter.method(Branch, "forward", target="tract", versions="<0.22")
def no_branch(ctx: object, self: Branch, x: Tensor) -> Tensor:
    return x * 2.0


def sizes_checked(order: list[str], folder: Path) -> dict[str, list[int]]:
    export = ModelExport(Crop().eval(), {"x": torch.randn(2, 7, 3)}, dynamic_axes={"x": {1: "T"}}, rewriters=[masked])
    sizes_by_version = {}
    for version in order:
        outcome = export.to(TractNNEF(version), folder / f"{version}.tar").assert_parity()
        sizes_by_version[version] = [sizes["T"] for sizes in outcome.sizes]
    return sizes_by_version


def test_the_order_of_targets_does_not_matter(tmp_path: Path) -> None:
    forwards, backwards = sizes_checked([OLD, NEW], tmp_path), sizes_checked([NEW, OLD], tmp_path)
    assert forwards == backwards
    assert sizes_checked([NEW], tmp_path)[NEW] == forwards[NEW]


@pytest.mark.filterwarnings("ignore:the archive holds only")
def test_a_result_keeps_its_own_capture(tmp_path: Path) -> None:
    export = ModelExport(Branch().eval(), {"x": torch.randn(2, 7)}, dynamic_axes={"x": {1: "T"}}, rewriters=[no_branch])
    new = export.to(TractNNEF(NEW), tmp_path / "new.tar")
    before = new.captured, [sample.sizes for sample in new.samples]
    old = export.to(TractNNEF(OLD), tmp_path / "old.tar")
    assert (new.captured, [sample.sizes for sample in new.samples]) == before
    assert old.captured is not new.captured
    assert str(new.range) == "T >= 6"
    assert str(old.range) == "T >= 1"


# ------------------------------------------------------------------------------------------------ causes of a mismatch
class Doubled(nn.Module):
    """Decides on its size, and computes the same either way."""

    def forward(self, x: Tensor) -> Tensor:
        return x[None][0] * 2.0 if x.shape[1] == 3 else x * 2.0


@rewriter.method(Doubled, "forward", target="tract", versions="<0.22")
def undecided(ctx: object, self: Doubled, x: Tensor) -> Tensor:
    return x * 2.0


def hint_of(sizes: list[int], engine: ResolvedEngine, folder: Path, **options: Any) -> str:
    """The hint of a check by an engine that is wrong at these sizes of T; it checks at 3 among others."""
    cli = make_cli(folder, engine, spoil=f"if outputs[0].shape[1] in {sizes}: outputs[0] += 1.0")
    inputs = {"x": torch.randn(2, 7)}
    more = [{"x": torch.randn(2, 3)}]
    export = ModelExport(Doubled(), inputs, dynamic_axes={"x": {1: "T"}}, extra_inputs=more, **options)
    result = export.to(TractNNEF(specific_tract_binary_path=cli), folder / "m.tar")
    if options:  # another capture than that of the result
        assert export.captured_for(TractNNEF(OLD)) is not result.captured
    error = result.check_parity().error
    return "" if error is None else error.hint


def test_a_hint_names_the_decision_that_every_failing_size_violates(
    resolved_engine: Callable[[str], ResolvedEngine], tmp_path: Path
) -> None:
    engine = resolved_engine(NEW)
    words = "it fails exactly where this does not hold: T != 3, decided by"
    assert hint_of([3], engine, tmp_path).startswith(words)
    assert "`return x[None][0] * 2.0 if x.shape[1] == 3 else x * 2.0`" in hint_of(
        [3], engine, tmp_path, rewriters=[undecided]
    )
    assert "fails exactly" not in hint_of([3, 1], engine, tmp_path)
    assert "fails exactly" not in hint_of([1], engine, tmp_path)
    assert hint_of([], engine, tmp_path) == ""


@pytest.mark.filterwarnings("ignore:the archive holds only")
def test_a_decision_is_violated_at_each_failing_size_and_at_no_other() -> None:
    decisions = ModelExport(Branch(), {"x": torch.randn(2, 7)}, dynamic_axes={"x": {1: "T"}}).captured.decisions
    (above_five,) = decisions

    def named(failed: list[int], passed: list[int]) -> object:
        return deciding(decisions, [{"T": n} for n in failed], [{"T": n} for n in (*failed, *passed)])

    assert named([3, 5], [6, 7]) is above_five
    assert named([3, 6], [7]) is None
    assert named([3], [5, 7]) is None
    assert named([], [7]) is None


class Softmax(nn.Module):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return (x + torch.where(mask, 0.0, float("-inf"))).softmax(-1)


TRUE, NO_ROW = torch.ones(2, 4, dtype=torch.bool), torch.tensor([[True] * 4, [False] * 4])
NANS: dict[str, tuple[nn.Module, tuple[Tensor, ...], tuple[Tensor, ...], str]] = {
    "masked row": (
        Softmax(),
        (torch.randn(2, 4), TRUE),
        (torch.randn(2, 4), NO_ROW),
        "PyTorch itself computes NaN because of the input `mask`, which has rows that are all False: with the values",
    ),
    "root of negatives": (
        net_of(lambda _, x, weights: torch.sqrt(x) + weights),
        (torch.rand(2, 4), torch.randn(4)),
        (-torch.ones(2, 4), torch.randn(4)),
        "PyTorch itself computes NaN because of the input `x`: with the values of the example in its place",
    ),
    "example": (
        Softmax(),
        (torch.randn(2, 4), NO_ROW),
        (torch.randn(2, 4), TRUE),
        "PyTorch itself computes NaN for the example: its input `mask`, which has rows that are all False",
    ),
}


@pytest.mark.parametrize("name", list(NANS))
def test_nan_of_pytorch_names_the_input_that_led_to_it(
    name: str, resolved_engine: Callable[[str], ResolvedEngine], tmp_path: Path
) -> None:
    model, args, more, words = NANS[name]
    cli = make_cli(tmp_path, resolved_engine(NEW), spoil="outputs[0][outputs[0] != outputs[0]] = 0.5")
    export = ModelExport(model, args, extra_inputs=[more])
    error = export.to(TractNNEF(specific_tract_binary_path=cli), tmp_path / "m.tar").check_parity("ultra").error
    assert error is not None
    assert error.hint.startswith(words)


def test_outputs_are_those_at_the_examples_size_whatever_the_model_returns_at_others(tmp_path: Path) -> None:
    net = net_of(lambda _, x: torch.chunk(x, 2, dim=1))
    export = ModelExport(net, {"x": torch.randn(2, 7)}, dynamic_axes={"x": {1: "T"}})
    with pytest.warns(RangeWarning):
        result = export.to(TractNNEF(NEWEST, check_io=False), tmp_path / "m.tar")
    assert result.output_names == ["output_0", "output_1"]
    result.assert_parity("exact")


def test_nan_that_an_engine_loses_is_no_fault_of_the_graph(tmp_path: Path) -> None:
    net = net_of(lambda _, x: torch.relu(torch.log(x)))
    export = ModelExport(net, {"x": torch.tensor([[-1.0, 3.0, 5.0], [7.0, -2.0, 4.0]])})
    error = export.to(TractNNEF(NEW), tmp_path / "m.tar").check_parity().error
    assert error is not None
    assert error.hint.endswith(
        "an engine need not carry NaN through an operator such as relu, clamp or max: avoid it in the model, or export "
        "for tract with keep_nan=True"
    )
    assert "no level holds" not in error.hint
