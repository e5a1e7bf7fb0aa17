"""A transform as a user gives it: its name, or the engine's JSON with its arguments."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from t2n_core.engine.tract.transforms.table import KNOWN, Known, has_transforms, takes_arguments, transforms_of
from t2n_core.errors import InputError

_SYNTAX = 'write {"name": "f32_to_f16", "exclude": ["norm"]}'


@dataclass(frozen=True, slots=True)
class Transform:
    """A known transform with its arguments."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: str | Mapping[str, Any]) -> Transform:
        """Return the transform that a name, JSON text or mapping means; dashes stand for underscores in a name.

        Raises InputError for an unknown name, or for what is none of these.
        """
        if isinstance(given, str) and not given.lstrip().startswith("{"):
            if "(" in given:  # the library looks up what stands before the parenthesis, and drops the rest
                raise InputError(f"{given!r}: the engine's library takes arguments as JSON alone", hint=_SYNTAX)
            name, arguments = given, dict[str, Any]()
        else:
            name, arguments = _read(given)
        name = name.strip().replace("-", "_")
        if name not in KNOWN:
            near = difflib.get_close_matches(name, KNOWN, 1)
            known = f"did you mean {near[0]}?" if near else f"there are {', '.join(KNOWN)}"
            raise InputError(f"tract has no transform {name!r}", hint=known)
        return cls(name, arguments)

    @property
    def known(self) -> Known:
        """Return the entry of the table."""
        return KNOWN[self.name]

    def text_for(self, version: str) -> str:
        """Return the transform as the library of a release takes it."""
        if takes_arguments(version):
            return json.dumps({"name": self.name, **self.arguments})
        return self.name.replace("_", "-")

    def require(self, version: str) -> None:
        """Raise InputError if a release does not have this transform, or no check can judge it."""
        if self.name not in transforms_of(version):
            since = "" if has_transforms(version) else "; other transforms came with 0.21.2"
            raise InputError(
                f"tract {version} has no transform {self.name}",
                hint=f"it has {', '.join(transforms_of(version))}{since}",
            )
        if self.arguments and not takes_arguments(version):
            raise InputError(f"transforms of tract {version} take no arguments: {self}", hint="tract 0.23 and later do")
        self.refuse_unchecked()

    def refuse_unchecked(self) -> None:
        """Raise InputError if no check can judge this transform."""
        if self.known.refused:
            raise InputError(f"the transform {self.name} cannot be checked", hint=self.known.refused)

    def __str__(self) -> str:
        return json.dumps({"name": self.name, **self.arguments}) if self.arguments else self.name


def split_names(text: str) -> list[str]:
    """Return the items of a comma list, whose items may be JSON objects."""
    items, depth, quoted, current = [], 0, False, ""
    for place, letter in enumerate(text):
        if letter == '"' and text[place - 1 : place] != "\\":
            quoted = not quoted
        elif not quoted:
            depth += (letter in "{[(") - (letter in "}])")
        if letter == "," and not depth and not quoted:
            items.append(current)
            current = ""
        else:
            current += letter
    return [item.strip() for item in (*items, current) if item.strip()]


def transforms_from(given: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]) -> tuple[Transform, ...]:
    """Return the transforms of a comma list, or of a list. Raises InputError."""
    if isinstance(given, str):
        given = split_names(given)
    return tuple(map(Transform.of, [given] if isinstance(given, Mapping) else given))


def _read(given: object) -> tuple[str, dict[str, Any]]:
    try:
        read = json.loads(given) if isinstance(given, str) else given
    except ValueError as cause:
        raise InputError(f"{given!r} is no JSON: {cause}", hint=_SYNTAX) from cause
    if not isinstance(read, Mapping) or not isinstance(read.get("name"), str):
        raise InputError(f"{given!r} is no transform", hint=f"give a name, or {_SYNTAX}")
    return read["name"], {key: value for key, value in read.items() if key != "name"}


__all__ = ["Transform", "split_names", "transforms_from"]
