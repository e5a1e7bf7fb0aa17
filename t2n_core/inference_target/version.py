"""Versions of targets: text that compares as a version."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version

from t2n_core.errors import InputError


class SemanticVersion(str):
    """A version as text, which compares with other versions as a version: `target.version > "0.21.5"`.

    It equals its text and is printed as such; only `<`, `<=`, `>` and `>=` differ from plain text.
    """

    __slots__ = ()

    @classmethod
    def from_str(cls, version: str) -> SemanticVersion:
        """Return the version that a text names. Raises InputError if it names none."""
        _version(version)
        return cls(version)

    def __lt__(self, other: object) -> bool:
        return _version(self) < _version(other)

    def __le__(self, other: object) -> bool:
        return _version(self) <= _version(other)

    def __gt__(self, other: object) -> bool:
        return _version(self) > _version(other)

    def __ge__(self, other: object) -> bool:
        return _version(self) >= _version(other)


def version_text(version: object) -> str:
    """Return a user's version as text. Raises InputError for a value that is not a version."""
    if isinstance(version, str | Version) and str(version).strip():
        return str(version)
    raise InputError(f"version={version!r} is not a version", hint='write it as text, such as "0.21.13" or "latest"')


def _version(value: object) -> Version:
    try:
        return Version(str(value) if isinstance(value, str | Version) else "")
    except InvalidVersion:
        hint = 'compare with text such as "0.21.5"'
        raise InputError(f"{value!r} is not a version, and cannot be compared with one", hint=hint) from None
