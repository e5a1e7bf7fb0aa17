"""PyTorch's operators by name, and the releases of operators that only some supported releases have.

A look-up of an operator that the installed PyTorch lacks is empty and never an AttributeError: no model of that release
can hold it, so its rules and decompositions are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch
from packaging.version import Version

from t2n_core.errors import RegistryError
from t2n_core.nnef.releases import Releases
from t2n_core.torch_graph.compat.private import OpOverload, OpOverloadPacket, missing_name_error
from t2n_core.torch_graph.compat.releases import untested_note


@dataclass(frozen=True, slots=True)
class Change:
    """An operator that some of the supported releases lack."""

    key: str
    """Operator or overload: `aten::cholesky`, `aten::median.dim`."""
    since: str | None = None
    """The first release with it; None if the oldest supported one has it."""
    before: str | None = None
    """The first release without it again; None if the newest tested one has it."""
    instead: str = ""
    """The operator that models hold in its place in releases without it."""

    def is_in(self, release: str) -> bool:
        """Return whether a release has the operator."""
        return Version(Version(release).base_version) in Releases.of(self.since, self.before)


CHANGES: Final = (Change("aten::cholesky", before="2.14", instead="aten::linalg_cholesky_ex"),)


def find_packet(key: str) -> OpOverloadPacket | None:
    """Return the operator of a key, with or without overload (`aten::median.dim`); None if this PyTorch lacks it."""
    namespace, _, rest = key.partition("::")
    name = rest.partition(".")[0]
    packet: OpOverloadPacket | None = getattr(getattr(torch.ops, namespace), name, None) if name else None
    return packet


def find_overloads(key: str) -> list[OpOverload]:
    """Return the named overload (`aten::median.dim`), or all overloads of an operator; empty if there are none."""
    packet = find_packet(key)
    if packet is None:
        return []
    overload = key.partition("::")[2].partition(".")[2]
    names = [overload] if overload else packet.overloads()  # type: ignore[no-untyped-call]
    return [getattr(packet, n) for n in names if hasattr(packet, n)]


def functional_overloads(key: str) -> list[OpOverload]:
    """Return the result of `find_overloads` without overloads that write into an argument `out`.

    Raises RegistryError for an operator that no supported PyTorch has.
    """
    overloads = find_overloads(key)
    if not overloads and not may_be_absent(key):
        raise RegistryError(f"PyTorch {torch.__version__} has no operator {key}")
    return overloads if "." in key else [o for o in overloads if not _writes_out(o._overloadname)]


def _writes_out(overload: str) -> bool:
    return overload == "out" or overload.endswith("_out")


def operator(key: str) -> Any:
    """Return an operator or overload that the converter cannot do without. Raises TorchVersionError if it is absent."""
    packet = find_packet(key)
    overload = key.partition("::")[2].partition(".")[2]
    result = getattr(packet, overload, None) if overload else packet
    if result is None:
        raise missing_name_error(key)
    return result


def may_be_absent(key: str) -> bool:
    """Return whether the installed PyTorch may lack an operator: according to CHANGES, or as an untested release."""
    changes = [c for c in CHANGES if key == c.key or key.startswith(f"{c.key}.")]
    return bool(untested_note(torch.__version__)) or any(not c.is_in(torch.__version__) for c in changes)
