"""Dynamic axes: what a user declares, what torch.export wants, and the symbols of capture under the user's names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import sympy
import torch

from t2n_core.errors import CaptureError, InputError
from t2n_core.nnef.dims import Dim, FloorDiv, Modulo, as_dim, symbol

DynamicAxes = Mapping[str, Mapping[int, str] | Sequence[int]]


def normalise(declared: DynamicAxes | None, shapes: Mapping[str, Sequence[int]]) -> dict[str, dict[int, str]]:
    """{input: {axis >= 0: symbol}}. A list of axes gets symbols of its own: `x_dim1`.

    Raises InputError for an unknown input, an axis out of range, or a symbol that is not an identifier.
    """
    result: dict[str, dict[int, str]] = {}
    for name, axes in (declared or {}).items():
        if name not in shapes:
            raise InputError(
                f"dynamic_axes names the input `{name}`, the model's inputs are {', '.join(shapes) or 'none'}",
                hint="use input_names=[...] to name the inputs",
            )
        rank = len(shapes[name])
        pairs = axes.items() if isinstance(axes, Mapping) else [(a, "") for a in axes]
        for axis, wanted in pairs:
            if not isinstance(axis, int) or not -rank <= axis < rank:
                raise InputError(f"dynamic_axes: `{name}` has rank {rank}, there is no axis {axis}")
            place = axis % rank
            text = wanted or f"{name}_dim{place}"
            if not re.fullmatch(r"[A-Za-z]\w*", text):
                raise InputError(
                    f"dynamic_axes: {text!r} is not a symbol", hint="a symbol is a name: letters, digits and _"
                )
            if place in result.setdefault(name, {}) and result[name][place] != text:
                raise InputError(f"dynamic_axes: axis {place} of `{name}` is given twice")
            result[name][place] = text
    return result


class SymbolTable:
    """Translates the size expressions of one capture into ours, with the user's symbol names."""

    def __init__(self) -> None:
        self._names: dict[str, sympy.Symbol] = {}
        self._known: dict[Any, Dim] = {}
        self.symints: dict[str, torch.SymInt] = {}
        """Symbol -> PyTorch's own symbolic size."""
        self.fake_mode: Any = None
        """The fake tensor mode of capture, for decompositions."""
        self._decided: dict[Any, Dim] = {}
        self.clipped: list[Dim] = []
        """Expressions with Max or Min whose greater or smaller side was decided by the example."""
        self._bounds: dict[sympy.Symbol, int] = {}
        """Largest size that the model itself can run with: the length of a table of positions."""

    def learn(self, size: Any, name: str) -> None:
        """`size` is the traced size of an axis that the user calls `name`. Raises CaptureError where both disagree."""
        expression = size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size)
        if not expression.is_Symbol:
            raise CaptureError(
                f"the axis `{name}` is not free: this model fixes it to {expression}",
                hint="declare it static, or change the operator that depends on the traced size",
            )
        known = self._names.setdefault(expression.name, symbol(name))
        if known.name != name:
            raise CaptureError(
                f"the axes `{known.name}` and `{name}` must be equal in this model",
                hint="give both axes the same symbol in dynamic_axes",
            )
        self.symints.setdefault(name, size)

    def name_of(self, size: Any) -> str | None:
        """What the user calls a free size of capture, if it is known already."""
        known = self._names.get(str(size.node.expr)) if isinstance(size, torch.SymInt) else None
        return None if known is None else str(known.name)

    def decide(self, expression: Any, dim: Dim) -> None:
        """`dim` is what an expression of PyTorch's is in this model; also a size that else would depend on data."""
        if not expression.is_Symbol:
            self.clipped.append(self.expression(expression))
        self._known.pop(expression, None)
        self._decided[expression] = dim

    def assume(self, condition: Any) -> None:
        """Learns from what the captured program asserts of its sizes; to be told before any size is translated.

        `T == Min(T, 64)` says that the model fails beyond 64, so `Min(T, 64)` may be written as T. Nothing is learned
        from a condition of several sizes, or of sizes that depend on data.
        """
        free = condition.free_symbols
        if len(free) != 1 or not all(s.name in self._names for s in free):
            return
        (size,) = free
        constants = sorted({int(n) for n in condition.atoms(sympy.Integer) if n > 0})
        for bound in constants:
            beyond = (bound + 1, bound + 2, 2 * bound + 1, 3 * bound + 5, 10 * bound + 7, 1000 * bound + 1)
            if _holds(condition, size, 1, bound) and not any(_holds(condition, size, n) for n in beyond):
                known = self._bounds.get(self._names[size.name], bound)
                self._bounds[self._names[size.name]] = min(known, bound)
                return

    @property
    def user_names(self) -> dict[str, str]:
        """PyTorch's symbol -> the user's."""
        return {theirs: ours.name for theirs, ours in self._names.items()}

    @property
    def names(self) -> list[str]:
        return sorted({s.name for s in self._names.values()})

    def dim(self, size: Any) -> Dim:
        """One of torch's sizes (int or SymInt) as ours."""
        if isinstance(size, int):
            return size
        return self.expression(size.node.expr)

    def expression(self, expression: Any) -> Dim:
        if expression not in self._known:
            self._known[expression] = as_dim(self._translate(expression))
        return self._known[expression]

    def _translate(self, e: Any) -> Any:
        if e in self._decided:
            return sympy.sympify(self._decided[e])
        if e.is_Symbol:
            if e.name not in self._names:
                raise CaptureError(
                    f"a size of this model depends on its data ({e})",
                    hint="in place of x[mask] or nonzero keep all elements and choose: torch.where(mask, x, 0)",
                )
            return self._names[e.name]
        if e.is_Number:
            return e
        kind = type(e).__name__
        if kind in ("TruncToInt", "FloorToInt", "CeilToInt"):
            return self._rounded(e.args[0], up=kind == "CeilToInt")
        arguments = [self._translate(a) for a in e.args]
        if kind in ("FloorDiv", "CleanDiv"):
            return FloorDiv(*arguments)
        if kind in ("Mod", "PythonMod"):
            return Modulo(*arguments)
        if kind in ("Add", "Mul", "Pow"):
            return e.func(*arguments)
        if kind in ("Max", "Min"):
            return self._extreme(kind, arguments)
        return sympy.Function(kind)(*arguments)

    def _extreme(self, kind: str, arguments: Sequence[Any]) -> Any:
        """Max or Min without the arguments that another one always reaches, within the bounds of the sizes."""
        kept: list[Any] = []
        for a in dict.fromkeys(arguments):
            sign = 1 if kind == "Max" else -1
            if any(self._never_negative(sign * (b - a)) for b in kept):
                continue
            kept = [b for b in kept if not self._never_negative(sign * (a - b))]
            kept.append(a)
        return kept[0] if len(kept) == 1 else getattr(sympy, kind)(*kept)

    def _never_negative(self, e: Any) -> bool:
        """True if a linear expression is at least 0 for all sizes from 1 to their bounds."""
        least = 0
        for term, factor in sympy.expand(e).as_coefficients_dict().items():
            if term.is_Number:
                least += factor * term
            elif not term.is_Symbol:
                return False
            elif factor > 0:
                least += factor
            elif term in self._bounds:
                least += factor * self._bounds[term]
            else:
                return False
        return bool(least >= 0)

    def _rounded(self, e: Any, up: bool) -> Any:
        """`int(size * 1.5)`: exact where the factor is a small fraction of a power of two, as floats are."""
        factor, rest = e.as_coeff_Mul()
        over, under = sympy.Rational(float(factor)).as_numer_denom()
        if type(rest).__name__ == "ToFloat" and 0 < over <= 1 << 20 and under <= 64:
            scaled = over * self._translate(rest.args[0])
            return FloorDiv(scaled + (under - 1 if up else 0), under)
        raise CaptureError(
            f"a size of this model is computed in floating point ({e})",
            hint="use integers, or factors such as 2, 0.5 or 1.5, for what becomes a size",
        )


def _holds(condition: Any, size: Any, *numbers: int) -> bool:
    """False also where PyTorch's expressions have no value: a remainder of a negative number."""
    try:
        return all(condition.subs(size, n) == sympy.true for n in numbers)
    except (AssertionError, ZeroDivisionError):
        return False
