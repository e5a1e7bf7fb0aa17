"""The report of an upgrade for one file, and its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from packaging.version import Version

from t2n_core.check.file import CheckedFile, NnefArchive
from t2n_core.engine.paths import EnginePath
from t2n_core.engine.protocol import OPERATORS
from t2n_core.parity.outcomes import unique_sizes
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.table import sizes_text
from t2n_core.releases.boundaries import Boundary
from t2n_core.releases.judges import Releases
from t2n_core.releases.upgrade.again import Again, compare_again
from t2n_core.releases.upgrade.costs import Costs, OperatorChange, measure_costs
from t2n_core.releases.upgrade.errata import ErrataChange, errata_between
from t2n_core.releases.upgrade.since import find_since
from t2n_core.releases.upgrade.values import PathChange, compare_values


class Verdict(StrEnum):
    """The effect of an upgrade on a file, the worst first."""

    LOST = "does not load"
    REFUSED = "does not run"
    MOVED = "values moved"
    WRONG = "wrong"
    SLOWER = "slower"
    SAFE = "safe"


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    """The changes of one file between two releases."""

    name: str
    before: Version
    after: Version
    reference: str
    """The source of the expected outputs; empty if there are none."""
    paths: tuple[PathChange, ...]
    since: Mapping[str, Sequence[Boundary]] = field(default_factory=dict)
    """Name of a path on which something changed -> neighbouring releases between which it did."""
    errata: ErrataChange = field(default_factory=ErrataChange)
    operators: OperatorChange = field(default_factory=OperatorChange)
    costs: Costs | None = None
    again: Again | None = None
    """The archive that was exported again for the newer release, if there is one."""

    @property
    def counted(self) -> list[PathChange]:
        """Return the paths that both releases support in general, or all where there is none."""
        return [change for change in self.paths if change.required] or list(self.paths)

    @property
    def verdict(self) -> Verdict:
        """Return the verdict, by the paths that count."""
        counted = self.counted
        if any(change.new.failure is not None for change in counted):
            return Verdict.LOST
        if any(change.refused for change in counted) or not any(change.new.outputs for change in counted):
            return Verdict.REFUSED
        if any(change.moved for change in counted):
            return Verdict.MOVED
        if any(change.is_wrong for change in counted):
            return Verdict.WRONG
        return Verdict.SLOWER if self.costs is not None and self.costs.is_slower else Verdict.SAFE

    @property
    def headline(self) -> str:
        """Return the verdict with what it is about, in one line."""
        way = f"{self.name}, tract {self.before} to {self.after}: "
        counted = self.counted
        match self.verdict:
            case Verdict.LOST:
                both = all(change.old.failure is not None for change in counted if change.new.failure is not None)
                return f"{way}does not load" + (", in neither release" if both else "")
            case Verdict.REFUSED:
                sizes = unique_sizes(sample.sizes for change in counted for sample in change.refused)
                return f"{way}does not run" + (f" at {sizes_text(sizes)}" if any(sizes) else "")
            case Verdict.MOVED:
                outputs = [o for change in counted if change.moved and change.compared for o in change.compared.outputs]
                problem = next((f": {output.name}: {output.problem}" for output in outputs if output.problem), "")
                return f"{way}values moved{problem or f', by up to {max(output.max_abs for output in outputs):.3g}'}"
            case Verdict.WRONG:
                return f"{way}loads now, and is wrong by {self.reference}"
            case Verdict.SLOWER:
                assert self.costs is not None
                return f"{way}slower by {self.costs.ratio:.2f}"
        return f"{way}safe"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return {
            "case": self.name,
            "from": str(self.before),
            "to": str(self.after),
            "verdict": self.verdict.value,
            "headline": self.headline,
            "reference": self.reference,
            "paths": [_path(change) for change in self.paths],
            "since": {
                name: [
                    [str(boundary.before), str(boundary.after), boundary.was, boundary.becomes]
                    for boundary in boundaries
                ]
                for name, boundaries in self.since.items()
            },
            "errata": {"mended": self.errata.mended, "new": self.errata.new, "unknown": self.errata.unknown},
            "operators": self.operators.counts,
            "seconds": None if self.costs is None else {str(k): v for k, v in self.costs.speed.seconds.items()},
            "profiles": [] if self.costs is None else [asdict(profile) for profile in self.costs.profiles],
            "again": None if self.again is None else {"summary": self.again.outcome.summary, "ratio": self.again.ratio},
            "load_seconds": None if self.costs is None else {str(k): v for k, v in self.costs.speed.loads.items()},
        }


def _path(change: PathChange) -> dict[str, Any]:
    compared = change.compared
    return {
        "path": change.name,
        "required": change.required,
        "moved": change.moved,
        "failures": [None if side.failure is None else side.failure.message for side in (change.old, change.new)],
        "refused": [[dict(sample.sizes), why] for sample, why in change.refused.items()],
        "taken": [[dict(sample.sizes), why] for sample, why in change.taken.items()],
        "judged": change.judged,
        "level": None if compared is None or compared.level is None else compared.level.value,
        "max_abs": None if compared is None else max((output.max_abs for output in compared.outputs), default=0.0),
        "sizes": [] if compared is None else [dict(sample.sizes) for sample in change.old.outputs],
    }


def report_upgrade(
    releases: Releases,
    file: CheckedFile,
    request: CheckRequest,
    name: str,
    before: Version,
    after: Version,
    *,
    paths: Sequence[EnginePath] = tuple(EnginePath),
    times: bool = True,
    profile: bool = False,
    again: Path | None = None,
) -> UpgradeReport:
    """Return what changes for a file between two releases, at the samples of a request.

    `again` is an archive that was exported again for the newer release, to be compared with the file.

    Raises EngineProvisionError for a release that cannot be had.
    """
    old, new = releases.engine(before), releases.engine(after)
    changes = tuple(compare_values(file, request, old, new, paths))
    since = {}
    for change in changes:
        if change.required and (change.moved or change.lost or change.won or change.refused or change.taken):
            since[change.name] = find_since(releases, request, change)
    errata, operators, costs = ErrataChange(), OperatorChange(), None
    if isinstance(file, NnefArchive):
        errata = errata_between(file.path, request.samples, before, after)
    if changes:
        counts = [side.facts.get(OPERATORS) or {} for side in (changes[0].old, changes[0].new)]
        operators = OperatorChange.of(*counts)
    running = [sample for sample in changes[0].old.outputs if sample in changes[0].new.outputs] if changes else []
    if times and running:
        largest = max(running, key=lambda sample: sum(array.size for array in sample.inputs))
        costs = measure_costs(
            releases,
            request.archive,
            largest.inputs,
            before,
            after,
            origins=file.origins,
            profile=profile,
            timeout=request.timeout,
        )
    exported = None
    if again is not None and changes and changes[0].old.outputs:
        exported = compare_again(releases, request, again, changes[0].old.outputs, before, after, times=times)
    is_judged = all(len(sample.expected) == len(request.output_names) for sample in request.samples)
    reference = request.reference if is_judged else ""
    return UpgradeReport(name, before, after, reference, changes, since, errata, operators, costs, exported)
