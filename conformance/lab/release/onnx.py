"""ONNX's own node tests in a new release: those that end otherwise than in the release before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from conformance.lab.release.differences import describe_differences
from conformance.onnx.session import judge_release, read_verdicts


def compare_onnx(release: str, against: str, folder: Path) -> Sequence[str]:
    """Return the tests whose status is another one than in the release before."""
    folder.mkdir(parents=True, exist_ok=True)
    statuses: list[dict[str, str]] = []
    for version in (against, release):
        judge_release(version, folder)
        statuses.append({name: verdict.status for name, verdict in read_verdicts(version, folder).items()})
    return describe_differences("node tests", statuses[0], statuses[1])
