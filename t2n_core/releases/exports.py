"""The outcomes of a captured model, with an archive written for each release."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from packaging.version import Version

from t2n_core.check.exported.archive import ExportedArchive
from t2n_core.engine import ResolvedEngine
from t2n_core.parity.check import check_parity
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.releases.judges import Releases
from t2n_core.releases.search import Judge

WriteFor: TypeAlias = Callable[[ResolvedEngine, Path], ExportedArchive]
"""Writes the archive of a captured model for a release, under a path."""


def export_judge(
    releases: Releases, write: WriteFor, folder: Path, *, criteria: Judgement, timeout: float = 60.0
) -> Judge:
    """Return a judge that writes a captured model for each release.

    Archives are written to `folder`, one for each distinct content.
    """

    def judge(release: Version) -> Outcome:
        engine = releases.resolved(release)
        try:
            with tempfile.TemporaryDirectory(dir=folder) as draft:
                result = write(engine, Path(draft) / "model.nnef.tar")
                digest = hashlib.sha256(result.archive.read_bytes()).hexdigest()
                archive = folder / f"{digest}.tar"
                result.archive.replace(archive)
            request = CheckRequest(archive, result.samples, result.output_names, criteria, timeout)
        except Exception as cause:
            return Outcome.from_error(cause, "lower", engine=f"tract {release}")
        return check_parity(releases.engine(release), request)

    return judge
