"""The tract engine, in any version that PyPI has."""

from __future__ import annotations

import getpass
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from t2n_core.check.tolerance import DEFAULT_LEVEL, TractCheckTolerance
from t2n_core.engine import ResolvedEngine, engine_for, resolve_engines
from t2n_core.engine.protocol import Engine
from t2n_core.errors import InputError
from t2n_core.inference_target.base import InferenceTarget
from t2n_core.nnef.graph import Graph
from t2n_core.nnef.spec import Spec, spec_for

_EXACT = re.compile(r"\d+\.\d+\.\d+([.a-z]+\d+)*")


class TractNNEF(InferenceTarget):
    """NNEF for tract.

    Args:
        version: `0.21.19`, or what resolves to one release: `0.21` (its newest), `latest`.
        specific_tract_binary_path: a tract command line that checks in place of the release from PyPI.
        specific_properties: written into the archive as tract's `properties`.
        dump_identity_properties: also write user, host and date of the export; the bytes are then not reproducible.
        custom_extensions: further `extension` lines, such as `tract_assert T >= 1`.
        engine: an engine that was resolved before; no index is asked then.
        offline: take engines from the cache only.

    Raises:
        InputError: options that exclude each other.
        EngineResolveError: no such release.
    """

    name: ClassVar[str] = "tract"

    def __init__(
        self,
        version: str = "latest",
        *,
        check_io: bool = True,
        dynamic_axes: Any = None,
        check_io_tolerance: str | TractCheckTolerance = DEFAULT_LEVEL,
        specific_tract_binary_path: str | Path | None = None,
        specific_properties: Mapping[str, str] | None = None,
        dump_identity_properties: bool = False,
        custom_extensions: Sequence[str] = (),
        engine: ResolvedEngine | None = None,
        offline: bool = False,
    ) -> None:
        super().__init__(version, check_io=check_io, dynamic_axes=dynamic_axes, check_io_tolerance=check_io_tolerance)
        if engine is not None and specific_tract_binary_path is not None:
            raise InputError("give either an engine or specific_tract_binary_path")
        self._resolved = engine
        self._binary = None if specific_tract_binary_path is None else Path(specific_tract_binary_path)
        self._offline = offline
        self.specific_properties = dict(specific_properties or {})
        self.dump_identity_properties = dump_identity_properties
        self.custom_extensions = tuple(custom_extensions)

    @classmethod
    def latest(cls, **options: Any) -> TractNNEF:
        """For the newest release on PyPI."""
        return cls("latest", **options)

    @property
    def resolved(self) -> ResolvedEngine:
        """The engine behind this target, provisioned. Raises EngineResolveError, EngineProvisionError."""
        if self._resolved is None:
            wanted = self.requested_version if self._binary is None else f"path:{self._binary}"
            found = resolve_engines(wanted, offline=self._offline)
            if len(found) != 1:
                raise InputError(
                    f"TractNNEF takes one version, {wanted!r} means {', '.join(e.version for e in found) or 'none'}"
                )
            self._resolved = found[0]
        return self._resolved

    @property
    def version(self) -> str:
        if self._resolved is None and self._binary is None and _EXACT.fullmatch(self.requested_version):
            return self.requested_version  # export without a check needs no engine
        return self.resolved.version

    @property
    def spec(self) -> Spec:
        return spec_for("tract", self.version)

    def engine(self) -> Engine:
        return engine_for(self.resolved)

    def post_export(self, graph: Graph) -> None:
        graph.extensions += [e for e in self.custom_extensions if e not in graph.extensions]
        graph.properties.update(self.specific_properties)
        if self.dump_identity_properties:
            import datetime

            graph.properties.update(
                export_user=getpass.getuser(),
                export_host=platform.node(),
                export_date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            )
