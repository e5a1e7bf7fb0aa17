"""Write the steps of `custom_ops/factorisation_steps.py` out, for targets without loops; sizes must be static."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from t2n_core.torch_graph.simplify.decompositions import Refusal, decomposition

UNROLLED = 64
"""Most steps that are written; more would make thousands of operations."""
SWEEPS = 6
"""Each sweep squares the off-diagonal part; random float32 matrices converge after 5."""
WIDEST = 16
"""Most columns that are rotated, since every pair of columns is one step."""
_Step: TypeAlias = "Tensor | tuple[Tensor, Tensor | None]"
"""One step of a factor: the last row if no reflection follows, otherwise a finished column and the row right of it."""


def steps(size: Any, most: int = UNROLLED) -> int:
    """Return a number of steps. Raises Refusal if it varies or there are too many."""
    if not isinstance(size, int):
        raise Refusal("a matrix factorisation needs a fixed size, since the target has no loops")
    if size > most:
        raise Refusal(
            f"a matrix factorisation is unrolled, since the target has no loops: {size} steps are beyond {most}"
        )
    return size


@decomposition("t2n_loops::cholesky")
def cholesky(a: Tensor) -> tuple[Tensor, Tensor]:
    """Return the Cholesky factor and its pivots; after a pivot that is not positive, elements are NaN."""
    columns, pivots = [], []
    for j in range(steps(a.shape[-1])):
        pivot = a[..., :1, :1]
        column = a[..., :, :1] * torch.rsqrt(pivot)
        columns.append(F.pad(column, (0, 0, j, 0)))
        pivots.append(pivot[..., 0, 0])
        below = column[..., 1:, :]
        a = a[..., 1:, 1:] - below * below.mT
    return torch.cat(columns, -1), torch.stack(pivots, -1)


@decomposition("t2n_loops::solve")
def solve(a: Tensor, b: Tensor, upper: bool, unit: bool) -> Tensor:
    """Solve row by row, from the last one if `a` is upper."""
    if upper:
        return solve(a.flip((-2, -1)), b.flip(-2), False, unit).flip(-2)
    rows: list[Tensor] = []
    for i in range(steps(a.shape[-1])):
        row = b[..., i : i + 1, :]
        if i:
            row = row - a[..., i : i + 1, :i] @ torch.cat(rows, -2)
        rows.append(row if unit else row / a[..., i : i + 1, i : i + 1])
    return torch.cat(rows, -2)


@decomposition("t2n_loops::lu")
def lu(a: Tensor) -> tuple[Tensor, Tensor]:
    """Exchange rows so that the largest element of each column is the pivot, then eliminate."""
    rows, columns = steps(a.shape[-2]), steps(a.shape[-1])
    numbers, pivots = torch.arange(rows).expand(a.shape[:-1]), []
    for j in range(min(rows, columns)):
        if j == rows - 1:
            pivots.append(torch.full((*a.shape[:-2], 1), rows))
            break
        chosen = a[..., j:, j].abs().argmax(-1, keepdim=True) + j
        exchange = torch.where(numbers == j, chosen, torch.where(numbers == chosen, j, numbers))
        a = a.gather(-2, exchange.unsqueeze(-1).expand(a.shape))
        pivots.append(chosen + 1)
        head = a[..., j : j + 1, j : j + 1]
        below = a[..., j + 1 :, j : j + 1]
        factors = torch.where(head == 0, below, below / head)
        # only parts that are not empty: a slice of no elements cannot be expressed in NNEF
        parts = [a[..., j + 1 :, :j]] if j else []
        parts.append(factors)
        if j < columns - 1:
            parts.append(a[..., j + 1 :, j + 1 :] - factors * a[..., j : j + 1, j + 1 :])
        a = torch.cat([a[..., : j + 1, :], torch.cat(parts, -1)], -2)
    return a, torch.cat(pivots, -1).to(torch.int32)


@decomposition("t2n_loops::order")
def order(pivots: Tensor, rows: int) -> Tensor:
    """Return the order of the rows after the exchanges."""
    numbers = torch.arange(steps(rows)).expand(*pivots.shape[:-1], rows)
    row_order = numbers
    for j in range(steps(pivots.shape[-1])):
        chosen = pivots[..., j : j + 1].to(torch.int64) - 1
        row_order = row_order.gather(-1, torch.where(numbers == j, chosen, torch.where(numbers == chosen, j, numbers)))
    return row_order


@decomposition("t2n_loops::reflections")
def reflections(a: Tensor) -> tuple[Tensor, Tensor]:
    """Reflect each column onto its diagonal element, and all columns right of it."""
    rows, columns = steps(a.shape[-2]), steps(a.shape[-1])
    done: list[_Step] = []
    scales = []
    for k in range(min(rows, columns)):
        head, tail = a[..., :1, :1], a[..., 1:, :1]
        if k == rows - 1:
            scales.append(torch.zeros_like(head[..., 0]))
            done.append(F.pad(a, (k, 0, 0, 0)))  # the last row needs no reflection
            break
        size = tail.square().sum(-2, keepdim=True)
        length = (head.square() + size).sqrt()
        new = torch.where(size == 0, head, torch.where(head < 0, length, -length))
        # an exact zero below the diagonal means no reflection; its divisions are never used
        scale = torch.where(size == 0, torch.zeros_like(head), (new - head) / new)
        vector = torch.where(size == 0, torch.zeros_like(tail), tail / (head - new))
        reflector = torch.cat([torch.ones_like(head), vector], -2)
        column = torch.cat([new, vector], -2)
        scales.append(scale[..., 0])
        if k < columns - 1:
            rest = a[..., :, 1:]
            rest = rest - scale * reflector * (reflector * rest).sum(-2, keepdim=True)
            done.append((column, rest[..., :1, :]))
            a = rest[..., 1:, :]
        else:
            done.append((column, None))
    return _assemble(done, rows, columns), torch.cat(scales, -1)


def _assemble(done: Sequence[_Step], rows: int, columns: int) -> Tensor:
    """Return the packed matrix: column k below its diagonal from step k, row k right of it too."""
    result = None
    for k, step in enumerate(done):
        if isinstance(step, Tensor):
            part = F.pad(step, (0, 0, k, 0))
        else:
            column, row = step
            part = F.pad(column, (k, columns - k - 1, k, 0))
            if row is not None:
                part = part + F.pad(row, (k + 1, 0, k, rows - k - 1))
        result = part if result is None else result + part
    assert result is not None
    return result


@decomposition("t2n_loops::reflect")
def reflect(packed: Tensor, scales: Tensor, other: Tensor, transpose: bool) -> Tensor:
    """Apply the reflections one by one, from the last, or from the first if Q is transposed."""
    below, count = torch.arange(packed.shape[-2]).unsqueeze(-1), steps(scales.shape[-1])
    for k in range(count) if transpose else reversed(range(count)):
        vector = torch.where(below > k, packed[..., :, k : k + 1], (below == k).to(packed.dtype))
        scale = scales[..., k : k + 1].unsqueeze(-1)
        other = other - scale * vector * (vector * other).sum(-2, keepdim=True)
    return other


@decomposition("t2n_loops::orthogonal")
def orthogonal(a: Tensor, rows: int) -> Tensor:
    """Rotate the pairs of columns round by round."""
    size = steps(a.shape[-1], WIDEST)
    order = list(range(size))
    for _ in range(SWEEPS if size > 1 else 0):
        for pairs in _rounds(size):
            first, second = [order.index(p) for p, _ in pairs], [order.index(q) for _, q in pairs]
            left = a.index_select(-1, torch.tensor(first))
            right = a.index_select(-1, torch.tensor(second))
            rotated = _rotate(left, right, rows)
            alone = [c for c in range(size) if all(c not in pair for pair in pairs)]
            rest = [a.index_select(-1, torch.tensor([order.index(c) for c in alone]))] if alone else []
            a = torch.cat([*rotated, *rest], -1)
            order = [p for p, _ in pairs] + [q for _, q in pairs] + alone
    return a


def _rotate(left: Tensor, right: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    x, y = left[..., :rows, :], right[..., :rows, :]
    product = (x * y).sum(-2, keepdim=True)
    twist = (y.square().sum(-2, keepdim=True) - x.square().sum(-2, keepdim=True)) / (2 * product)
    tangent = torch.where(twist < 0, -1.0, 1.0) / (twist.abs() + (1 + twist.square()).sqrt())
    tangent = torch.where(product == 0, torch.zeros_like(tangent), tangent)
    cosine = (1 + tangent.square()).rsqrt()
    sine = cosine * tangent
    return cosine * left - sine * right, sine * left + cosine * right


def _rounds(size: int) -> list[list[tuple[int, int]]]:
    """Return the rounds of a tournament: every pair once, disjoint pairs in one round."""
    seats: list[int | None] = [*range(size), *([None] if size % 2 else [])]
    rounds = []
    for _ in range(len(seats) - 1):
        half = len(seats) // 2
        pairs = zip(seats[:half], reversed(seats[half:]), strict=True)
        rounds.append([(min(p, q), max(p, q)) for p, q in pairs if p is not None and q is not None])
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return rounds
