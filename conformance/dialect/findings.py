"""What a run over releases found: for each case, the releases that do not compute it rightly.

`findings.tsv` holds the run that the tests compare with the errata, on the path `optimise-only` up to 0.22, and
`findings_cuda.tsv` one on tract's CUDA runtime. `findings_declutter.tsv` holds the operators that fail in other cases
on the path `declutter`. `--findings` of the command rewrites them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.version import Version

from conformance.dialect.judge import Status
from t2n_core.errors import InputError

FILE: Final = Path(__file__).with_name("findings.tsv")
FILE_ON_CUDA: Final = Path(__file__).with_name("findings_cuda.tsv")
FILE_OF_DECLUTTER: Final = Path(__file__).with_name("findings_declutter.tsv")
_HEAD: Final = "operator\tstatus\treleases\tcases"


@dataclass(frozen=True)
class Finding:
    """Cases of one operator that fail in the same way, in the same releases."""

    op: str
    status: Status
    releases: tuple[str, ...]
    cases: tuple[int, ...]


def found_in(verdicts: Mapping[str, Mapping[tuple[str, int], Status]], releases: Iterable[str]) -> list[Finding]:
    """Return the findings of verdicts by release, operator and number of the case.

    A case that was not judged in a release has there the status that it has in the judged releases around it. Raises
    InputError if those differ, so that no boundary is guessed.
    """
    order = sorted(releases, key=Version)
    by_case: dict[tuple[str, int], dict[str, Status]] = defaultdict(dict)
    for release in order:
        for (op, number), status in verdicts.get(release, {}).items():
            by_case[op, number][release] = status
    groups: dict[tuple[str, Status, tuple[str, ...]], list[int]] = defaultdict(list)
    for (op, number), judged in by_case.items():
        everywhere = _filled(op, number, judged, order)
        for status in set(everywhere.values()) - {"right"}:
            failing = tuple(release for release, of_release in everywhere.items() if of_release == status)
            groups[op, status, failing].append(number)
    return [Finding(op, status, failing, tuple(sorted(of))) for (op, status, failing), of in sorted(groups.items())]


def _filled(op: str, number: int, judged: Mapping[str, Status], releases: list[str]) -> dict[str, Status]:
    statuses: dict[str, Status] = {}
    judged_releases = [release for release in releases if release in judged]
    first, last = releases.index(judged_releases[0]), releases.index(judged_releases[-1])
    waiting: list[str] = []
    for release in releases[first : last + 1]:
        if release not in judged:
            waiting.append(release)
            continue
        status = judged[release]
        if waiting and statuses and status != list(statuses.values())[-1]:
            raise InputError(f"case {number} of `{op}` changes within {', '.join(waiting)}, where it was not judged")
        statuses.update(dict.fromkeys(waiting, status))
        statuses[release] = status
        waiting = []
    return statuses


def write(findings: Iterable[Finding], releases: Iterable[str], file: Path = FILE) -> None:
    """Write findings as a table with ranges of releases and the indices of cases."""
    order = sorted(releases, key=Version)
    rows = [
        "\t".join([finding.op, finding.status, ranges_text(finding.releases, order), ",".join(map(str, finding.cases))])
        for finding in findings
    ]
    file.write_text("\n".join([" ".join(order), _HEAD, *rows, ""]), encoding="utf-8")


def read(file: Path = FILE) -> tuple[list[str], list[Finding]]:
    """Return the releases of a run, and its findings."""
    first, _, *rows = file.read_text("utf-8").splitlines()
    order = first.split()
    findings = []
    for row in rows:
        op, status, ranges, numbers = row.split("\t")
        releases = tuple(releases_of(ranges, order))
        findings.append(Finding(op, status, releases, tuple(map(int, numbers.split(",")))))  # type: ignore[arg-type]
    return order, findings


def ranges_text(releases: Iterable[str], order: Sequence[str]) -> str:
    """Return runs of neighbours as `0.21.8..0.21.10,0.22.1`."""
    runs: list[list[str]] = []
    for release in releases:
        if runs and order.index(release) == order.index(runs[-1][-1]) + 1:
            runs[-1].append(release)
        else:
            runs.append([release])
    return ",".join(run[0] if len(run) == 1 else f"{run[0]}..{run[-1]}" for run in runs)


def releases_of(text: str, order: Sequence[str]) -> Iterator[str]:
    """Yield the releases that `ranges_text` wrote."""
    for run in text.split(","):
        first, _, last = run.partition("..")
        yield from order[order.index(first) : order.index(last or first) + 1]
