"""How much outputs change from one sample to another: an output that never changes would be matched by a constant."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from t2n_core.parity.comparison import difference
from t2n_core.parity.judging.judgement import DEFAULT_CRITERIA, Judgement
from t2n_core.parity.samples import Array, Sample

_GROWN = 10.0
"""Outputs this many times as large as the example's come from floats too far out, and show only rounding."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How much an output changes between samples of equal shapes in PyTorch."""

    largest: float | None
    """The largest difference of an element; None if no two samples have equal shapes."""
    share: float = 0.0
    """Share of the elements that differ by more than the tolerance, for the two samples that differ most."""
    weak: str = ""
    """The reason why a pass of this output proves little; empty if it proves enough."""
    not_finite: float = 0.0
    """Share of the elements that are NaN or infinite in all samples that count."""


def sensitivities(
    samples: Sequence[Sample],
    names: Sequence[str],
    criteria: Judgement,
    constant: Collection[str] = (),
    *,
    strays: bool = False,
) -> list[Sensitivity]:
    """Return the sensitivity of each output.

    An output is weak if the same values would pass for all samples of equal shapes. Samples with NaN or infinities
    among their inputs do not count if the example's are finite, unless `strays` is true. The `constant` outputs, which
    no input reaches, are not weak unless all outputs are constant.
    """
    of_outputs = []
    count = len(samples[0].expected)
    if len(constant) >= count:
        return [Sensitivity(None, weak="depends on no input")] * count
    counted = [sample for sample in samples if strays or not _has_strays(sample, samples[0])]
    for index in range(count):
        name = names[index] if index < len(names) else ""
        sensitivity = _sensitivity(_groups(counted, index), name, criteria, is_constant=name in constant)
        of_outputs.append(
            replace(sensitivity, not_finite=_share_not_finite([sample.expected[index] for sample in counted]))
        )
    return of_outputs


def unmoved_outputs(samples: Sequence[Sample]) -> set[int]:
    """Return the indices of the outputs that `sensitivities` calls weak at the default level, if all samples count."""
    indices = set()
    for index in range(len(samples[0].expected)):
        groups = _groups(samples, index)
        if not any(group[0].size for group in groups) or _stays(groups, "", DEFAULT_CRITERIA):
            indices.add(index)
    return indices


def _groups(samples: Sequence[Sample], index: int) -> list[list[Array]]:
    """Return the values of an output, grouped by shape, without values that are alone in their shape."""
    groups: dict[tuple[int, ...], list[Array]] = {}
    for sample in samples:
        groups.setdefault(sample.expected[index].shape, []).append(sample.expected[index])
    return [group for group in groups.values() if len(group) > 1]


def _share_not_finite(arrays: Sequence[Array]) -> float:
    """Return the share of NaN and infinities among the elements of all arrays."""
    count = sum(array.size for array in arrays)
    wrong = sum(array.size - int(np.isfinite(array).sum()) for array in arrays if array.dtype.kind == "f")
    return wrong / count if count else 0.0


def _sensitivity(
    groups: Sequence[Sequence[Array]], name: str, criteria: Judgement, *, is_constant: bool
) -> Sensitivity:
    swapped = [difference(array, group[0], name=name, criteria=criteria) for group in groups for array in group[1:]]
    largest = max((result.max_abs for result in swapped), default=None)
    share = max((result.outside for result in swapped), default=0.0)
    if is_constant or not criteria.elementwise:
        return Sensitivity(largest, share)
    if largest is None:
        return Sensitivity(largest, share, "was compared for one set of inputs only")
    if not any(group[0].size for group in groups):
        return Sensitivity(largest, share, "has no elements")
    if _stays(groups, name, criteria):
        within = criteria.criterion_text(name) or criteria.level_of(name)
        return Sensitivity(largest, share, f"moves by {largest:.2g} at most, within `{within}`")
    return Sensitivity(largest, share)


def _stays(groups: Sequence[Sequence[Array]], name: str, criteria: Judgement) -> bool:
    """Return whether the same values would pass for all arrays of a group, in every group."""
    middles = ((group, _middle(group)) for group in groups)
    return all(
        difference(array, middle, name=name, criteria=criteria, until_failure=True).passed
        for group, middle in middles
        for array in group
    )


def _middle(group: Sequence[Array]) -> Array:
    """Return the values nearest to all arrays; for integers, which must be equal, the first array's."""
    first = group[0]
    if first.dtype.kind != "f":
        return first
    low = high = first
    for other in group[1:]:
        low, high = np.minimum(low, other), np.maximum(high, other)
    with np.errstate(all="ignore"):
        middle = low / 2 + high / 2
    return np.where(low == high, low, middle).astype(first.dtype)


def _has_strays(sample: Sample, example: Sample) -> bool:
    """Return whether an input has NaN or infinities although the example's is finite."""
    pairs = zip(sample.inputs, example.inputs, strict=True)
    return any(np.isfinite(before).all() and not np.isfinite(after).all() for after, before in pairs)


def overflows(sample: Sample, example: Sample) -> bool:
    """Return whether an output has NaN or infinities although the example's is finite."""
    pairs = zip(sample.expected, example.expected, strict=False)
    return any(np.isfinite(before).all() and not np.isfinite(after).all() for after, before in pairs)


def has_grown(sample: Sample, example: Sample) -> bool:
    """Return whether the floats of an output are on average many times as large as the example's."""
    pairs = zip(sample.expected, example.expected, strict=False)
    return any(_magnitude(after) > _GROWN * _magnitude(before) for after, before in pairs if before.dtype.kind == "f")


def _magnitude(array: Array) -> float:
    """Return the root mean square of the finite elements."""
    finite = array[np.isfinite(array)].astype(np.float64)
    return math.sqrt(np.square(finite).mean()) if finite.size else 0.0
