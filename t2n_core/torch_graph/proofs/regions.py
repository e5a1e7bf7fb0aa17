"""Prove that a captured program is right on the other side of a decision by capturing the model again there.

The model is captured at sizes of the other side. If that program equals the first one at these sizes, both are right
wherever the new capture's decisions hold; the rest of the other side is proven in the same way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import sympy
import torch

from t2n_core.errors import T2NError
from t2n_core.nnef.sizes.dims import Dim, as_dim, symbol
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.torch_graph.constraints.declared_axes import AxisSize
from t2n_core.torch_graph.constraints.dynamic_axes import SymbolTable
from t2n_core.torch_graph.constraints.guards import Decision
from t2n_core.torch_graph.constraints.solving import Sizes, negate, other_side
from t2n_core.torch_graph.proofs.value_numbers import Numbering, UnprovenError

_LOG = logging.getLogger(__name__)

_CAPTURES = 6
"""Most captures for the proofs of one export."""
Axes: TypeAlias = Sequence[tuple[Any, AxisSize]]
"""The captured sizes of all dynamic axes, and how they are declared."""


@dataclass(frozen=True, slots=True)
class Recaptured:
    """A program that was captured at other sizes, with its decisions."""

    program: torch.export.ExportedProgram
    axes: Axes
    decisions: Sequence[Decision]


@dataclass(slots=True)
class _Reading:
    """The sizes of a program in the user's symbols, and the conditions on which it holds."""

    table: SymbolTable
    values: dict[str, Dim]
    """Symbols that equal a constant or another symbol throughout the program."""
    conditions: list[Any]


@dataclass(slots=True)
class Regions:
    """The proofs of one captured program."""

    program: torch.export.ExportedProgram
    table: SymbolTable
    captured: Sizes
    capture_at: Callable[[Sizes, frozenset[str]], Recaptured | None]
    """Captures the model at other sizes, some of them static; returns None if that fails."""
    _captures: dict[tuple[Any, ...], Recaptured | None] = field(default_factory=dict)
    _compared: dict[tuple[int, str], list[Any] | None] = field(default_factory=dict)
    """The results of `_alike`, by capture and range."""

    def prove(self, region: Sequence[Any], sizes: SizeRange) -> bool:
        """Return whether the program is proven right at all sizes in a range that satisfy these conditions."""
        side = other_side(negate(sympy.And(*region, evaluate=False)), sizes, self.captured)
        if not side.points:
            return side.complete
        capture = self._captured_at(side.points[0], _static(region, sizes, self.captured))
        if capture is None:
            return False
        key = (id(capture), str(sizes))
        if key not in self._compared:
            self._compared[key] = self._alike(capture, sizes)
        conditions = self._compared[key]
        if conditions is None:
            return False
        region_texts = {str(condition) for condition in region}
        gaps = {str(gap): gap for gap in map(negate, conditions)}
        return all(self.prove([*region, gap], sizes) for text, gap in gaps.items() if text not in region_texts)

    def _alike(self, capture: Recaptured, sizes: SizeRange) -> list[Any] | None:
        """Return the conditions under which another capture holds, if its program equals this one there, or None."""
        try:
            there = self._read(capture, sizes)
            return there.conditions if self._same(capture.program, there) else None
        except (T2NError, UnprovenError):
            return None

    def _captured_at(self, point: Sizes, static: frozenset[str]) -> Recaptured | None:
        key = tuple(sorted((*point.items(), *((name, -1) for name in static))))
        if key not in self._captures:
            if len(self._captures) >= _CAPTURES:
                return None
            _LOG.debug("proof by a capture at %s", {str(name): size for name, size in point.items()})
            self._captures[key] = self.capture_at(point, static)
        return self._captures[key]

    def _read(self, capture: Recaptured, sizes: SizeRange) -> _Reading:
        """Express another capture's symbols in this capture's. Raises UnprovenError, CaptureError."""
        table, values = SymbolTable(sizes), dict[str, Dim]()
        conditions = []
        for size, axis_size in sorted(capture.axes, key=lambda entry: not _is_static(entry[0])):
            own_symbol = symbol(axis_size.name, *sizes.bounds[axis_size.name])
            if isinstance(size, torch.SymInt):
                table.learn_first_name(size, axis_size.extent(own_symbol))
            if _is_static(size):
                at = axis_size.symbol_at(int(size))
                if at is None:
                    raise UnprovenError(f"{axis_size} is not {size} at any size")
                values[axis_size.name] = at
                conditions.append(sympy.Eq(own_symbol, at, evaluate=False))
                continue
            other = table.name_of(size)
            if other is not None and other != axis_size.name and axis_size.is_plain:
                values[axis_size.name] = symbol(other, *sizes.bounds[other])
                conditions.append(sympy.Eq(own_symbol, values[axis_size.name], evaluate=False))
                continue
            table.learn(size, axis_size)
        for decision in capture.decisions:
            if decision.condition.free_symbols:
                if not table.knows(decision.condition):
                    raise UnprovenError(f"{decision.condition} depends on data")
                condition = table.condition(decision.condition)
                if condition.free_symbols:
                    conditions.append(condition)
        return _Reading(table, values, conditions)

    def _same(self, program: torch.export.ExportedProgram, there: _Reading) -> bool:
        """Return whether this program equals another program at their common sizes."""
        places = {
            symbol(name, *self.table.range.bounds[name]): sympy.sympify(size) for name, size in there.values.items()
        }

        def here(size: Any) -> Dim:
            return _canonical(self.table.dim(size), places, there.table.range)

        def other(size: Any) -> Dim:
            return _canonical(there.table.dim(size), {}, there.table.range)

        numbering = Numbering()
        return numbering.outputs(program, other) == numbering.outputs(self.program, here)


def _is_static(size: Any) -> bool:
    return isinstance(size, int) or bool(size.node.expr.is_Integer)


def _static(region: Sequence[Any], sizes: SizeRange, captured: Sizes) -> frozenset[str]:
    """Return the symbols with only a few sizes in a region, which PyTorch would not capture as dynamic."""
    single = [condition for condition in region if len(condition.free_symbols) == 1]
    few = [condition for condition in single if other_side(negate(condition), sizes, captured).is_few]
    return frozenset(s.name for condition in few for s in condition.free_symbols)


def _canonical(size: Dim, places: Mapping[Any, Any], sizes: SizeRange) -> Dim:
    if isinstance(size, int):
        return size
    expression = size.xreplace(places)
    bounded = expression.xreplace({s: symbol(s.name, *sizes.bounds[s.name]) for s in expression.free_symbols})
    return as_dim(sympy.expand(bounded))
