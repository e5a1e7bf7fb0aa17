"""A model that fixes a dynamic size is told which of its lines and operators did it."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from t2n_core import ModelExport, TractNNEF, rewriter
from t2n_core.errors import CaptureError, RangeWarning, UnsupportedOpsError
from t2n_core.rewriter.context import RewriteContext
from tests.nets import OfFunction
from tests.releases import NEWEST


def export_of(function: Callable[[Tensor], Tensor]) -> ModelExport:
    torch.manual_seed(2)
    return ModelExport(OfFunction(function).eval(), torch.randn(2, 7, 4), dynamic_axes={"x": {1: "T"}})


def line_of(function: Callable[[Tensor], Tensor], text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if text in line)


def add_constant(x: Tensor) -> Tensor:
    y = x * 2
    return y + torch.ones(2, 7, 4)  # here


def known_view(x: Tensor) -> Tensor:
    return x.view(2, 28)  # here


def known_reshape(x: Tensor) -> Tensor:
    return x.tanh().reshape(2, 4, 7)  # here


def weight_over_time(x: Tensor) -> Tensor:
    return F.linear(x.transpose(1, 2), torch.ones(3, 7))  # here


def python_loop(x: Tensor) -> Tensor:
    total = x[:, 0]
    for step in range(1, x.shape[1]):  # here
        total = total + x[:, step]
    return total


def as_number(x: Tensor) -> Tensor:
    return x * torch.tensor(x.shape[1].__index__())  # here


@pytest.mark.parametrize(
    ("function", "operator"),
    [
        (add_constant, "aten::add.Tensor"),
        (known_view, "aten::view"),
        (known_reshape, "aten::"),
        (weight_over_time, "aten::linear"),
        (python_loop, "Python code that reads a size"),
        (as_number, "Python code that reads a size"),
    ],
)
def test_capture_names_the_operator_and_the_line(function: Callable[[Tensor], Tensor], operator: str) -> None:
    with pytest.raises(CaptureError) as caught:
        _ = export_of(function).captured
    location = f"{Path(__file__).name}:{line_of(function, '# here')} in {function.__name__}"
    text = str(caught.value)
    assert f"The size is 7 because of {operator}" in text
    assert location in text
    assert (caught.value.op or "").startswith(operator)
    assert "input `x`.shape[1]" in text


def branch(x: Tensor) -> Tensor:
    if x.shape[1] > 5:  # here
        return x * 2
    return x


def even(x: Tensor) -> Tensor:
    return F.pad(x, (0, 0, 0, 1)) if x.shape[1] % 2 else x  # here


def one_step_alike(x: Tensor) -> Tensor:
    if x.shape[1] == 1:
        return x.squeeze(1).unsqueeze(1) * 2
    return x * 2


@pytest.mark.parametrize(("function", "range_"), [(branch, "T >= 6"), (even, "T >= 1, T % 2 == 1")])
def test_a_decision_narrows_the_range_and_names_its_line(function: Callable[[Tensor], Tensor], range_: str) -> None:
    with pytest.warns(RangeWarning, match=f"{Path(__file__).name}:{line_of(function, '# here')}"):
        captured = export_of(function).captured
    assert str(captured.range) == range_
    assert len(captured.decisions) == 1


def test_a_decision_is_dropped_where_both_ways_compute_the_same() -> None:
    captured = export_of(one_step_alike).captured
    assert str(captured.range) == "T >= 1"
    assert not captured.decisions


def float_of_size(x: Tensor) -> Tensor:
    return x * (x.shape[1] * 1.0).__float__()  # here


def test_a_size_that_becomes_a_number_of_python_is_not_free() -> None:
    with pytest.raises(CaptureError, match="the model fixes it to 7") as caught:
        _ = export_of(float_of_size).captured
    assert f"{Path(__file__).name}:{line_of(float_of_size, '# here')}" in str(caught.value)


def needs_three(x: Tensor) -> Tensor:
    return x.unfold(1, 3, 2)


def test_what_pytorch_itself_refuses_narrows_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        captured = export_of(needs_three).captured
    assert str(captured.range) == "T >= 3"


def counts_from_either_end(x: Tensor) -> Tensor:
    return x[:, : x.shape[1] - 5] * 2  # here


def test_a_bound_that_counts_from_the_end_at_some_sizes_narrows_the_range() -> None:
    with pytest.warns(RangeWarning, match="T - 5 >= 0"):
        captured = export_of(counts_from_either_end).captured
    assert str(captured.range) == "T >= 5"


def test_nothing_is_left_behind() -> None:
    symbolic = sys.modules["torch.fx.experimental.symbolic_shapes"]
    before = symbolic.ShapeEnv._log_guard
    with pytest.raises(CaptureError):
        _ = export_of(add_constant).captured
    assert symbolic.ShapeEnv._log_guard is before


def crop(x: Tensor) -> Tensor:
    if x.shape[1] > 64:  # here
        return x[:, :64]
    return x


def declared(function: Callable[[Tensor], Tensor], **bounds: int) -> ModelExport:
    size = torch.export.Dim("T", **bounds)
    return ModelExport(OfFunction(function).eval(), torch.randn(2, 7, 4), dynamic_axes={"x": {1: size}})


def test_a_declared_range_that_crosses_a_decision_is_refused_with_its_line() -> None:
    with pytest.raises(CaptureError, match="T is declared from 1 to 100; the captured graph holds only for") as caught:
        _ = declared(crop, min=1, max=100).captured
    assert f"{Path(__file__).name}:{line_of(crop, '# here')}" in str(caught.value)
    assert "max=64" in (caught.value.hint or "")


def test_a_declared_range_on_one_side_of_a_decision_is_kept() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert str(declared(crop, min=1, max=64).captured.range) == "1 <= T <= 64"


def test_a_declared_range_beyond_what_pytorch_runs_is_refused() -> None:
    with pytest.raises(CaptureError, match="PyTorch itself runs this model only for 3 <= T"):
        _ = declared(needs_three, min=2, max=50).captured


def few_steps_whole(x: Tensor) -> Tensor:
    return x[:, :3] * 2 if x.shape[1] >= 3 else x * 2


def test_a_size_that_capture_knew_from_a_decision_is_not_taken_over_to_its_other_side() -> None:
    with pytest.warns(RangeWarning):
        assert str(export_of(few_steps_whole).captured.range) == "T >= 3"


def halves_of_both(x: Tensor) -> Tensor:
    if (x.shape[0] // 2) * (x.shape[1] // 2) != 0:
        return x * 2
    return x * 3


def test_a_decision_on_two_sizes_raises_their_smallest() -> None:
    torch.manual_seed(2)
    export = ModelExport(OfFunction(halves_of_both).eval(), torch.randn(4, 7, 3), dynamic_axes={"x": {0: "B", 1: "T"}})
    with pytest.warns(RangeWarning):
        assert str(export.captured.range) == "B >= 2, T >= 2"


def even_sizes(x: Tensor) -> Tensor:
    height, width = x.shape[0], x.shape[1]
    if height * width == 4 * (height // 2) * (width // 2):
        return x * 2
    return x * 3


def test_a_decision_on_a_product_of_two_sizes_is_one_on_each() -> None:
    torch.manual_seed(2)
    export = ModelExport(OfFunction(even_sizes).eval(), torch.randn(4, 6, 3), dynamic_axes={"x": {0: "H", 1: "W"}})
    with pytest.warns(RangeWarning):
        assert str(export.captured.range) == "H >= 1, W >= 1, H % 2 == 0, W % 2 == 0"


def test_a_product_is_a_multiple_where_one_of_its_factors_is() -> None:
    def in_pieces(x: Tensor) -> Tensor:
        return x.reshape(5, -1, 5)

    export = ModelExport(OfFunction(in_pieces).eval(), torch.randn(50, 5), dynamic_axes={"x": {0: "H", 1: "W"}})
    assert str(export.captured.range) == "H >= 25, W >= 1, H % 25 == 0"


def test_a_bound_far_away_is_not_tried_out() -> None:
    def limited(x: Tensor) -> Tensor:
        return x * 2 if x.shape[1] < (1 << 20) - 1 else x * 3

    with pytest.warns(RangeWarning):
        assert str(export_of(limited).captured.range) == f"1 <= T <= {(1 << 20) - 2}"


def one_row_apart(x: Tensor) -> tuple[Tensor, Tensor]:
    rows = x[:, : x.shape[1] // 4 * 4].reshape(1, -1, 4, 6)  # after this PyTorch takes the batch for no 1
    return rows, (x if x.shape[0] == 1 else x - x.mean(0, keepdim=True))  # here


def test_a_decision_that_pytorch_takes_to_be_known_is_one() -> None:
    export = ModelExport(OfFunction(one_row_apart).eval(), torch.randn(3, 8, 6), dynamic_axes={"x": {0: "B", 1: "T"}})
    with pytest.warns(RangeWarning, match=f"{Path(__file__).name}:{line_of(one_row_apart, '# here')}"):
        assert str(export.captured.range) == "B >= 2, T >= 1"


def test_a_decomposition_that_decides_by_a_size_is_refused() -> None:
    @rewriter.function(torch.ops.aten.relu.default)
    def first_seven(ctx: RewriteContext, self: Tensor) -> Tensor:
        return torch.clamp(self, min=0)[:, :7]

    export = ModelExport(
        OfFunction(F.relu), torch.randn(2, 7, 4), dynamic_axes={"x": {1: "T"}}, rewriters=[first_seven]
    )
    with pytest.raises(UnsupportedOpsError, match="aten::relu decides by a size"):
        export.lower(TractNNEF(NEWEST))


def test_the_strides_of_a_decomposition_decide_nothing() -> None:
    """PyTorch compares the strides of each result of four axes, to remember its memory format."""
    axes = {"x": {0: "A", 1: "B", 2: "C"}}
    export = ModelExport(OfFunction(lambda x: torch.mode(x, 1)).eval(), torch.randn(3, 5, 4), dynamic_axes=axes)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RangeWarning)
        assert str(export.lower(TractNNEF(NEWEST)).sizes) == "A >= 1, B >= 1, C >= 1"


def several_equations(count: int) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        for grid in (196, 198, 200, 202, 204)[:count]:
            if x.shape[0] * x.shape[1] == grid:
                return x * grid
        return x

    return function


def test_no_more_equations_than_an_archive_states() -> None:
    axes = {"x": {0: "B", 1: "T"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)
        two = ModelExport(OfFunction(several_equations(2)), torch.randn(2, 7, 4), dynamic_axes=axes).captured
    assert str(two.range) == "B >= 1, T >= 1, B*T != 196, B*T != 198"
    with pytest.raises(CaptureError, match="decides by more than 4 equations of sizes"):
        _ = ModelExport(OfFunction(several_equations(5)), torch.randn(2, 7, 4), dynamic_axes=axes).captured
