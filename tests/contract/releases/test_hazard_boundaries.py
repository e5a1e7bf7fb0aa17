"""The releases that are wrong for each hazard of the spec table come out of a sweep of all engines on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from t2n_core.nnef.archive import write_archive
from t2n_core.nnef.legality import check_graph
from t2n_core.nnef.spec import spec_for
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.releases.boundaries import boundaries_of
from t2n_core.releases.judges import Releases, archive_judge
from tests.contract.test_hazards import CASES, CAUTIOUS

OTHERS = {
    "box_sum": "right in 0.23.5: the padding of a sum is zeros by either border",
    "conv_strided_cut": "refused at load up to 0.19.5, where a repair of the converter cuts other forms",
    "einsum_f2": "right in 0.21.11 and 0.21.12 with these sizes",
    "matmul_i1": "right in 0.21.11 and 0.21.12 with these sizes",
    "slice_negative_begin": "right in 0.19.6 and 0.19.7 with these sizes",
}
"""Cases whose releases are not those that the table refuses, with the reason."""
EXACT = sorted(CASES.keys() - CAUTIOUS.keys() - OTHERS.keys())


@pytest.fixture(scope="module")
def releases() -> Iterator[Releases]:
    with Releases(offline=True) as cached_releases:
        yield cached_releases


@pytest.mark.nightly
@pytest.mark.parametrize("name", EXACT)
def test_the_boundaries_of_a_hazard_are_found(name: str, releases: Releases, build: Any, tmp_path: Path) -> None:
    graph, x, want = CASES[name](build)
    refused = {release: bool(check_graph(graph, spec_for("tract", release))) for release in releases.cached}
    archive = write_archive(graph, tmp_path / "hazard", spec=spec_for("tract", releases.cached[-1]))
    judge = archive_judge(releases, CheckRequest(archive, [Sample((x,), (want,))], ["y"]))
    report = releases.search(judge, fetches=0)
    expected = boundaries_of(
        {release: "wrong" if bad else "right" for release, bad in refused.items()}, report.releases
    )
    boundaries = boundaries_of(
        {release: "right" if ending == "right" else "wrong" for release, ending in report.endings.items()},
        report.releases,
    )
    assert [boundary.describe() for boundary in boundaries] == [boundary.describe() for boundary in expected], (
        report.describe()
    )
