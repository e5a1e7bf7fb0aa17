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
    added = {unit: sum(rounding.error for rounding in mine) for unit, mine in of_unit.items() if mine}
    ordered: list[tuple[Unit, float]] = []
    seen: set[int] = set()
    total = 0.0
    while added:
        unit = min(added, key=added.__getitem__)
        total += max(added.pop(unit), 0.0)
        ordered.append((unit, total))
        for unit_rounding in of_unit[unit]:
            if id(unit_rounding) not in seen:
                seen.add(id(unit_rounding))
                for other in unit_rounding.units & added.keys():
                    added[other] -= unit_rounding.error
    return [*ordered, *((unit, total) for unit in units if not of_unit[unit])]
