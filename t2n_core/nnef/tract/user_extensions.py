"""Narrowing of the range of sizes by the user's `tract_assert` lines, which the engine trusts without a check."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from sympy.core.relational import Relational

from t2n_core.errors import InputError
from t2n_core.nnef.sizes.dims import symbol
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.tract.sizes.guards import assertion, condition
from t2n_core.nnef.tract.traits import TractTraits

_ASSERT = "tract_assert "


def with_assertions(sizes: SizeRange, lines: Iterable[str]) -> SizeRange:
    """Return the part of a range in which the assertions of these lines hold: all plain ones, and one of the scenarios.

    Raises InputError for an assertion that is not a condition on the dynamic axes, or leaves no size.
    """
    scenarios: dict[str, tuple[Relational, ...]] = {}
    for line in lines:
        if not line.startswith(_ASSERT):
            continue
        words, colon, rest = line.removeprefix(_ASSERT).partition(":")
        try:
            symbols = {name: symbol(name, *bounds) for name, bounds in sizes.bounds.items()}
            asserted = condition(rest if colon else words, symbols)
            if colon:
                scenarios[words.strip()] = (*scenarios.get(words.strip(), ()), asserted)
            else:
                sizes = sizes.narrowed(asserted)
        except ValueError as wrong:
            raise InputError(
                f"custom_extensions: `{line}` cannot be checked against the sizes {sizes or 'of this model'}: {wrong}",
                hint="the engine trusts an assertion and never checks it, so that it must be part of the range",
            ) from wrong
    return replace(sizes, scenarios=scenarios) if scenarios else sizes


def to_write(lines: Iterable[str], sizes: SizeRange, traits: TractTraits) -> list[str]:
    """Return the user's lines that are written in addition to the lines that state the range.

    Where the engine checks the range, a plain assertion is written if it is a bound of one size, which the engine uses.
    """
    written = []
    for line in lines:
        scenario = ":" in line
        if not line.startswith(_ASSERT) or (scenario and not traits.checks_scenarios):
            written.append(line)
        elif not scenario and traits.checks_scenarios:
            relation = condition(line.removeprefix(_ASSERT), {name: symbol(name) for name in sizes.names})
            names = [s.name for s in relation.free_symbols]
            bounds = SizeRange(dict.fromkeys(names, (0, None))).narrowed(relation)
            written += [] if bounds.conditions else [f"{_ASSERT}{assertion(bound)}" for bound in bounds.relations()]
    return written


def sizes_from_zero(lines: Iterable[str]) -> frozenset[str]:
    """Return the symbols that an assertion allows to be 0: P for `P >= 0`, `0 <= P` and `P > -1`."""
    names = set()
    for line in lines:
        words = line.removeprefix(_ASSERT)
        symbols = {name: symbol(name) for name in re.findall(r"[A-Za-z_]\w*", words)}
        if not line.startswith(_ASSERT) or ":" in words or len(symbols) != 1:
            continue
        (name,) = symbols
        with suppress(ValueError):  # reported with the sizes of the model
            alone = SizeRange({name: (0, None)})
            names |= {name} if alone.narrowed(condition(words, symbols)) == alone else set()
    return frozenset(names)
