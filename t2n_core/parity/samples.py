"""Inputs to check a model with: PyTorch's inputs and outputs at one size, and the sizes to check at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from numpy.typing import NDArray

from t2n_core.errors import InputError

Array: TypeAlias = NDArray[Any]
Limits: TypeAlias = Mapping[str, tuple[int | None, int | None]]

_SMALL = 64

DRAWN = "drawn"
"""Fact of an outcome: how random inputs were drawn, by the names of the inputs."""
SIGNED = "drawn signed"
"""End of the label of a sample whose floats have a sign that the example's may never have."""
STORED_WEIGHTS = "stored_weights"
"""Fact of an outcome: how many weights the archive stores in which format."""
LONG_SIZES = "long_sizes"
"""Fact of an outcome: a line for each axis along which errors or costs grow, with the long size that was checked."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One set of inputs in graph order, with the outputs that PyTorch computes from it."""

    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]
    sizes: dict[str, int] = field(default_factory=dict)
    """Size of each dynamic axis; empty if nothing varies."""
    label: str = ""
    original: tuple[Array, ...] | None = None
    """Outputs of the model with its own weights, or in float64, if metrics compare with these."""

    @property
    def reference(self) -> tuple[Array, ...]:
        """Return the reference outputs for metrics."""
        return self.expected if self.original is None else self.original


def size_assignments(
    symbols: Mapping[str, int], limits: Limits | None = None, edges: Mapping[str, Sequence[int]] | None = None
) -> list[dict[str, int]]:
    """Return the sizes to check a model with dynamic axes at; the traced sizes come first.

    Each symbol takes its smallest size, the traced one, a larger prime, a larger power of two and another prime, and
    its `edges`, alone while the others stay as traced; then all together, with a different prime for each, so that
    swapped axes are detected. `limits` are (min, max) per symbol, either may be None; if they leave no room for larger
    sizes, smaller ones are used.

    Raises:
        InputError: a traced size is outside its limits.
    """
    if not symbols:
        return []
    choices: dict[str, list[int]] = {}
    used_sizes: set[int] = set(symbols.values())
    for name, traced in symbols.items():
        choices[name] = _choices(name, traced, (limits or {}).get(name, (None, None)), used_sizes)
    traced_sizes = dict(symbols)
    assignments = [traced_sizes]
    for name, sizes in choices.items():
        assignments += [{**traced_sizes, name: size} for size in (*sizes, *(edges or {}).get(name, ()))]
    if len(symbols) > 1:
        room = {name: [size for size in sizes if size % 2 or size == sizes[0]] for name, sizes in choices.items()}
        room = {name: sizes or [symbols[name]] for name, sizes in room.items()}
        for step in range(max(map(len, room.values()))):
            assignments.append({name: sizes[step % len(sizes)] for name, sizes in room.items()})
    unique: list[dict[str, int]] = []
    for assignment in assignments:
        if assignment not in unique:
            unique.append(assignment)
    return unique


def _choices(name: str, traced: int, limit: tuple[int | None, int | None], used_sizes: set[int]) -> list[int]:
    """Return sizes other than the traced one: the smallest, two larger primes, and a power of two between them."""
    low, high = 1 if limit[0] is None else limit[0], limit[1]
    if traced < low or (high is not None and traced > high):
        raise InputError(f"dynamic axis {name} was traced at {traced}, outside its limits {low}..{high or ''}")
    chosen = [] if traced == low else [low]
    for start in (traced + 1, 2 * traced + 1):
        size = _next_prime(start, used_sizes)
        if high is None or size <= high:
            chosen.append(size)
            used_sizes.add(size)
    even = _next_even(traced)
    if high is None or even <= high:
        chosen.append(even)
    if high is not None and len(chosen) < 3:
        nearby = (size for size in (high, *range(high - 1, low - 1, -1)) if size not in {traced, *chosen})
        for size in nearby:
            chosen.append(size)
            used_sizes.add(size)
            if len(chosen) >= 3:
                break
    return chosen


def _next_even(traced: int) -> int:
    """Return the next power of two, or for a large size, where a run of the model is expensive, the next even one."""
    return 1 << traced.bit_length() if traced <= _SMALL else traced + 2 - traced % 2


def _next_prime(start: int, used_sizes: set[int]) -> int:
    """Return the first odd prime from `start` on that no other symbol uses."""
    size = max(3, start) | 1
    while size in used_sizes or any(size % divisor == 0 for divisor in range(3, int(size**0.5) + 1, 2)):
        size += 2
    return size
