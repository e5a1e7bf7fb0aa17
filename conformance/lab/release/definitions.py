"""Tract's dialect in a new release: the cases of its operators that end otherwise than in the release before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from conformance.dialect.session import judge_releases, verdicts
from conformance.lab.release.differences import describe_differences
from t2n_core.dialect.cases import CASES, operators
from t2n_core.engine.paths import EnginePath
from t2n_core.engine.provision.resolved import CPU

_PATH = EnginePath.DECLUTTER


def compare_definitions(release: str, against: str, folder: Path) -> Sequence[str]:
    """Return the cases whose status differs from the previous release's."""
    releases, ops = [against, release], operators()
    judge_releases(releases, ops, CASES, folder, 1, CPU, _PATH)
    statuses: dict[str, dict[str, str]] = defaultdict(dict)
    for verdict in verdicts(releases, ops, CASES, folder, CPU, _PATH):
        statuses[verdict.release][f"{verdict.case.op} {verdict.number}"] = verdict.status
    return describe_differences(
        "cases of operators", statuses[against], statuses[release], lambda name: name.partition(" ")[0]
    )
