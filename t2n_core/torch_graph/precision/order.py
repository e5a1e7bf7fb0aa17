"""The order in which units are moved to float16: the unit that adds least to the error comes next."""

from __future__ import annotations

from collections.abc import Sequence

from t2n_core.torch_graph.precision.roundings import Rounding
from t2n_core.torch_graph.precision.units import Unit


def order_of(units: Sequence[Unit], roundings: Sequence[Rounding]) -> list[tuple[Unit, float]]:
    """Return the units, smallest effect first, each with the squared error of all units up to it.

    A rounding counts once, with the first of its units. Units that no gradient reaches may decide which elements are
    selected, and come last.
    """
    of_unit: dict[Unit, list[Rounding]] = {unit: [] for unit in units}
    for rounding in roundings:
        for unit in rounding.units & of_unit.keys():
            of_unit[unit].append(rounding)
    added = {unit: sum(one.error for one in mine) for unit, mine in of_unit.items() if mine}
    ordered: list[tuple[Unit, float]] = []
    seen: set[int] = set()
    total = 0.0
    while added:
        unit = min(added, key=added.__getitem__)
        total += max(added.pop(unit), 0.0)
        ordered.append((unit, total))
        for one in of_unit[unit]:
            if id(one) not in seen:
                seen.add(id(one))
                for other in one.units & added.keys():
                    added[other] -= one.error
    return [*ordered, *((unit, total) for unit in units if not of_unit[unit])]
