"""The symbolic dimensions of a capture under the user's names."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import sympy
import torch
from sympy.core.relational import Relational

from t2n_core.errors import CaptureError, DataDependentError
from t2n_core.nnef.sizes.dims import Dim, FloorDiv, Max, Min, Modulo, as_dim, same, symbol, symbols_of
from t2n_core.nnef.sizes.ranges import LEAST, SizeRange
from t2n_core.nnef.sizes.size_functions import greatest, least
from t2n_core.torch_graph.constraints.declared_axes import AxisSize
from t2n_core.torch_graph.constraints.rounded_sizes import KINDS, exact_quotient


class SymbolTable:
    """Translates the size expressions of one capture into ours, with the user's symbol names."""

    def __init__(self, sizes: SizeRange | None = None) -> None:
        self.range = SizeRange() if sizes is None else sizes
        """The sizes for which the captured graph is valid."""
        self._names: dict[str, sympy.Expr] = {}
        """PyTorch's symbol -> the user's, or a declared multiple of it."""
        self._known: dict[Any, Dim] = {}
        self.symints: dict[str, torch.SymInt] = {}
        """Symbol -> PyTorch's own symbolic size."""
        self.fake_mode: Any = None
        """The fake tensor mode of capture, for decompositions."""
        self._decided: dict[Any, Dim] = {}
        self._forms: dict[str, Any] = {}

    def learn(self, size: Any, declared: AxisSize) -> None:
        """Record `size` as the traced size of an axis with this declaration. Raises CaptureError if they disagree."""
        expression = size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size)
        bounds = self.range.bounds.get(declared.name, (LEAST, None))
        extent = declared.extent(symbol(declared.name, *bounds))
        if not expression.is_Symbol:
            tied = self.expression(expression) if expression.free_symbols and self.knows(expression) else None
            if tied is not None and not declared.is_plain and same(tied, extent):
                return
            raise CaptureError(
                f"the axis `{declared}` is not free: this model fixes it to {expression if tied is None else tied}",
                hint="declare it static, or change the operator that depends on the traced size"
                if tied is None
                else 'declare it so: 2 * torch.export.Dim("T") is the size of an axis, too',
            )
        earlier = self._names.setdefault(expression.name, extent)
        if earlier != extent:
            raise CaptureError(
                f"the axes `{earlier}` and `{extent}` must be equal in this model",
                hint="give both axes the same symbol in dynamic_axes",
            )
        if declared.is_plain or declared.name not in self.symints:
            self.symints[declared.name] = size if declared.is_plain else (size - declared.offset) // declared.factor

    def learn_first_name(self, size: torch.SymInt, extent: Any) -> None:
        """Record a size under the name it had before PyTorch found it equal to another size or to a constant."""
        before: Any = size.node._expr
        if before.is_Symbol:
            self._names.setdefault(before.name, extent)

    def learn_replaced(self) -> None:
        """Record the symbols that PyTorch replaced by others or by constants, since it found them equal.

        Earlier decisions of the model still refer to them.
        """
        env = getattr(self.fake_mode, "shape_env", None)
        waiting = {} if env is None else {s: e for s, e in env.replacements.items() if s.name not in self._names}
        while ready := [s for s, e in waiting.items() if self.knows(e)]:
            for replaced in ready:
                with suppress(CaptureError):
                    self._names[replaced.name] = sympy.sympify(self.expression(waiting[replaced]))
                del waiting[replaced]

    def name_of(self, size: Any) -> str | None:
        """Return the user's name of a free size of the capture, if it is already known."""
        expression = self._names.get(str(size.node.expr)) if isinstance(size, torch.SymInt) else None
        return str(expression.name) if expression is not None and expression.is_Symbol else None

    def write_as(self, forms: Mapping[str, Dim]) -> None:
        """Replace symbols by equal expressions, such as T by `4 * (T // 4)`, in all sizes from now on."""
        self._forms = dict(forms)
        self._names = {name: self._in_forms(extent) for name, extent in self._names.items()}
        self._known.clear()

    def _in_forms(self, e: Any) -> Any:
        return e.xreplace({s: self._forms[s.name] for s in e.free_symbols if s.name in self._forms})

    def decide(self, expression: Any, dim: Dim) -> None:
        """Fix the value of a PyTorch size expression for this capture, also of a data-dependent size."""
        self._known.pop(expression, None)
        self._decided[expression] = dim

    def knows(self, expression: Any) -> bool:
        """Return whether a PyTorch expression contains only sizes of the inputs."""
        return all(size.name in self._names for size in expression.free_symbols)

    def condition(self, condition: Any) -> Any:
        """Return a condition on PyTorch's sizes as one on ours; functions without an equivalent stay PyTorch's."""
        if isinstance(condition, sympy.Not | sympy.And | sympy.Or):
            return condition.func(*map(self.condition, condition.args))
        if not isinstance(condition, Relational):
            return condition
        try:
            sides = [sympy.sympify(self.expression(side)) for side in condition.args]
        except CaptureError:
            return condition.xreplace({s: self._names[s.name] for s in condition.free_symbols})
        return condition.func(*sides, evaluate=False)

    @property
    def names(self) -> list[str]:
        return sorted(symbols_of(self._names.values()))

    def dim(self, size: Any) -> Dim:
        """Return a size of PyTorch (int or SymInt) as a Dim."""
        if isinstance(size, int):
            return size
        return self.expression(size.node.expr)

    def expression(self, expression: Any) -> Dim:
        if expression not in self._known:
            self._known[expression] = self._within_range(as_dim(self._translate(expression)))
        return self._known[expression]

    def _within_range(self, dim: Dim) -> Dim:
        """Simplify a size within the range: 1 for `(T+2)/3` if `T <= 3`, S for `Min(S, T)` if `S <= T`."""
        if isinstance(dim, int) or not dim.has(FloorDiv, Modulo, Max, Min):
            return dim
        bounds = self.range.bounds
        if any(bounds.get(s.name, (LEAST, None))[1] is not None for s in dim.free_symbols):
            bounded = dim.xreplace({s: symbol(s.name, *bounds.get(s.name, (LEAST, None))) for s in dim.free_symbols})
            low = least(bounded)
            if low is not None and low == greatest(bounded):
                return int(low)
        names = {s.name: s for extent in self._names.values() for s in extent.free_symbols}
        for condition in self.range.conditions:
            if isinstance(condition, sympy.Le | sympy.Ge) and all(s.name in names for s in condition.free_symbols):
                renamed = self._in_forms(condition.xreplace({s: names[s.name] for s in condition.free_symbols}))
                less, more = renamed.args if isinstance(renamed, sympy.Le) else renamed.args[::-1]
                dim = as_dim(sympy.sympify(dim).xreplace({Min(less, more): less, Max(less, more): more}))
        return dim

    def _translate(self, e: Any) -> Any:
        if e in self._decided:
            return sympy.sympify(self._decided[e])
        if e.is_Symbol:
            if e.name not in self._names:
                raise DataDependentError(
                    f"a size of this model depends on its data ({e})",
                    hint="take the size from a shape instead of `.item()`; instead of x[mask] or nonzero keep all "
                    "elements and select: torch.where(mask, x, 0)",
                )
            return self._names[e.name]
        if e.is_Number:
            return e
        kind = type(e).__name__
        if kind in KINDS:
            return exact_quotient(kind, e.args[0], self._translate)
        arguments = [self._translate(a) for a in e.args]
        if kind == "ToFloat":
            return arguments[0]
        if kind in ("IntTrueDiv", "FloatTrueDiv"):
            return arguments[0] / arguments[1]
        if kind == "Abs":
            return Max(arguments[0], -arguments[0])
        if kind in ("FloorDiv", "CleanDiv"):
            return FloorDiv(*arguments)
        if kind in ("Mod", "PythonMod"):
            return Modulo(*arguments)
        if kind in ("Add", "Mul", "Pow"):
            return sympy.sympify(as_dim(e.func(*arguments)))
        if kind in ("Max", "Min"):
            return (Max if kind == "Max" else Min)(*arguments)
        raise CaptureError(f"a size of this model is computed by {kind}, which is not supported ({e})")
