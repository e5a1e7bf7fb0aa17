"""The transforms of a session or a test: names of engine transforms, read from an option or a marker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_t2n.records.cell import SelectedEngine
from t2n_core.errors import InputError


def read_transforms(value: Any) -> tuple[str, ...]:
    """Return transforms that some release supports and a check can judge, as texts, each once. Raises ValueError."""
    from t2n_core.engine.tract.transforms.transform import transforms_from

    if not isinstance(value, str | list | tuple):
        raise ValueError(f"{value!r} is neither a name nor a list of names")
    try:
        transforms = transforms_from(value)
        for transform in transforms:
            transform.refuse_unchecked()
    except InputError as exc:
        raise ValueError(f"{exc.message} ({exc.hint})" if exc.hint else exc.message) from None
    return tuple(dict.fromkeys(map(str, transforms)))


def require_transforms(transforms: Sequence[str], engines: Sequence[SelectedEngine]) -> None:
    """Raise InputError for a transform that no engine of the session has."""
    versions = [engine.version for engine in engines if engine.target == "tract"]
    for name in transforms:
        refusals = [refusal(name, version) for version in versions]
        if refusals and (last := refusals[-1]) is not None and all(refusals):
            raise InputError(f"--t2n-transforms: {last.message} ({last.hint})")


def refusal(name: str, version: str) -> InputError | None:
    """Return the error of a release that does not support a transform; None if it does."""
    from t2n_core.engine.tract.transforms.transform import Transform

    try:
        Transform.of(name).require(version)
    except InputError as exc:
        return exc
    return None
