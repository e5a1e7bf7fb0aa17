"""Read a user's declaration of dynamic axes: names, `torch.export.Dim` with bounds, and multiples of these."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sympy
from torch.export import Dim

from t2n_core.errors import InputError
from t2n_core.nnef.sizes.ranges import LEAST, Bounds, SizeRange

DynamicAxes: TypeAlias = Mapping[str, Mapping[int, Any] | Sequence[int]]
"""{input: {axis: "T", SizeFrom("P", 0), Dim("T", min=2, max=16) or 2 * Dim("T")}} or {input: [axes]}."""


@dataclass(frozen=True, slots=True)
class SizeFrom:
    """A size of this name with a lower bound and no upper one. A Dim without `max` cannot declare a least size of 0."""

    name: str
    least: int = 0


@dataclass(frozen=True, slots=True)
class AxisSize:
    """The declared size of one axis, `factor * symbol + offset`: mostly the symbol alone."""

    name: str
    factor: int = 1
    offset: int = 0

    @property
    def is_plain(self) -> bool:
        return (self.factor, self.offset) == (1, 0)

    def symbol_at(self, size: int) -> int | None:
        """Return the value of the symbol at which the axis has this size; None if there is none."""
        value, rest = divmod(size - self.offset, self.factor)
        return value if rest == 0 and value >= 0 else None

    def at(self, size: int) -> int:
        """Return the size of the axis at this value of the symbol."""
        return self.factor * size + self.offset

    def extent(self, size: sympy.Symbol) -> sympy.Expr:
        """Return the extent of the axis as an expression of this symbol."""
        return self.factor * size + self.offset

    def __str__(self) -> str:
        times = f"{self.factor}*" if self.factor != 1 else ""
        return f"{times}{self.name}" + (f"{self.offset:+d}" if self.offset else "")


@dataclass(frozen=True, slots=True)
class DeclaredAxes:
    """The dynamic axes of all inputs, and the sizes that they may have."""

    axes: Mapping[str, Mapping[int, AxisSize]]
    """Axes count from 0."""
    range: SizeRange
    explicit: frozenset[str] = frozenset()
    """Symbols with declared bounds, which an export keeps or refuses."""
    kept_least: frozenset[str] = frozenset()
    """Symbols whose lower bound of 0 is declared, not the default of a Dim without `min`: it is kept or refused too."""

    def keeps_least(self, name: str) -> bool:
        """Return whether an export must keep the lower bound of a symbol."""
        return name in self.explicit and (self.range.bounds[name][0] > 0 or name in self.kept_least)


def normalise(declared: DynamicAxes | None, shapes: Mapping[str, Sequence[int]]) -> DeclaredAxes:
    """Return the declared axes of inputs with these shapes. Axes in a list get separate symbols: `x_dim1`.

    A size without a declared minimum is at least 1, unless the example is empty there.

    Raises InputError for an unknown input, an axis out of range, an object that does not declare a size, contradictory
    bounds, or an example that does not have such sizes.
    """
    axes: dict[str, dict[int, AxisSize]] = {}
    declarations: dict[str, tuple[Any, Bounds]] = {}
    example_sizes: dict[str, tuple[int, str]] = {}
    kept_least: set[str] = set()
    for name, axis, declaration in _pairs(declared, shapes):
        size, bounds = size_of(declaration, f"{name}_dim{axis}")
        if size is None:
            continue
        if axes.setdefault(name, {}).setdefault(axis, size) != size:
            raise InputError(f"dynamic_axes: axis {axis} of `{name}` is given twice")
        if bounds is not None:
            earlier, first = declarations.setdefault(size.name, (declaration, bounds))
            kept_least.update({size.name} if isinstance(declaration, SizeFrom) else ())
            if first != bounds:
                raise InputError(f"dynamic_axes: {size.name} has different bounds in {earlier!r} and {declaration!r}")
        location = f"axis {axis} of `{name}`"
        here = size.symbol_at(shapes[name][axis])
        if here is None:
            raise InputError(f"the example has size {shapes[name][axis]} in {location}, which is declared as {size}")
        other, at = example_sizes.setdefault(size.name, (here, location))
        if other != here:
            raise InputError(f"the example has {size.name} = {other} in {at} and {size.name} = {here} in {location}")
    explicit = {name: both for name, (_, both) in declarations.items()}
    return DeclaredAxes(axes, _range_of(axes, explicit, example_sizes), frozenset(explicit), frozenset(kept_least))


def check_declared(declared: DynamicAxes | None) -> None:
    """Raise InputError for an axis or a size that no input or output could have."""
    for name, axes in (declared or {}).items():
        if not isinstance(axes, Mapping | Sequence) or isinstance(axes, str):
            raise InputError(f"dynamic_axes: {axes!r} of `{name}` are not axes", hint='{axis: "symbol"} or [axis, ...]')
        for axis in axes:
            if not isinstance(axis, int):
                raise InputError(f"dynamic_axes: `{name}` has no axis {axis!r}")
        for declaration in axes.values() if isinstance(axes, Mapping) else ():
            size_of(declaration, name)


def from_zero(declared: DynamicAxes | None, names: Collection[str]) -> DynamicAxes | None:
    """Return a declaration in which these symbols may be 0. Those with declared bounds stay as they are."""

    def widen(of_input: str, axis: Any, new_size: Any) -> Any:
        size, bounds = size_of(new_size, f"{of_input}_dim{axis}")
        if size is None or bounds is not None or not size.is_plain or size.name not in names:
            return new_size
        return SizeFrom(size.name, 0)

    if not declared or not names:
        return declared
    widened: dict[str, Mapping[int, Any]] = {}
    for name, axes in declared.items():
        by_axis = axes if isinstance(axes, Mapping) else dict.fromkeys(axes, "")
        widened[name] = {axis: widen(name, axis, declaration) for axis, declaration in by_axis.items()}
    return widened


def example_sizes(declared: DynamicAxes | None, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Return the sizes of inputs with these shapes, by the symbols of their declared axes. Raises like normalise."""
    axes = normalise(declared, shapes).axes
    symbol_sizes = {
        size.name: size.symbol_at(shapes[name][axis]) for name, sizes in axes.items() for axis, size in sizes.items()
    }
    return {name: size for name, size in symbol_sizes.items() if size is not None}


