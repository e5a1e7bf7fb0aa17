"""Faults of engines: statements that an erratum forbids, in releases that have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from packaging.version import Version

from conformance.lab.machine import VERSIONS
from conformance.lab.plant.blame.trial import Blame
from t2n_core.check.mismatch.author import with_author
from t2n_core.engine.protocol import Engine
from t2n_core.nnef import legality
from t2n_core.nnef.archive import write_archive
from t2n_core.nnef.legality import check_graph
from t2n_core.nnef.spec import spec_for
from t2n_core.nnef.tract.quirks import table
from t2n_core.nnef.tract.quirks.quirk import Quirk
from t2n_core.nnef.tract.quirks.table import QUIRKS, quirks_of
from t2n_core.parity.check import check_parity
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import Status
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from tests.conftest import GraphBuilder
from tests.contract import test_hazards as hazards
from tests.contract.nnef import test_quirks as quirks

Engines = Callable[[str], Engine]
RELEASES = (
    "0.19.15", "0.20.3", "0.20.18", "0.20.22", "0.21.6", "0.21.8", "0.21.10", "0.21.19", "0.22.4", "0.23.0",
    VERSIONS[-1],
)  # fmt: skip


def of_quirks(releases: tuple[str, ...], folder: Path) -> Iterator[Blame]:
    """Yield the nets that show a quirk, exported without its repair."""
    for quirk in QUIRKS:
        for release in releases:
            if quirk.concerns(Version(release)):
                yield _without(quirk, release, folder / f"{quirk.name}-{release}")


def _without(quirk: Quirk, release: str, folder: Path) -> Blame:
    def others(version: Version) -> Mapping[str, tuple[Quirk, ...]]:
        return {op: tuple(q for q in those if q is not quirk) for op, those in quirks_of(version).items()}

    folder.mkdir(parents=True)
    with patch.object(table, "quirks_of", others), patch.object(legality, "quirks_of", others):
        outcome = quirks.outcome(quirk.name, release, folder)
    return Blame.of("engine", f"{quirk.name}: {quirk.reason}", release, outcome)


def of_hazards(releases: tuple[str, ...], engines: Engines, folder: Path) -> Iterator[Blame]:
    """Yield the statements that a hazard forbids, against what the standard states, which no PyTorch computes."""
    for release in releases:
        spec, engine = spec_for("tract", release), engines(release)
        for name, case in hazards.CASES.items():
            graph, x, want = case(GraphBuilder())
            if graph.operations[-1].name not in set(spec.names()) or not check_graph(graph, spec):
                continue
            archive = write_archive(graph, folder / f"{name}-{release}", spec=spec)
            request = CheckRequest(archive, [Sample((x,), (want,))], ["y"], Judgement.of(None), 60.0)
            outcome = check_parity(engine, request)
            if outcome.status is Status.MISMATCH:
                outcome = with_author(outcome, engine, request)
            yield Blame.of("engine", name, release, replace(outcome, engine=release))
