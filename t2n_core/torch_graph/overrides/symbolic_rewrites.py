"""Decompositions for functions whose C++ code specialises on concrete sizes, or on values.

Captured as they are, they would fix dynamic axes to the sizes of the example.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from t2n_core.torch_graph.compat.operators import operator
from t2n_core.torch_graph.compat.private import _check, _chunk_cat
from t2n_core.torch_graph.custom_ops.factorisation_steps import least, loop
from t2n_core.torch_graph.overrides.registry import FIXES_SIZES, override

_SLICE = operator("aten::slice.Tensor")


def _of_free_axes(plain: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator by which inputs without a dynamic size go to the plain function."""

    def decorate(rewrite: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(rewrite)
        def either(input: Tensor, *args: Any, **kwargs: Any) -> Any:
            is_free = any(isinstance(size, torch.SymInt) for size in input.shape)
            return (rewrite if is_free else plain)(input, *args, **kwargs)

        return either

    return decorate


@override(torch.kron, torch.Tensor.kron, reason=FIXES_SIZES)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """`torch.kron`: each element of `input` times all of `other`."""
    rank = max(input.dim(), other.dim())
    a, b = (x[(None,) * (rank - x.dim())] for x in (input, other))
    for axis in range(rank):
        a, b = a.unsqueeze(2 * axis + 1), b.unsqueeze(2 * axis)
    product = a * b
    for axis in range(rank):
        product = product.flatten(axis, axis + 1)
    return product


@override(torch.linalg.multi_dot, reason=FIXES_SIZES)
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """`torch.linalg.multi_dot`, from left to right, since the best order depends on sizes."""
    return functools.reduce(torch.matmul, tensors)


@override(functional.bilinear, reason=FIXES_SIZES)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`torch.nn.functional.bilinear`."""
    product = torch.einsum("...i,oij,...j->...o", input1, weight, input2)
    return product if bias is None else product + bias


@override(torch.take_along_dim, torch.Tensor.take_along_dim, reason=FIXES_SIZES)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """`torch.take_along_dim`: axes of one element broadcast, and indices are taken modulo the size.

    PyTorch's kernel does the same for negative indices and for those beyond the end.
    """
    if dim is None:
        input, indices, dim = input.reshape(-1), indices.reshape(-1), 0
    axis = dim % input.dim()
    shapes = [[*x.shape] for x in (input, indices)]
    for sizes, others in (shapes, shapes[::-1]):
        for i, size in enumerate(others):
            if i != axis and isinstance(sizes[i], int) and sizes[i] == 1:
                sizes[i] = size
    source, places = input.expand(shapes[0]), indices.expand(shapes[1])
    return source.gather(axis, torch.remainder(places, input.shape[axis]))


@override(torch.gradient, reason=FIXES_SIZES)
def gradient(input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    """`torch.gradient` on uniform grids, by central differences; at the edges by one-sided ones."""
    axes = list(range(input.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    steps = [1 if spacing is None else spacing] * len(axes) if not isinstance(spacing, Sequence) else list(spacing)
    if any(isinstance(step, Tensor) for step in steps):
        return torch.gradient(input, spacing=spacing, dim=dim, edge_order=edge_order)
    return [_differences(input, axis, step, edge_order) for axis, step in zip(axes, steps, strict=True)]


def _differences(x: Tensor, axis: int, step: float, edge_order: int) -> Tensor:
    size = x.shape[axis]

    def at(begin: int, end: Any) -> Tensor:
        piece: Tensor = _SLICE(x, axis, begin, end)
        return piece

    if edge_order == 1:
        first, last = at(1, 2) - at(0, 1), at(-1, size) - at(-2, -1)
    else:
        first = -1.5 * at(0, 1) + 2 * at(1, 2) - 0.5 * at(2, 3)
        last = 1.5 * at(-1, size) - 2 * at(-2, -1) + 0.5 * at(-3, -2)
    middle = (at(2, size) - at(0, -2)) / 2
    return torch.cat([first, middle, last], axis) / step


@override(torch.cov, torch.Tensor.cov, reason=FIXES_SIZES)
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """`torch.cov` of variables [V, N] or of one [N]; a negative divisor becomes zero."""
    x = input if input.dim() == 2 else input.reshape(1, -1)
    if not x.is_floating_point() and not x.is_complex():
        x = x.to(torch.get_default_dtype())
    weights = [w for w in (fweights, aweights) if w is not None]
    if not weights:
        number: Any = torch.full((), x.shape[1], dtype=torch.float64)
        mean, weighted, less = x.mean(1, keepdim=True), x, correction
    else:
        w = functools.reduce(torch.mul, weights)
        number = w.sum()
        mean, weighted = (x * w).sum(1, keepdim=True) / number, w
        less = correction * (w * aweights).sum() / number if aweights is not None and correction else correction
    centred = x - mean
    weighted = centred if not weights else centred * weighted
    covariance: Tensor = centred @ weighted.mT.conj() / (number - less).clamp(min=0).to(x.real.dtype)
    return covariance.squeeze()


@override(torch.corrcoef, torch.Tensor.corrcoef, reason=FIXES_SIZES)
def corrcoef(input: Tensor) -> Tensor:
    """`torch.corrcoef`: covariances divided by both standard deviations."""
    c = cov(input)
    if c.dim() == 0:
        return c / c
    deviation = c.diagonal().real.sqrt()
    scaled = c / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    return scaled if scaled.is_complex() else scaled.clamp(-1, 1)


@override(functional.linear_cross_entropy, reason="the number of chunks depends on sizes")
def linear_cross_entropy(*args: Any, options: Any = None, **kwargs: Any) -> Tensor:
    """`F.linear_cross_entropy` of all rows at once; `options`, which control chunking, are ignored."""
    function: Any = functional.linear_cross_entropy
    loss: Tensor = function(*args, **kwargs)
    return loss


@override(_chunk_cat, reason=FIXES_SIZES)
def chunk_cat(tensors: Sequence[Tensor], dim: int, num_chunks: int, **out: Any) -> Tensor:
    """`torch._chunk_cat`: each tensor is zero-padded to `num_chunks` chunks, which are concatenated after `dim`."""
    if out:
        written: Tensor = _chunk_cat(list(tensors), dim, num_chunks, **out)
        return written
    axis, parts = dim % tensors[0].dim(), []
    for x in tensors:
        *_, size = lead = x.shape[: axis + 1]
        each = (size + num_chunks - 1) // num_chunks
        room = [0, 0] * (x.dim() - axis - 1)
        padded = functional.pad(x, [*room, 0, each * num_chunks - size])
        parts.append(padded.reshape([*lead[:-1], num_chunks, each * math.prod(x.shape[axis + 1 :])]))
    return torch.cat(parts, axis + 1)


@override(functional.gaussian_nll_loss, reason="it reads whether variances are negative")
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """`torch.nn.functional.gaussian_nll_loss` without the check that variances are not negative."""
    if not isinstance(var, Tensor):
        var = torch.full_like(input, var)
    if var.dim() == input.dim() - 1:
        var = var.unsqueeze(-1)
    bounded = var.clamp(min=eps)
    loss: Tensor = 0.5 * (bounded.log() + (input - target) ** 2 / bounded)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


@override(functional.adaptive_max_pool3d, reason=FIXES_SIZES)
@_of_free_axes(functional.adaptive_max_pool3d)
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """`torch.nn.functional.adaptive_max_pool3d`, axis by axis from the last one, which finds the first maximum."""
    sizes = list(output_size) if isinstance(output_size, Sequence) else [output_size] * 3
    maxima, indices = input, torch.zeros((), dtype=torch.int64)
    for axis, step in ((-1, 1), (-2, input.shape[-1]), (-3, input.shape[-1] * input.shape[-2])):
        rows = torch.arange(maxima.shape[axis]).reshape(-1, *[1] * (-1 - axis))
        if sizes[axis] is None:
            indices = indices + rows * step
            continue
        last = maxima.transpose(axis, -1)
        pooled = [
            x.reshape(*last.shape[:-1], sizes[axis]).transpose(axis, -1)
            for x in functional.adaptive_max_pool1d(last.flatten(0, -2).unsqueeze(1), sizes[axis], return_indices=True)
        ]
        indices = (indices + rows * step).expand(maxima.shape).gather(axis, pooled[1])
        maxima = pooled[0]
    return (maxima, indices.expand(maxima.shape)) if return_indices else maxima


@override(functional.adaptive_max_pool3d_with_indices, reason=FIXES_SIZES)
@_of_free_axes(functional.adaptive_max_pool3d_with_indices)
def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Any, return_indices: bool = True) -> Any:
    """`torch.nn.functional.adaptive_max_pool3d_with_indices`."""
    return adaptive_max_pool3d(input, output_size, True)


@override(torch.pdist, reason=FIXES_SIZES)
@_of_free_axes(torch.pdist)
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Compute `torch.pdist` of any number of rows: row i's pairs follow all earlier rows' pairs."""
    count = input.shape[0]
    rows = torch.arange(count)
    begins = rows * (2 * count - 1 - rows) // 2
    pairs = torch.arange(count * (count - 1) // 2)
    first = (pairs.unsqueeze(1) >= begins.unsqueeze(0)).to(torch.int64).sum(1) - 1
    second = pairs - begins[first] + first + 1
    distances: Tensor = torch.linalg.vector_norm(input[first] - input[second], p, dim=1)
    return distances


@override(torch.bincount, torch.Tensor.bincount, reason="the number of bins depends on data")
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """`torch.bincount` of integers below `minlength`; for others, for which PyTorch adds bins, engines fail."""
    if minlength == 0:
        return torch.bincount(input, weights)
    hits = input.unsqueeze(0) == torch.arange(minlength).unsqueeze(1)
    if weights is None:
        counts = hits.to(torch.int64).sum(1)
    else:
        weighted = weights if weights.dtype == torch.float32 else weights.to(torch.float64)
        counts = torch.where(hits, weighted, 0).sum(1)
    return counts + counts.new_zeros(minlength).index_select(0, input).sum()  # reads out of range


@override(torch.lu_unpack, reason=FIXES_SIZES)
def lu_unpack(
    LU_data: Tensor,  # noqa: N803
    LU_pivots: Tensor,  # noqa: N803
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> Any:
    """`torch.lu_unpack`, which reads min(rows, columns) exchanges, even if there are fewer."""
    if unpack_pivots:
        _check(LU_pivots.shape[-1] >= least(*LU_data.shape[-2:]))
    return torch.lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots)


@override(torch.geqrf, torch.Tensor.geqrf, reason=FIXES_SIZES)
def geqrf(input: Tensor, **out: Any) -> Any:
    """`torch.geqrf`, whose sizes PyTorch captures only as constants."""
    if out or all(isinstance(size, int) for size in input.shape):
        return torch.geqrf(input, **out)
    return loop("reflections", input)


@override(torch.linalg.lstsq, reason=FIXES_SIZES)
def lstsq(input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None, **out: Any) -> Any:
    """`torch.linalg.lstsq` by the pseudoinverse, which is right for any rank; `gels` needs full rank."""
    by_values, tall = (
        driver in ("gelss", "gelsd"),
        driver in ("gels", "gelss", "gelsd") and input.shape[-2] > input.shape[-1],
    )
    if out or (by_values and tall):  # whether there are residuals depends on the rank
        return torch.linalg.lstsq(input, b, rcond, driver=driver, **out)
    vector = b.dim() == 1 or (input.dim() - 1 == b.dim() and b.shape == input.shape[:-1])
    right_side = b.unsqueeze(-1) if vector else b
    solution = torch.linalg.pinv(input, rtol=rcond) @ right_side
    none = input.new_empty(0)
    residuals = (input @ solution - right_side).square().sum(-2) if tall else none
    rank = none.to(torch.int64) if driver == "gels" else torch.linalg.matrix_rank(input, rtol=rcond)
    values = torch.linalg.svdvals(input) if by_values else none
    results: Any = torch.return_types
    return results.linalg_lstsq((solution.squeeze(-1) if vector else solution, residuals, rank, values))
