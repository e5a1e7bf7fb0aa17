"""Plans of precision: which operators of which modules are computed in float16, and which in float32.

default = "float16"
accumulation = "float32"

[[float32]]
modules = ["features.*.attn"]
operators = ["clamp_min", "div"]
reason = "epsilon 1e-12"
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from t2n_core.errors import InputError

Precision: TypeAlias = Literal["float16", "float32"]
_DTYPES: Final[tuple[Precision, Precision]] = ("float16", "float32")


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """Operators of modules, with what they are computed in."""

    precision: Precision
    modules: tuple[str, ...] = ("*",)
    """Patterns of module paths; the model itself is the empty path."""
    operators: tuple[str, ...] = ("*",)
    """Patterns of names of torch operators: `conv2d`, `softmax`."""
    reason: str = ""

    def fits(self, module: str, operator: str) -> bool:
        """Return whether an operator called by a module is meant."""
        return any(fnmatchcase(module, p) for p in self.modules) and any(
            fnmatchcase(operator, p) for p in self.operators
        )


@dataclass(frozen=True, slots=True)
class PrecisionPlan:
    """Entries of which the first that fits decides, and what holds where none does."""

    default: Precision = "float16"
    entries: tuple[PlanEntry, ...] = ()
    accumulation: Precision = "float16"
    """Dtype that products of float16 are computed and summed in, before each result is rounded."""

    def of(self, module: str, operator: str) -> Precision:
        """Return what an operator called by a module is computed in."""
        return next((one.precision for one in self.entries if one.fits(module, operator)), self.default)

    @classmethod
    def read(cls, path: Path) -> PrecisionPlan:
        """Return the plan of a file. Raises InputError for what is none."""
        try:
            return cls.parse(tomllib.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as cause:
            raise InputError(f"{path} is no plan of precision: {cause}") from cause

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> PrecisionPlan:
        """Return the plan of a table as TOML has it. Raises InputError for a word that is none of a plan's."""
        dtypes = {word: given.get(word, "float16") for word in ("default", "accumulation")}
        wrong = [f"{word} = {dtype!r}" for word, dtype in dtypes.items() if dtype not in _DTYPES]
        wrong += [f"`{word}`" for word in sorted(given.keys() - {*dtypes, *_DTYPES})]
        if wrong:
            known = "default, accumulation, [[float16]], [[float32]]"
            raise InputError(f"a plan of precision has no {wrong[0]}", hint=known)
        # what stays float32 is asked first: a plan that names both means an exception by it
        entries = [_entry(dtype, one) for dtype in reversed(_DTYPES) for one in given.get(dtype, ())]
        return cls(dtypes["default"], tuple(entries), dtypes["accumulation"])

    def toml(self, comment: Sequence[str] = ()) -> str:
        """Return the plan as text, below lines of comment."""
        lines = [*(f"# {line}" for line in comment), f'default = "{self.default}"']
        lines += [f'accumulation = "{self.accumulation}"'] if self.accumulation != "float16" else []
        for one in self.entries:
            lines += ["", f"[[{one.precision}]]", f"modules = {json.dumps(one.modules)}"]
            lines.append(f"operators = {json.dumps(one.operators)}")
            lines += [f"reason = {json.dumps(one.reason)}"] if one.reason else []
        return "\n".join([*lines, ""])


def _entry(dtype: Precision, given: Any) -> PlanEntry:
    known = {"modules", "operators", "reason"}
    if not isinstance(given, Mapping) or given.keys() - known:
        raise InputError(f"an entry [[{dtype}]] of a plan has no {given!r}", hint=", ".join(sorted(known)))
    lists = {}
    for word in ("modules", "operators"):
        patterns = given.get(word, ["*"])
        if not isinstance(patterns, list) or not all(isinstance(one, str) for one in patterns):
            raise InputError(f"{word} = {patterns!r} of an entry [[{dtype}]] is no list of patterns")
        lists[word] = tuple(patterns)
    return PlanEntry(dtype, **lists, reason=str(given.get("reason", "")))


__all__ = ["PlanEntry", "Precision", "PrecisionPlan"]
