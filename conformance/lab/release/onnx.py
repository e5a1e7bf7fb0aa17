"""Report ONNX's own node tests that end differently in a new release than in the previous one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from conformance.lab.release.differences import describe_differences
from conformance.onnx.session import judge_release, read_verdicts


def compare_onnx(release: str, against: str, folder: Path) -> Sequence[str]:
    """Return the tests whose status differs from the previous release's."""
    folder.mkdir(parents=True, exist_ok=True)
    statuses: list[dict[str, str]] = []
    for version in (against, release):
        judge_release(version, folder)
        statuses.append({name: verdict.status for name, verdict in read_verdicts(version, folder).items()})
    return describe_differences("node tests", statuses[0], statuses[1])
