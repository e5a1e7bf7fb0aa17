"""The transforms of a session or a test: names that engines have, read from an option or a marker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_t2n.records.cell import SelectedEngine


def read_transforms(given: Any) -> tuple[str, ...]:
    """Return transforms that some release has and a check can judge, as texts, each once. Raises ValueError."""
    from t2n_core.engine.tract.transforms.transform import transforms_from
    from t2n_core.errors import InputError

    if not isinstance(given, str | list | tuple):
        raise ValueError(f"{given!r} is neither a name nor a list of names")
    try:
        found = transforms_from(given)
        for one in found:
            if one.known.refused:
                raise InputError(f"the transform {one.name} cannot be checked", hint=one.known.refused)
    except InputError as exc:
        raise ValueError(f"{exc.message} ({exc.hint})" if exc.hint else exc.message) from None
    return tuple(dict.fromkeys(map(str, found)))


def require_transforms(transforms: Sequence[str], engines: Sequence[SelectedEngine]) -> None:
    """Raise pytest.UsageError for a transform that no engine of the session has."""
    versions = [engine.version for engine in engines if engine.target == "tract"]
    for name in transforms:
        if versions and all(why_not(name, version) for version in versions):
            raise pytest.UsageError(f"--t2n-transforms: {why_not(name, versions[-1])}")


def why_not(name: str, version: str) -> str:
    """Return why a release does not take a transform; '' if it does."""
    from t2n_core.engine.tract.transforms.transform import Transform
    from t2n_core.errors import InputError

    try:
        Transform.of(name).require(version)
    except InputError as exc:
        return f"{exc.message} ({exc.hint})" if exc.hint else exc.message
    return ""


__all__ = ["read_transforms", "require_transforms", "why_not"]
