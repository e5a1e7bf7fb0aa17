"""Random inputs of an archive, from what its graph declares and asserts."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from t2n_core.dialect.graphs.budget import MEMORY
from t2n_core.dialect.graphs.evaluation import evaluate
from t2n_core.dialect.graphs.externals import External, externals_of
from t2n_core.dialect.graphs.symbols import asserted_numbers, check_assertions, size_of
from t2n_core.dialect.tensors import Tensor
from t2n_core.errors import (
    BudgetError,
    DrawError,
    InputError,
    MalformedArchiveError,
    MeaningError,
    UndefinedOperatorError,
)
from t2n_core.nnef.reading.archive import ArchiveContent, read_archive
from t2n_core.nnef.reading.tree import names_in

SIZES: Final = (3, 5, 2, 7, 1, 4, 8, 16, 32, 0, 11, 64)
"""Sizes of symbols; sizes that prove more come first."""
_MOST_TRIES: Final = 200
_MOST_ALIKE: Final = 3
"""Sets of inputs that are drawn for a graph of fixed sizes before it is given up."""
_MOST_ELEMENTS: Final = 1 << 28
INTEGER_BOUNDS: Final = (11, 2, 1)
"""Exclusive bounds of integers: a graph that uses them as indices may take small ones only."""
_RANGES: Final = (*((0, bound) for bound in INTEGER_BOUNDS), (1, INTEGER_BOUNDS[0]))
"""Ranges of integers: from 0 up to a bound, and one for divisors."""


def draw_inputs(
    archive: str | Path | ArchiveContent,
    count: int = 6,
    seed: int = 0,
    *,
    standard: bool = False,
    timeout: float | None = None,
    memory: int = MEMORY,
) -> list[dict[str, NDArray[Any]]]:
    """Return up to `count` sets of random inputs by name, at several sizes of the symbols.

    Floats are normally distributed. Integers are drawn from 0 to 10, or from a smaller range or a range without 0 if
    the graph has no value for them. Each set can be evaluated; with `standard`, NNEF 1.0's definitions apply. Raises
    DrawError if no set can be, UndefinedOperatorError for an operator without a definition, MalformedArchiveError for a
    name that no statement defines, and BudgetError as `evaluate` does.
    """
    content = archive if isinstance(archive, ArchiveContent) else read_archive(Path(archive))
    draws = draw_evaluated(content, count, seed, standard=standard, timeout=timeout, memory=memory)
    return [inputs for inputs, _ in draws]


def draw_evaluated(
    content: ArchiveContent,
    count: int = 6,
    seed: int = 0,
    *,
    standard: bool = False,
    timeout: float | None = None,
    memory: int = MEMORY,
    sizes: Mapping[str, int] | None = None,
) -> Iterator[tuple[dict[str, NDArray[Any]], dict[str, Tensor]]]:
    """Yield the sets of `draw_inputs`, each with the archive's outputs; fewer sets if half the time is used.

    `sizes` fixes the sizes of symbols in all sets. Raises InputError for a symbol that no input has.
    """
    declared = externals_of(content.document)
    fixed = dict(sizes or {})
    begin = time.monotonic()
    random = np.random.default_rng(seed)
    drawn = 0
    reason = "no sizes satisfy its assertions"
    has_symbols = any(names_in(node) for external in declared.values() for node in external.shape)
    ranges = _RANGES if any(external.dtype.kind in "iu" for external in declared.values()) else _RANGES[:1]
    for number, tried in enumerate(itertools.islice(_assignments(content, declared, fixed), _MOST_TRIES)):
        if not has_symbols and not drawn and number == _MOST_ALIKE:
            break
        for of_integers in ranges:
            inputs = {name: _draw(random, name, external, tried, of_integers) for name, external in declared.items()}
            try:
                start = time.monotonic()
                left = None if timeout is None else max(0.0, begin + timeout - start)
                outputs = evaluate(content, inputs, standard=standard, timeout=left, memory=memory)
            except (UndefinedOperatorError, MalformedArchiveError, BudgetError):
                raise
            except (InputError, MeaningError) as wrong:
                reason = wrong.message
                continue
            drawn += 1
            yield inputs, outputs
            break
        now = time.monotonic()
        is_late = timeout is not None and now + (now - start) > begin + timeout / 2
        if drawn == count or (drawn and is_late):
            return
    if not drawn:
        raise DrawError(f"no inputs could be drawn for the archive: {reason}", hint="give some: --inputs x.npz")


def _assignments(
    content: ArchiveContent, declared: Mapping[str, External], fixed: Mapping[str, int]
) -> Iterator[dict[str, int]]:
    """Yield sizes of the symbols that the assertions allow; an empty mapping endlessly if there are none."""
    symbols = sorted(set[str]().union(*(names_in(node) for external in declared.values() for node in external.shape)))
    if unknown := sorted(fixed.keys() - set(symbols)):
        raise InputError(f"no input has the size `{unknown[0]}`; there are {', '.join(symbols) or 'none'}")
    if not symbols:
        yield from itertools.repeat({})
    extensions = content.document.extensions
    near = (number * times + step for number in asserted_numbers(extensions) for times in (1, 2) for step in (0, 1, -1))
    candidates = [*SIZES, *sorted({size for size in near if size > 0} - set(SIZES))]
    choices = [
        [size for size in ([fixed[name]] if name in fixed else candidates) if _is_allowed(extensions, {name: size})]
        for name in symbols
    ]
    most = max(map(len, choices))
    rotated = [itertools.islice(itertools.cycle(choice), start, start + most) for start, choice in enumerate(choices)]
    together = (dict(zip(symbols, sizes, strict=True)) for sizes in zip(*rotated, strict=False))
    others = (dict(zip(symbols, sizes, strict=True)) for sizes in itertools.product(*choices))
    for sizes in itertools.chain(together, others):
        if not _is_allowed(extensions, sizes):
            continue
        if all(size_of(node, sizes) >= 0 for external in declared.values() for node in external.shape):
            yield from (sizes, sizes)


def _is_allowed(extensions: Sequence[str], sizes: Mapping[str, int]) -> bool:
    """Return whether no assertion excludes sizes of these symbols."""
    try:
        check_assertions(extensions, sizes)
    except InputError:
        return False
    return True


def _draw(
    random: np.random.Generator, name: str, external: External, sizes: Mapping[str, int], of_integers: tuple[int, int]
) -> NDArray[Any]:
    return draw_array(random, name, [size_of(node, sizes) for node in external.shape], external.dtype, of_integers)


def draw_array(
    random: np.random.Generator, name: str, shape: Sequence[int], dtype: np.dtype[Any], of_integers: tuple[int, int]
) -> NDArray[Any]:
    """Return a random array, of integers in a range without its end. Raises InputError if it would be too large."""
    if any(size < 0 for size in shape) or math.prod(shape) > _MOST_ELEMENTS:
        raise InputError(f"no input `{name}` of the shape {shape} can be drawn", hint="give some: --inputs x.npz")
    if dtype.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    return random.integers(*((0, 2) if dtype.kind == "b" else of_integers), shape).astype(dtype)
