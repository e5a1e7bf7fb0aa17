"""One engine whose files are on this machine: what resolution gives, and what travels to other processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

EngineKind = Literal["wheel", "cli"]


@dataclass(frozen=True, slots=True)
class ResolvedEngine:
    """An engine whose files are on this machine. It is a plain value, so that it can travel to other processes."""

    kind: EngineKind
    version: str
    """Version of the distribution, or the one that a command-line binary reports. The library's own is not trusted."""
    library: Path
    """The shared library, or the command-line binary of kind `cli`."""
    sha256: str
    """SHA-256 of `library`, in hexadecimal."""
    requested: str
    """The item of the version spec that asked for it, as written."""

    @property
    def label(self) -> str:
        """Return a name that is unique within one resolution: `0.21.19`, or `path-0.23.5` for a binary."""
        return self.version if self.kind == "wheel" else f"path-{self.version}"

    def to_dict(self) -> dict[str, str]:
        return {
            "kind": self.kind,
            "version": self.version,
            "library": str(self.library),
            "sha256": self.sha256,
            "requested": self.requested,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, str]) -> ResolvedEngine:
        """Return the engine that `to_dict` described.

        Raises KeyError for a missing field, and ValueError for an unknown kind.
        """
        kind = fields["kind"]
        if kind not in ("wheel", "cli"):
            raise ValueError(f"unknown kind of engine: {kind!r}")
        return cls(
            kind="wheel" if kind == "wheel" else "cli",
            version=fields["version"],
            library=Path(fields["library"]),
            sha256=fields["sha256"],
            requested=fields["requested"],
        )
