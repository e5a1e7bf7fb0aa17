"""A model that fixes a dynamic size is told which of its lines and operators did it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.check.outcome import Outcome, Status
from t2n_core.errors import CaptureError


class Net(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def export_of(function: Callable[[Tensor], Tensor]) -> ModelExport:
    torch.manual_seed(2)
    return ModelExport(Net(function).eval(), torch.randn(2, 7, 4), dynamic_axes={"x": {1: "T"}})


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
    return x * torch.tensor(int(x.shape[1]))  # here


@pytest.mark.parametrize(
    ("function", "operator"),
    [
        (add_constant, "aten::add.Tensor"),
        (known_view, "aten::view"),
        (known_reshape, "aten::"),
        (weight_over_time, "aten::linear"),
        (python_loop, "Python code that looks at a size"),
        (as_number, "Python code that looks at a size"),
    ],
)
def test_capture_names_the_operator_and_the_line(function: Callable[[Tensor], Tensor], operator: str) -> None:
    with pytest.raises(CaptureError) as caught:
        _ = export_of(function).captured
    place = f"{Path(__file__).name}:{line_of(function, '# here')} in {function.__name__}"
    text = str(caught.value)
    assert f"The size is 7 because of {operator}" in text
    assert place in text
    assert (caught.value.op or "").startswith(operator)
    assert "input `x`.shape[1]" in text


def branch(x: Tensor) -> Tensor:
    if x.shape[1] > 5:  # here
        return x * 2
    return x


def float_of_size(x: Tensor) -> Tensor:
    return x * float(x.shape[1] * 1.0)  # here


@pytest.mark.parametrize(("function", "failed"), [(branch, [1]), (float_of_size, [1, 11, 17])])
def test_a_check_names_the_line_that_was_decided(
    function: Callable[[Tensor], Tensor], failed: list[int], tmp_path: Path
) -> None:
    """Capture lets these pass; sizes that were not traced do not."""
    outcome: Outcome = export_of(function).to(TractNNEF("0.23.9"), tmp_path / "m.tgz").check_parity()
    assert outcome.status is Status.MISMATCH
    assert [sizes["T"] for sizes in outcome.failed_sizes] == failed
    assert outcome.error is not None
    assert f"{Path(__file__).name}:{line_of(function, '# here')} in {function.__name__}" in outcome.error.source
    assert "the graph holds only where" in outcome.error.hint
    assert "T" in outcome.error.hint
    assert outcome.error.source in outcome.describe()


def test_a_failure_at_the_traced_size_has_another_cause(tmp_path: Path) -> None:
    result = export_of(branch).to(TractNNEF("0.23.9"), tmp_path / "m.tgz")
    for sample in result.export.samples:
        sample.expected[0][0, 0, 0] += 1
    outcome = result.check_parity()
    assert outcome.status is Status.MISMATCH
    assert outcome.error is not None
    assert "the graph holds only where" not in outcome.error.hint


def test_nothing_is_left_behind() -> None:
    symbolic = sys.modules["torch.fx.experimental.symbolic_shapes"]
    before = symbolic.ShapeEnv._log_guard
    with pytest.raises(CaptureError):
        _ = export_of(add_constant).captured
    assert symbolic.ShapeEnv._log_guard is before
