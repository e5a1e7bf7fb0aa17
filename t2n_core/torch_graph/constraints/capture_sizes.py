"""Choose the sizes at which a model is captured: torch.export specialises sizes of 0 and 1, even of dynamic axes.

So a dynamic axis with such a size in the example is captured at another size. Checks still use the example.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import torch

from t2n_core.nnef.sizes.dims import Dim, evaluate, symbols_of
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.torch_graph.constraints.declared_axes import AxisSize

Axes: TypeAlias = Mapping[str, Mapping[int, AxisSize]]
Limits: TypeAlias = Mapping[str, tuple[int | None, int | None]]
"""Smallest and largest size of a symbol; None leaves it open."""

_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)
_POWERS = (2, 4, 8, 16, 32, 64, 128)
_LARGER = (*_PRIMES, 67, 101, 131, 199, 257, 401, 521, 1031, 2053, 4099, 8209, 16411, 32771)
_OF_A_MASK = 2
"""A float tensor with at most this many distinct values is taken for a mask."""
_ATTEMPTS = 4
"""Number of attempts with each list of sizes: primes, and powers of two."""


def example_sizes(axes: Axes, names: Sequence[str], tensors: Sequence[torch.Tensor]) -> dict[str, int]:
    """Return symbol -> its size in the example, without symbols that have several sizes there."""
    symbol_sizes: dict[str, set[int | None]] = {}
    for name, tensor in zip(names, tensors, strict=True):
        for axis, size in axes.get(name, {}).items():
            symbol_sizes.setdefault(size.name, set()).add(size.symbol_at(int(tensor.shape[axis])))
    single = ((name, next(iter(sizes))) for name, sizes in symbol_sizes.items() if len(sizes) == 1)
    return {name: size for name, size in single if size is not None}


def capture_sizes(
    axes: Axes, names: Sequence[str], tensors: Sequence[torch.Tensor], limits: Limits | None = None
) -> Iterator[dict[str, int]]:
    """Yield sizes to capture at, the best first, for the symbols that are 0 or 1 in the example.

    They differ from each other and from all other sizes of the inputs, so that no two axes look alike: primes from 3
    on, then powers of two, then one symbol at such a power or as in the example; all within the limits.
    """
    sizes = example_sizes(axes, names, tensors)
    every = [size for of_input in axes.values() for size in of_input.values()]
    symbols = [
        name
        for name, size in sizes.items()
        if any(axis_size.name == name and axis_size.at(size) <= 1 for axis_size in every)
    ]
    if not symbols:
        return
    used_sizes = {int(size) for tensor in tensors for size in tensor.shape}
    seen: list[dict[str, int]] = []
    free = {name: _free(name, every, (limits or {}).get(name, (None, None))) for name in symbols}
    for choice in _choices(symbols, used_sizes, free):
        if choice is not None and choice not in seen:
            seen.append(choice)
            yield choice


def _free(name: str, sizes: Iterable[AxisSize], limit: tuple[int | None, int | None]) -> tuple[int, int | None]:
    """Return the limits of a symbol within which none of its axes has a size of 0 or 1."""
    return max(limit[0] or 0, *(-((size.offset - 2) // size.factor) for size in sizes if size.name == name)), limit[1]


def _choices(symbols: Sequence[str], used_sizes: set[int], limits: Limits) -> Iterator[dict[str, int] | None]:
    for numbers in (_PRIMES, _POWERS):
        for start in range(_ATTEMPTS):
            yield _choose(symbols, numbers[start:], used_sizes, limits)
    if len(symbols) < 2:
        return
    for symbol in symbols:
        others = [other for other in symbols if other != symbol]
        for power in _POWERS[:_ATTEMPTS]:
            alone = _choose([symbol], (power,), used_sizes, limits) or {}
            rest = _choose(others, _PRIMES, used_sizes | set(alone.values()), limits)
            yield None if rest is None else {**alone, **rest}
        yield _choose(others, _PRIMES, used_sizes, limits)


def _choose(
    symbols: Sequence[str], numbers: Sequence[int], used_sizes: set[int], limits: Limits
) -> dict[str, int] | None:
    """Return a size for each symbol from a list; if the limits exclude all of them, the next size that they allow."""
    chosen: dict[str, int] = {}
    for symbol in symbols:
        low, high = limits.get(symbol, (None, None))
        least = max(2, low or 2)
        most = high if high is not None else max(numbers[-1], 2 * least + len(used_sizes) + len(symbols))
        allowed = (n for n in itertools.chain(numbers, range(least, most + 1)) if least <= n <= most)
        size = next((n for n in allowed if n not in used_sizes and n not in chosen.values()), None)
        if size is None:
            return None
        chosen[symbol] = size
    return chosen


def dynamic_shapes(axes: Axes, names: Sequence[str]) -> dict[str, Any] | None:
    """Return the dynamic shapes of a list of tensors as torch.export takes them; None if all are static."""
    free = torch.export.Dim.DYNAMIC
    shapes = tuple(dict.fromkeys(axes.get(name, {}), free) or None for name in names)
    return {"tensors": shapes} if any(axes.values()) else None


def resize_example(
    axes: Axes, names: Sequence[str], tensors: Sequence[torch.Tensor], sizes: Mapping[str, int]
) -> list[torch.Tensor]:
    """Return the example's tensors with other sizes for some symbols; other tensors as they are."""
    result = []
    for name, tensor in zip(names, tensors, strict=True):
        changed = {axis: size.at(sizes[size.name]) for axis, size in axes.get(name, {}).items() if size.name in sizes}
        result.append(_resize(tensor, changed) if changed else tensor)
    return result