def _pairs(declared: DynamicAxes | None, shapes: Mapping[str, Sequence[int]]) -> Iterator[tuple[str, int, Any]]:
    """Yield input, axis counted from 0, and its declaration, "" if there is only the axis."""
    for name, axes in (declared or {}).items():
        if name not in shapes:
            raise InputError(
                f"dynamic_axes names the input `{name}`, the model's inputs are {', '.join(shapes) or 'none'}",
                hint="use input_names=[...] to name the inputs",
            )
        rank = len(shapes[name])
        for axis, declaration in axes.items() if isinstance(axes, Mapping) else [(a, "") for a in axes]:
            if not isinstance(axis, int) or not -rank <= axis < rank:
                raise InputError(f"dynamic_axes: `{name}` has rank {rank}, there is no axis {axis}")
            yield name, axis % rank, declaration


def size_of(size: Any, default: str) -> tuple[AxisSize | None, Bounds | None]:
    """Return the size, None for a static one, and the bounds of its symbol, if declared."""
    if isinstance(size, SizeFrom):
        if size.least < 0:
            raise InputError(f"dynamic_axes: no axis has a size of {size.least}, the least of {size.name}")
        return AxisSize(_symbol(size.name)), (size.least, None)
    hint = getattr(size, "type", None)
    if size is None or getattr(hint, "name", "") == "STATIC":
        return None, None
    if hint is not None and hasattr(size, "min"):  # Dim.DYNAMIC, Dim.AUTO, with or without bounds
        low, high = size.min, size.max
        return AxisSize(default), None if low is high is None else (LEAST if low is None else low, high)
    if isinstance(size, Dim):
        root, factor, offset = size, 1, 0
        of_root: Any = getattr(size, "fn", None)  # of a derived one: linear, and growing
        if of_root is not None:
            root, offset = getattr(size, "root", size), int(of_root(0))
            factor = int(of_root(1)) - offset
        high = int(root.max) if isinstance(root.max, int) else None
        # a Dim does not show whether its 0 was declared: without any bound it is equivalent to a name
        bounds = None if high is None and root.min == 0 else (int(root.min), high)
        return AxisSize(_symbol(root.__name__), factor, offset), bounds
    if not isinstance(size, str):
        raise InputError(f"dynamic_axes: {size!r} is not a size", hint='a name such as "T", or a torch.export.Dim')
    return AxisSize(_symbol(size or default)), None


def _symbol(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z]\w*", name):
        raise InputError(f"dynamic_axes: {name!r} is not a symbol", hint="a symbol is a name: letters, digits and _")
    return name


def _range_of(
    axes: Mapping[str, Mapping[int, AxisSize]],
    explicit_bounds: Mapping[str, Bounds],
    example_sizes: Mapping[str, tuple[int, str]],
) -> SizeRange:
    bounds: dict[str, Bounds] = {}
    for name, (here, location) in example_sizes.items():
        low, high = explicit_bounds.get(name, (min(LEAST, here), None))
        sizes = {size for of_input in axes.values() for size in of_input.values() if size.name == name}
        low = max(low, *(-(size.offset // size.factor) for size in sizes))  # no size is negative
        if here < low or (high is not None and here > high):
            declared = f"{name} >= {low}" if high is None else f"{low} <= {name} <= {high}"
            raise InputError(f"the example has {name} = {here} in {location}, outside of its range {declared}")
        bounds[name] = low, high
    return SizeRange(dict(sorted(bounds.items())))
