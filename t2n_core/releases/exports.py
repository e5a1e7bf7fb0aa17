"""The outcome of a captured model in each release, written for it."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from t2n_core.check.judging.judgement import Judgement
from t2n_core.check.outcome import Outcome
from t2n_core.check.parity import check_parity
from t2n_core.check.request import CheckRequest
from t2n_core.releases.judges import Releases
from t2n_core.releases.search import Judge

if TYPE_CHECKING:
    from t2n_core.export.model import ModelExport
    from t2n_core.inference_target.tract import TractNNEF


def export_judge(
    releases: Releases,
    export: ModelExport,
    target: TractNNEF,
    folder: Path,
    *,
    criteria: Judgement,
    timeout: float = 60.0,
) -> Judge:
    """Return a judge that writes a captured model for each release, with the options of `target`.

    Archives are put into `folder`, one for each distinct content.
    """

    def judge(release: Version) -> Outcome:
        here = target.on(releases.resolved(release))
        try:
            with tempfile.TemporaryDirectory(dir=folder) as draft:
                result = export.to(here, Path(draft) / "model.nnef.tar")
                digest = hashlib.sha256(result.archive.read_bytes()).hexdigest()
                archive = folder / f"{digest}.tar"
                result.archive.replace(archive)
            request = CheckRequest(archive, result.samples, result.output_names, criteria, timeout)
        except Exception as cause:
            return Outcome.from_error(cause, "lower", engine=f"tract {release}")
        return check_parity(releases.engine(release), request)

    return judge


__all__ = ["export_judge"]
