"""Precision plans: which operators of which modules are computed in float16, and which in float32.

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
    """Operators of modules, with the precision that they are computed in."""

    precision: Precision
    modules: tuple[str, ...] = ("*",)
    """Patterns of module paths; the model itself is the empty path."""
    operators: tuple[str, ...] = ("*",)
    """Patterns of names of torch operators: `conv2d`, `softmax`."""
    reason: str = ""

    def fits(self, module: str, operator: str) -> bool:
        """Return whether the entry applies to an operator called by a module."""
        return any(fnmatchcase(module, p) for p in self.modules) and any(
            fnmatchcase(operator, p) for p in self.operators
        )


@dataclass(frozen=True, slots=True)
class PrecisionPlan:
    """A default precision, and entries that override it; the first entry that applies decides."""

    default: Precision = "float16"
    entries: tuple[PlanEntry, ...] = ()
    accumulation: Precision = "float16"
    """Dtype that products of float16 are computed and summed in, before each result is rounded."""

    def of(self, module: str, operator: str) -> Precision:
        """Return the precision of an operator called by a module."""
        return next((entry.precision for entry in self.entries if entry.fits(module, operator)), self.default)

    @classmethod
    def read(cls, path: Path) -> PrecisionPlan:
        """Return the plan from a file. Raises InputError if it is not one."""
        try:
            return cls.parse(tomllib.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as cause:
            raise InputError(f"{path} is not a precision plan: {cause}") from cause

    @classmethod
    def parse(cls, table: Mapping[str, Any]) -> PrecisionPlan:
        """Return the plan of a TOML table. Raises InputError for an unknown key or value."""
        dtypes = {key: table.get(key, "float16") for key in ("default", "accumulation")}
        wrong = [f"{key} = {dtype!r}" for key, dtype in dtypes.items() if dtype not in _DTYPES]
        wrong += [f"`{key}`" for key in sorted(table.keys() - {*dtypes, *_DTYPES})]
        if wrong:
            sections = "default, accumulation, [[float16]], [[float32]]"
            raise InputError(f"a precision plan has no {wrong[0]}", hint=sections)
        # float32 entries come first: in a plan with both, they are the exceptions
        entries = [_entry(dtype, entry) for dtype in reversed(_DTYPES) for entry in table.get(dtype, ())]
        return cls(dtypes["default"], tuple(entries), dtypes["accumulation"])

    def toml(self, comment: Sequence[str] = ()) -> str:
        """Return the plan as text, below lines of comment."""
        lines = [*(f"# {line}" for line in comment), f'default = "{self.default}"']
        lines += [f'accumulation = "{self.accumulation}"'] if self.accumulation != "float16" else []
        for entry in self.entries:
            lines += ["", f"[[{entry.precision}]]", f"modules = {json.dumps(entry.modules)}"]
            lines.append(f"operators = {json.dumps(entry.operators)}")
            lines += [f"reason = {json.dumps(entry.reason)}"] if entry.reason else []
        return "\n".join([*lines, ""])


def _entry(dtype: Precision, table: Any) -> PlanEntry:
    fields = {"modules", "operators", "reason"}
    if not isinstance(table, Mapping) or table.keys() - fields:
        raise InputError(f"an entry [[{dtype}]] of a plan has no {table!r}", hint=", ".join(sorted(fields)))
    lists = {}
    for key in ("modules", "operators"):
        patterns = table.get(key, ["*"])
        if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
            raise InputError(f"{key} = {patterns!r} of an entry [[{dtype}]] is not a list of patterns")
        lists[key] = tuple(patterns)
    return PlanEntry(dtype, **lists, reason=str(table.get("reason", "")))
