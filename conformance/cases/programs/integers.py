"""Integers and booleans: arithmetic, casts, ranges, numbers without axes, tensors of several dtypes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from conformance.cases.programs.program import Program, numbers, program, wholes


def _two_numbers() -> tuple[Tensor, Tensor]:
    return torch.tensor(-7), torch.tensor(3)


def _booleans() -> tuple[Tensor, Tensor]:
    return torch.tensor([True, False, True, False]), torch.tensor([True, True, False, False])


class _WithConstant(nn.Module):
    """An operation of an input with a constant of another dtype."""

    def __init__(self, operation: str, dtype: torch.dtype) -> None:
        super().__init__()
        self._operation = operation
        self.register_buffer("constant", torch.tensor([2, 5, 1]).to(dtype))

    def forward(self, x: Tensor) -> Tensor:
        return getattr(torch, self._operation)(x, self.constant)


def _with_constant(operation: str, dtype: torch.dtype, inputs: str) -> Program:
    source = {"floats": numbers(4, 3), "wholes": wholes(4, 3)}[inputs]
    return Program(lambda: _WithConstant(operation, dtype), source, in_standard=False)


PROGRAMS: dict[str, Program] = {
    "quotient": program(torch.div, _two_numbers, in_standard=False),
    "quotient_towards_zero": program(
        lambda x, y: torch.div(x, y, rounding_mode="trunc"), _two_numbers, in_standard=False
    ),
    "quotient_downwards": program(lambda x, y: torch.div(x, y, rounding_mode="floor"), _two_numbers, in_standard=False),
    "and": program(lambda x, y: x & y, _booleans),
    "or": program(lambda x, y: x | y, _booleans),
    "not": program(torch.bitwise_not, lambda: _booleans()[:1]),
    "any": program(lambda x: (x > 1).any(1), numbers(4, 5)),
    "all": program(lambda x: (x > -1).all(1), numbers(4, 5)),
    "to_boolean": program(lambda x: x.to(torch.bool), lambda: (torch.tensor([1, 0, -2]),), in_standard=False),
    "to_float": program(lambda x: x.to(torch.float32) / 2, wholes(2, 5), in_standard=False),
    "to_whole": program(lambda x: x.to(torch.int32), lambda: (torch.randn(4, 5) * 9,), in_standard=False),
    "to_unsigned": program(lambda x: x.to(torch.uint8), lambda: (torch.rand(4, 5) * 250,), in_standard=False),
    "prod_of_whole_numbers": program(torch.prod, lambda: (torch.tensor([[3, -2], [5, 7]]),), in_standard=False),
    "sum_of_whole_numbers": program(lambda x: x.sum(1), wholes(3, 5), in_standard=False),
    "numel": program(lambda x: x.sum() + x.numel(), numbers(2, 3, 5)),
    "numel_of_any_length": program(
        lambda x: x.sum() / x.numel(), numbers(2, 5), axes={"x": {1: "T"}}, in_standard=False
    ),
    "range": program(lambda x: x + torch.arange(x.shape[1]), numbers(2, 5), axes={"x": {1: "T"}}, in_standard=False),
    "range_downwards": program(lambda x: x + torch.arange(5, 0, -1), numbers(2, 5)),
    "flattened_whole_numbers": program(lambda x: x.flatten(), wholes(2, 3, 4), in_standard=False),
    "gcd": program(torch.gcd, lambda: (torch.tensor([12, -18, 7]), torch.tensor([8, 27, 0])), in_standard=False),
    **{
        f"{operation}_of_floats_and_{kind}": _with_constant(operation, dtype, "floats")
        for operation in ("add", "mul", "div", "pow", "ge")
        for kind, dtype in (("int32", torch.int32), ("int64", torch.int64))
    },
    **{
        f"{operation}_of_wholes_and_{kind}": _with_constant(operation, dtype, "wholes")
        for operation in ("add", "mul", "sub", "eq")
        for kind, dtype in (("int32", torch.int32), ("float32", torch.float32))
    },
}
