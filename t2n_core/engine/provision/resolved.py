"""One engine whose files are on this machine: the result of resolution, which is passed to other processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from t2n_core.engine.tiers import NATIVE, tier_environment

EngineKind = Literal["wheel", "cli"]
_PROGRAMS = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
"""First bytes of executables of Linux, Windows and macOS."""
CPU = "cpu"
"""The runtime of every release."""


@dataclass(frozen=True, slots=True)
class ResolvedEngine:
    """An engine whose files are on this machine. A plain value, so that it can be passed to other processes."""

    kind: EngineKind
    version: str
    """Version of the distribution, or as a command-line binary reports it. The library's own is not trusted."""
    library: Path
    """The shared library, or the command-line binary of kind `cli`."""
    sha256: str
    """SHA-256 of `library`, in hexadecimal."""
    requested: str
    """The item of the version spec that selected it, as written."""
    tier: str = NATIVE
    """The kernels that it may use: `native`, or `no-fma` as on a processor without FMA."""
    runtime: str = CPU
    """The runtime that it computes on: `cpu`, or another in the library, such as `cuda`."""
    paths: str = ""
    """A comma list of the paths on which archives are checked; empty for all that the release has."""

    @property
    def label(self) -> str:
        """Return a name that is unique within one session: `0.21.19`, `0.23.8 no-fma`, `path-0.23.5` for a binary."""
        name = self.version if self.kind == "wheel" else f"path-{self.version}"
        return " ".join([name, *(part for part in (self.tier, self.runtime) if part not in (NATIVE, CPU))])

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables by which the library of this tier chooses its kernels."""
        return tier_environment(self.tier)

    @property
    def is_script(self) -> bool:
        """Return whether the engine is a script, which runs other files that its digest does not cover."""
        if self.kind == "wheel":
            return False
        try:
            with self.library.open("rb") as file:
                return not file.read(4).startswith(_PROGRAMS)
        except OSError:
            return True

    def to_dict(self) -> dict[str, str]:
        return {
            "kind": self.kind,
            "version": self.version,
            "library": str(self.library),
            "sha256": self.sha256,
            "requested": self.requested,
            "tier": self.tier,
            "runtime": self.runtime,
            "paths": self.paths,
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
            tier=fields["tier"],
            runtime=fields["runtime"],
            paths=fields["paths"],
        )
