"""Assertions on values of tensors are left out of a capture, and other control flow is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from t2n_core.errors import DataDependentError
from t2n_core.torch_graph.capture.tracer import TorchModuleTracer


def plain(x: torch.Tensor) -> None:
    assert (x.abs() >= 0).all()


def with_message(x: torch.Tensor) -> None:
    assert torch.isfinite(x).all(), f"not finite: {x.shape}"


def of_several_conditions(x: torch.Tensor) -> None:
    assert x.dim() == 2 and (x < 99).all() and not torch.isnan(x).any()  # noqa: PT018


def by_a_function(x: torch.Tensor) -> None:
    torch._assert((x < 99).all(), "too large")


class Asserting(torch.nn.Module):
    def __init__(self, check: Callable[[torch.Tensor], None]) -> None:
        super().__init__()
        self.check = check

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.check(x)
        return x * 2


def captured(check: Callable[[torch.Tensor], None]) -> tuple[str, ...]:
    axes = {"x": {0: "B"}}
    return TorchModuleTracer(Asserting(check), args=(torch.randn(3, 5),), dynamic_axes=axes).trace().graph.assertions


@pytest.mark.parametrize("check", [plain, with_message, of_several_conditions, by_a_function])
def test_assertions_are_left_out(check: Callable[[torch.Tensor], None]) -> None:
    (line,) = captured(check)
    assert line.startswith(f"{__file__}:{check.__code__.co_firstlineno + 1}: `")


def raising(x: torch.Tensor) -> None:
    if not (x < 99).all():
        raise AssertionError


def choosing(x: torch.Tensor) -> None:
    assert (1 if (x > 0).any() else 2) > 0


@pytest.mark.parametrize("check", [raising, choosing])
def test_other_control_flow_is_refused(check: Callable[[torch.Tensor], None]) -> None:
    with pytest.raises(DataDependentError, match="control flow that depends on values"):
        captured(check)
