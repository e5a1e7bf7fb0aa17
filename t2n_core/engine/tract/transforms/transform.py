"""A transform as a user specifies it: its name, or the engine's JSON with its arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from t2n_core.engine.tract.transforms.table import KNOWN, TransformEntry, has_transforms, takes_arguments, transforms_of
from t2n_core.errors import InputError
from t2n_core.text import suggestion

_SYNTAX = 'write {"name": "f32_to_f16", "exclude": ["norm"]}'


@dataclass(frozen=True, slots=True)
class Transform:
    """A known transform with its arguments."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, source: str | Mapping[str, Any]) -> Transform:
        """Return the transform that a name, JSON text or mapping specifies; dashes in a name mean underscores.

        Raises InputError for an unknown name, or for anything else.
        """
        if isinstance(source, str) and not source.lstrip().startswith("{"):
            if "(" in source:  # the library looks up the text before the parenthesis, and ignores the rest
                raise InputError(f"{source!r}: the engine's library takes arguments as JSON alone", hint=_SYNTAX)
            name, arguments = source, dict[str, Any]()
        else:
            name, arguments = _parse(source)
        name = name.strip().replace("-", "_")
        if name not in KNOWN:
            hint = suggestion(name, KNOWN, f"there are {', '.join(KNOWN)}")
            raise InputError(f"tract has no transform {name!r}", hint=hint)
        return cls(name, arguments)

    @property
    def entry(self) -> TransformEntry:
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
        if self.entry.refused:
            raise InputError(f"the transform {self.name} cannot be checked", hint=self.entry.refused)

    def __str__(self) -> str:
        return json.dumps({"name": self.name, **self.arguments}) if self.arguments else self.name


def split_names(text: str) -> list[str]:
    """Return the items of a comma list, whose items may be JSON objects."""
    items, depth, quoted, current = [], 0, False, ""
    for position, letter in enumerate(text):
        if letter == '"' and text[position - 1 : position] != "\\":
            quoted = not quoted
        elif not quoted:
            depth += (letter in "{[(") - (letter in "}])")
        if letter == "," and not depth and not quoted:
            items.append(current)
            current = ""
        else:
            current += letter
    return [item.strip() for item in (*items, current) if item.strip()]


def transforms_from(source: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]) -> tuple[Transform, ...]:
    """Return the transforms of a comma list, or of a list. Raises InputError."""
    if isinstance(source, str):
        source = split_names(source)
    return tuple(map(Transform.of, [source] if isinstance(source, Mapping) else source))


def _parse(source: object) -> tuple[str, dict[str, Any]]:
    try:
        parsed = json.loads(source) if isinstance(source, str) else source
    except ValueError as cause:
        raise InputError(f"{source!r} is not JSON: {cause}", hint=_SYNTAX) from cause
    if not isinstance(parsed, Mapping) or not isinstance(parsed.get("name"), str):
        raise InputError(f"{source!r} is not a transform", hint=f"use a name, or {_SYNTAX}")
    return parsed["name"], {key: value for key, value in parsed.items() if key != "name"}
