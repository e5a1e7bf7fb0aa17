"""Functions of floats: of one tensor, of two and three, reductions, norms, products, changes of shape."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from conformance.cases.programs.program import Program, fractions, numbers, positive, program

_UNARY = {
    "sin": fractions, "cos": fractions, "tan": fractions, "asin": fractions, "acos": fractions, "atan": numbers,
    "sinh": numbers, "cosh": numbers, "tanh": numbers, "asinh": numbers, "atanh": fractions, "exp": numbers,
    "log": positive, "log2": positive, "log10": positive, "sqrt": positive, "rsqrt": positive, "square": numbers,
    "abs": numbers, "neg": numbers, "sign": numbers, "ceil": numbers, "floor": numbers, "round": numbers,
    "reciprocal": positive, "sigmoid": numbers, "relu": numbers,
}  # fmt: skip
_NOT_IN_STANDARD = ("erf", "trunc", "expm1")
_ORDERS = (2, 1, 3, 0.5, -1, -2, float("inf"), float("-inf"), "fro")
_BINARY = ("minimum", "maximum", "sub", "add", "mul", "lt", "eq", "ne", "gt", "le", "ge")


def _two(*shape: int) -> tuple[Tensor, Tensor]:
    return torch.randn(shape), torch.randn(shape)


def _einsum(equation: str, *shapes: tuple[int, ...]) -> Program:
    return program(
        lambda *inputs: torch.einsum(equation, *inputs), lambda: tuple(torch.randn(shape) for shape in shapes)
    )


def _roll(x: Tensor) -> Tensor:
    return torch.roll(x, shifts=(-1, 2), dims=(1, 2))


PROGRAMS: dict[str, Program] = {
    **{name: program(getattr(torch, name), source(3, 5)) for name, source in _UNARY.items()},
    **{name: program(getattr(torch, name), numbers(3, 5), in_standard=False) for name in _NOT_IN_STANDARD},
    "acosh": program(lambda x: torch.acosh(x + 1), positive(3, 5)),
    **{f"power_{p}": program(lambda x, p=p: torch.pow(x, p), positive(3, 5)) for p in (2, -2, -0.5, 0.3)},
    **{f"{name}_like": program(getattr(torch, f"{name}_like"), numbers(3, 5)) for name in ("zeros", "ones")},
    "full_like": program(lambda x: x + torch.full_like(x, 2.5), numbers(3, 5)),
    "clamp": program(lambda x: torch.clamp(x, -0.4, 0.7), numbers(3, 5)),
    "clamp_min": program(lambda x: torch.clamp_min(x, 0.2), numbers(3, 5)),
    "clamp_max": program(lambda x: torch.clamp(x, max=0.2), numbers(3, 5)),
    **{f"norm_{p}": program(lambda x, p=p: torch.norm(x, p, 1, keepdim=True), positive(4, 5, 2)) for p in _ORDERS},
    **{f"{name}_of_two": program(getattr(torch, name), lambda: _two(4, 5)) for name in _BINARY},
    "divided": program(torch.div, lambda: (torch.randn(4, 5), torch.rand(4, 5) + 0.5)),
    "power_of_two": program(torch.pow, lambda: (torch.rand(4, 5) + 0.5, torch.randn(4, 5))),
    "remainder": program(
        torch.remainder, lambda: (torch.randn(2, 3, 4) * 5, torch.randn(2, 3, 4) + 3), in_standard=False
    ),
    "baddbmm": program(torch.baddbmm, lambda: (torch.randn(2, 5, 3), torch.randn(2, 5, 4), torch.randn(2, 4, 3))),
    "matmul": program(torch.matmul, lambda: (torch.randn(5, 2), torch.randn(2, 4))),
    "mean": program(lambda x: x.mean(1), numbers(4, 5, 2)),
    "mean_kept": program(lambda x: x.mean(1, keepdim=True), numbers(4, 5, 2)),
    "sum": program(lambda x: x.sum(1), numbers(4, 5, 2)),
    "sum_of_all": program(lambda x: x.sum(), numbers(4, 5, 2)),
    "prod": program(lambda x: x.prod(1), positive(4, 5, 2), in_standard=False),
    "max_of_axis": program(lambda x: x.max(1).values, numbers(4, 5, 2)),
    "max_and_its_place": program(lambda x: x.max(1), numbers(4, 5, 2)),
    "min_kept": program(lambda x: x.min(1, keepdim=True).values, numbers(4, 5, 2)),
    "argmax": program(lambda x: x.argmax(1), numbers(4, 5, 2)),
    "argmin": program(lambda x: x.argmin(1), numbers(4, 5, 2)),
    "logsumexp": program(lambda x: x.logsumexp((0, 2)), numbers(4, 5, 2)),
    "transpose": program(lambda x: x.transpose(1, 0), numbers(4, 5, 2)),
    "permute": program(lambda x: x.permute(2, 0, 1), numbers(4, 5, 2)),
    "reshape": program(lambda x: x.reshape(2, 10, 2), numbers(4, 5, 2)),
    "view": program(lambda x: x.view(4, -1), numbers(4, 5, 2)),
    "flatten": program(lambda x: x.flatten(1), numbers(4, 5, 2)),
    "unflatten": program(lambda x: x.unflatten(1, (3, 2)), numbers(4, 6)),
    "unsqueeze": program(lambda x: x.unsqueeze(-1), numbers(4, 5)),
    "squeeze": program(lambda x: x.squeeze(2), numbers(4, 5, 1)),
    "repeat": program(lambda x: x.repeat(1, 2, 3), numbers(4, 5, 2)),
    "expand": program(lambda x: x.expand(2, 4, 3, 5), numbers(4, 1, 5)),
    "expand_of_some": program(lambda x: x.expand(-1, 2, -1, -1), numbers(3, 1, 1, 5)),
    "new_zeros": program(lambda x: x.sum() + x.new_zeros((3, 2)), numbers(4, 5)),
    "roll": program(_roll, numbers(2, 3, 5)),
    "flip": program(lambda x: x.flip(1), numbers(2, 3, 5)),
    "reflected": program(lambda x: F.pad(x, (2, 1), mode="reflect"), numbers(2, 3, 5)),
    "replicated": program(lambda x: F.pad(x, (0, 2), mode="replicate"), numbers(2, 3, 5)),
    "padded": program(lambda x: F.pad(x, (2, 0, 0, 1), value=2.0), numbers(2, 3, 5)),
    "padded_at_the_outer_axis": program(lambda x: F.pad(x, (0, 0, 0, 0, 0, 1)), numbers(2, 3, 5)),
    "cat": program(lambda x, y: torch.cat((x, y), 1), lambda: (torch.randn(2, 3, 5), torch.randn(2, 1, 5))),
    "stack": program(lambda x, y: torch.stack((x, y), 1), lambda: _two(2, 3)),
    "vstack": program(lambda x, y: torch.vstack((x, y)), lambda: (torch.randn(2, 3), torch.randn(4, 3))),
    "hstack": program(lambda x, y: torch.hstack((x, y)), lambda: (torch.randn(2, 3, 4), torch.randn(2, 1, 4))),
    "split": program(lambda x: torch.split(x, [3, 3, 4], dim=1), numbers(2, 10, 3)),
    "unbind": program(lambda x: torch.unbind(x, 1), numbers(2, 3, 4)),
    "chunk": program(lambda x: torch.chunk(x, 3, 1), numbers(2, 7, 4)),
    "triu": program(torch.triu, numbers(5, 4)),
    "tril": program(lambda x: torch.tril(x, -1), numbers(5, 4)),
    "std": program(lambda x: x.std(1), numbers(4, 5, 2)),
    "norm_of_rows": program(lambda x: F.normalize(x, dim=1), numbers(4, 5)),
    "diagonal_of_product": _einsum("ii->i", (3, 3)),
    "trace_of_product": _einsum("ii", (3, 3)),
    "sum_of_rows": _einsum("ij->i", (3, 4)),
    "turned": _einsum("ji", (3, 4)),
    "element_by_element": _einsum("ij,ij->ij", (3, 4), (3, 4)),
    "vector_and_matrix": _einsum("i,ij->i", (3,), (3, 4)),
    "without_a_sum": _einsum("ij,jk->ijk", (2, 3), (3, 4)),
    "outer_product": _einsum("ij,kl->ijkl", (1, 2), (3, 4)),
    "batched_product": _einsum("bij,bkj->bik", (2, 3, 5), (2, 4, 5)),
}