def fit_example(
    axes: Axes,
    names: Sequence[str],
    tensors: Sequence[torch.Tensor],
    sizes: Mapping[str, int],
    runs: Callable[[Sequence[torch.Tensor]], bool],
) -> list[torch.Tensor]:
    """Return the example's tensors at other sizes, with informative values if the model accepts them.

    Constant float tensors become normally distributed, and integers that are too large for an axis that is smaller than
    in the example are clipped to its last index, or to its size. `runs` returns whether the model accepts tensors.
    """
    plain = resize_example(axes, names, tensors, sizes)
    spread = [_randomise(tensor, seed) for seed, tensor in enumerate(plain)]
    pairs = zip(tensors, plain, strict=True)
    smaller = {new for before, now in pairs for old, new in zip(before.shape, now.shape, strict=True) if new < old}
    for most in (None, *(size - beyond for beyond in (1, 0) for size in sorted(smaller) if size > beyond)):
        for example in (spread, plain):
            clipped = example if most is None else [_clip(tensor, most) for tensor in example]
            if runs(clipped):
                return clipped
    return plain


def _randomise(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    if not tensor.is_floating_point() or not tensor.numel() or not bool((tensor == tensor.reshape(-1)[0]).all()):
        return tensor
    return torch.randn(tensor.shape, dtype=tensor.dtype, generator=torch.Generator().manual_seed(seed))


def _clip(tensor: torch.Tensor, most: int) -> torch.Tensor:
    is_integer = not tensor.is_floating_point() and not tensor.is_complex() and tensor.dtype != torch.bool
    return tensor.clamp(max=most) if is_integer else tensor


def _resize(tensor: torch.Tensor, sizes: Mapping[int, int]) -> torch.Tensor:
    """Return a tensor with other sizes of some axes, its elements repeated: indices stay indices, masks stay masks.

    Floats other than masks are scaled a little differently at each repetition, so that no two rows are alike. An empty
    tensor is filled with random floats, or with zeros for other dtypes.
    """
    shape = [sizes.get(axis, int(size)) for axis, size in enumerate(tensor.shape)]
    if tensor.numel() == 0:
        if not tensor.dtype.is_floating_point and not tensor.dtype.is_complex:
            return torch.zeros(shape, dtype=tensor.dtype)
        return torch.randn(shape, dtype=tensor.dtype, generator=torch.Generator().manual_seed(0))
    result = tensor.detach()
    unique: Any = torch.unique
    varied = tensor.dtype.is_floating_point and len(unique(tensor)) > _OF_A_MASK
    for axis, target_size in sizes.items():
        indices = torch.arange(target_size)
        result = result.index_select(axis, indices % tensor.shape[axis])
        if varied:
            factor = 1 + 0.25 * torch.sin(indices // tensor.shape[axis])
            result = result * factor.to(result.dtype).reshape([-1, *[1] * (tensor.dim() - axis - 1)])
    return result.contiguous()


def freeing_sizes(
    extents: Iterable[Dim], captured_at: Mapping[str, int], used_sizes: set[int], sizes_range: SizeRange
) -> dict[str, int] | None:
    """Return larger sizes at which fewer of these extents are 0 or 1 than at the captured sizes; None if impossible.

    They are within the range, distinct, and unused by any input.
    """
    lone = [e for e in extents if _evaluate(e, captured_at) <= 1]
    best, fewest = dict(captured_at), len(lone)
    for symbol in sorted(symbols_of(lone)):
        if not fewest:
            break
        for size in (n for n in _LARGER if n > captured_at[symbol] and n not in used_sizes and n not in best.values()):
            sizes = {**best, symbol: size}
            count = sum(_evaluate(e, sizes) <= 1 for e in lone)
            if count < fewest and sizes_range.holds(sizes):
                best, fewest = sizes, count
    return best if best != captured_at else None


def _evaluate(extent: Dim, sizes: Mapping[str, int]) -> int:
    try:
        return evaluate(extent, sizes)
    except (KeyError, ValueError, ZeroDivisionError):
        return 2  # a size that is not one of the inputs' and hence unknown
