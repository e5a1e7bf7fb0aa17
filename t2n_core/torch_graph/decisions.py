"""What capture takes for granted about dynamic sizes, and which line of the model made it do so.

Python code that looks at a size (`if x.shape[1] > 5`, `range(len(x))`) and operators that need a certain one
(`x + ones(7)`) are decided for the example inputs. PyTorch's shape environment notes each such decision as a guard; the
frames on the stack at that moment say where it comes from.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import sympy
import torch

from t2n_core.errors import Origin
from t2n_core.torch_graph import naming

NOT_THE_MODELS = (*(f"{Path(found).parent}/" for found in (torch.__file__, Path(__file__).parent, sympy.__file__)), "<")
"""How the names of files begin that are no code of a model."""
_PYTHON = "Python code that looks at a size"


@dataclass(frozen=True, slots=True)
class Decision:
    """One condition on sizes that held while capturing."""

    condition: Any
    """Of sympy, in PyTorch's symbols."""
    origin: Origin

    def fixes(self) -> int | None:
        """The number that the condition makes one size equal to, also as in `8 * T == 56`."""
        symbols = self.condition.free_symbols
        if not isinstance(self.condition, sympy.Eq) or len(symbols) != 1:
            return None
        (symbol,) = symbols
        difference = sympy.expand(self.condition.lhs - self.condition.rhs)
        if not difference.is_polynomial(symbol) or sympy.degree(difference, symbol) != 1:
            return None
        size = -difference.coeff(symbol, 0) / difference.coeff(symbol, 1)
        return int(size) if size.is_Integer else None


@dataclass(frozen=True, slots=True)
class SizeDecision:
    """A decision in the user's symbols."""

    decision: Decision
    names: Mapping[str, str]
    """PyTorch's symbol -> the user's."""

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """False only for what is certainly decided otherwise at these sizes."""
        values = {s: sympy.Integer(sizes[self.names[s.name]]) for s in self.decision.condition.free_symbols}
        return bool(self.decision.condition.xreplace(values) != sympy.false)

    def __str__(self) -> str:
        renamed = {s: sympy.Symbol(self.names[s.name]) for s in self.decision.condition.free_symbols}
        return f"{self.decision.condition.xreplace(renamed)}, decided by {self.decision.origin}"


class Decisions:
    """All of one capture."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Decision] = {}

    @contextmanager
    def recording(self) -> Iterator[None]:
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        plain = getattr(ShapeEnv, "_log_guard", None)
        if plain is None:  # another PyTorch: there is nothing to tell then
            yield
            return

        def log_guard(env: Any, prefix: str, g: Any, *rest: Any, **more: Any) -> Any:
            self._note(g)
            return plain(env, prefix, g, *rest, **more)

        with patch.object(ShapeEnv, "_log_guard", log_guard):
            yield

    def _note(self, condition: Any) -> None:
        origin = _origin()
        if origin is not None and isinstance(condition, sympy.Basic) and condition.free_symbols:
            self._found.setdefault((str(condition), origin.source), Decision(condition, origin))

    def fixing(self) -> list[Decision]:
        """Those that fix a size to a number."""
        return [decision for decision in self._found.values() if decision.fixes() is not None]

    def named(self, names: Mapping[str, str]) -> tuple[SizeDecision, ...]:
        """Those about sizes that have a name."""
        known = (d for d in self._found.values() if {s.name for s in d.condition.free_symbols} <= names.keys())
        return tuple(SizeDecision(decision, names) for decision in known)


def flipped(decisions: Iterable[SizeDecision], sizes: Iterable[Mapping[str, int]]) -> list[SizeDecision]:
    """Those that are decided otherwise at some of these sizes, at the most of them first."""
    tried = list(sizes)
    counted = [(sum(not decision.holds(one) for one in tried), decision) for decision in decisions]
    return [decision for count, decision in sorted(counted, key=lambda pair: -pair[0]) if count]


def _origin() -> Origin | None:
    """The model's line that is being run, and the operator it called; None outside of any model."""
    frame: FrameType | None = sys._getframe(2)
    operator = ""
    while frame is not None:
        place = frame.f_code.co_filename
        if not place.startswith(NOT_THE_MODELS):
            code = linecache.getline(place, frame.f_lineno).strip()
            return Origin(
                operator or _PYTHON, "", naming.source_line(place, frame.f_lineno, frame.f_code.co_name, code)
            )
        called = frame.f_locals.get("func") or frame.f_locals.get("self")
        if isinstance(called, torch._ops.OpOverload):
            operator = naming.kind_of(called)
        frame = frame.f_back
    return None


__all__ = ["Decision", "Decisions", "SizeDecision", "flipped"]
