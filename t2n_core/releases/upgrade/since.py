"""The releases between which a change of one file happened, by bisection in those on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from packaging.version import Version

from t2n_core.engine.paths import EnginePath
from t2n_core.engine.provision.branches import predecessor
from t2n_core.parity.check import check_parity
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.releases.boundaries import RIGHT, Boundary, boundaries_of
from t2n_core.releases.judges import Releases
from t2n_core.releases.search import search_releases
from t2n_core.releases.upgrade.values import PathChange, counterpart, on_path


def find_since(releases: Releases, request: CheckRequest, change: PathChange) -> list[Boundary]:
    """Return the boundaries at which the samples that show a change end differently, of the releases that are tried.

    A release is right if it has the expected outputs, where one of both releases has them; else it is as the older one
    or, where only the newer one loads the file, as that.
    """
    samples = _samples(change, request)
    if not samples:
        return []
    before, after = Version(change.old.version), Version(change.new.version)
    versions = between(releases.cached, before, after)
    alone = replace(request, samples=samples, interface=None)

    def judge(release: Version) -> Outcome:
        path: EnginePath = counterpart(change.old.path, str(release))
        return check_parity(on_path(releases.engine(release), path, samples[0].sizes), alone)

    report = search_releases(versions, judge, cached=[before, after], fetches=len(versions))
    endings = {release: change.same if ending == RIGHT else ending for release, ending in report.endings.items()}
    return boundaries_of(endings, sorted({*releases.all, before, after}))


def between(releases: Sequence[Version], before: Version, after: Version) -> list[Version]:
    """Return the releases from one to another, oldest first: back to where they branched from, if that is older."""
    versions = sorted({*releases, before, after})
    chains = [_chain(release, versions) for release in (before, after)]
    start = max(set(chains[0]) & set(chains[1]), default=min(versions))
    return sorted(release for release in {*chains[0], *chains[1]} if release >= start)


def _chain(release: Version, versions: Sequence[Version]) -> list[Version]:
    """Return a release and all that it is based on, newest first."""
    chain = [release]
    while (older := predecessor(chain[-1], versions)) is not None:
        chain.append(older)
    return chain


def _samples(change: PathChange, request: CheckRequest) -> list[Sample]:
    """Return the samples of one size that show the change, with the outputs by which releases are judged."""
    shown = change.differing or list(change.refused or change.taken)
    if change.lost or change.won:
        shown = list((change.old if change.lost else change.new).outputs)
    alike = [sample for sample in shown if sample.sizes == shown[0].sizes]
    if RIGHT in change.judged:
        return alike
    outputs = {**change.new.outputs, **change.old.outputs}
    return [replace(sample, expected=outputs[sample]) for sample in alike]
