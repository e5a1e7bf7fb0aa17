"""Judge the operators of tract's dialect in chosen releases by their definitions.

    python -m conformance.dialect --tract 0.21,0.23
    python -m conformance.dialect tract_core_silu tract_core_resize --tract all
    python -m conformance.dialect --tract all --jobs 2 --folder .tox/dialect/results --page docs/reference/dialect.md
    python -m conformance.dialect --tract latest --upstream cases
    python -m conformance.dialect --tract 0.23.0,0.23 --runtime cuda
    python -m conformance.dialect --tract all --path optimise-only --findings conformance/dialect/findings.tsv

Prints for each path of the engine the table operator × release with the cases that were right, wrong, refused, crashed
or timed out, then the smallest case of each failure, with its known cause. Exits with 1 if a failing case has no
explanation in `conformance/dialect/known`. With a folder, an interrupted run resumes where it stopped, and only what
has other cases or another definition since is judged again.

`--upstream` writes a case for each operator that the newest chosen release computes wrongly or dies of, and for each
reason, in the form of tract's own test cases, with the text of an issue. `--page`, `--findings` and `--upstream` are of
one path, `declutter` if several are run.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from conformance.dialect.findings import found_in, write
from conformance.dialect.judge import Status
from conformance.dialect.known import explanation
from conformance.dialect.page import dialect_page
from conformance.dialect.session import judge_releases, matrix, smallest, verdicts
from conformance.dialect.upstream import write_upstream_cases
from conformance.lab.command import add_tract, command_parser, say
from conformance.lab.pages.long_tables import write_page
from t2n_core.dialect.cases import CASES, operators
from t2n_core.engine import resolve_engines
from t2n_core.engine.paths import EnginePath, parse_paths, paths_of_release
from t2n_core.engine.provision.resolved import CPU
from t2n_core.nnef.spec import spec_for

PATHS: Final = (EnginePath.DECLUTTER, EnginePath.OPTIMISE_ONLY)


def main(arguments: list[str] | None = None) -> int:
    parser = command_parser("conformance.dialect", __doc__)
    parser.add_argument("ops", nargs="*", metavar="OPERATOR", help="operators, default all that have cases")
    parser.add_argument("--count", type=int, default=CASES, help="cases of each operator")
    parser.add_argument("--jobs", type=int, default=1, help="releases at a time")
    parser.add_argument("--folder", type=Path, help="where verdicts are kept; default nowhere")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page of the documentation")
    parser.add_argument("--findings", type=Path, metavar="FILE", help="write the failing cases by ranges of releases")
    parser.add_argument("--runtime", default=CPU, metavar="NAME", help="runtime of the engines, such as cuda")
    parser.add_argument("--path", default="", metavar="LIST", help="declutter, optimise-only; default both up to 0.22")
    parser.add_argument("--upstream", type=Path, metavar="DIR", help="write cases for the newest release's authors")
    add_tract(parser)
    chosen = parser.parse_args(arguments)
    ops = chosen.ops or operators()
    releases = [resolved.version for resolved in resolve_engines(chosen.tract)]
    return max(_on_path(path, releases, ops, chosen) for path in PATHS if path in parse_paths(chosen.path))


def _on_path(path: EnginePath, releases: Sequence[str], ops: Sequence[str], chosen: Namespace) -> int:
    """Judge the operators on a path in the releases that have it; return 1 if something is not explained."""
    releases = [release for release in releases if path in paths_of_release(release)]
    if not releases:
        return 0
    began = time.monotonic()
    with TemporaryDirectory(prefix="t2n-dialect-") as scratch:
        folder = (chosen.folder or Path(scratch)) / path
        if chosen.runtime != CPU:
            folder = folder / chosen.runtime
        seconds = judge_releases(releases, ops, chosen.count, folder, chosen.jobs, chosen.runtime, path)
        all_verdicts = list(verdicts(releases, ops, chosen.count, folder, chosen.runtime, path))
    is_written = path is EnginePath.DECLUTTER or chosen.path == path
    if is_written and chosen.page:
        write_page(chosen.page, dialect_page(all_verdicts, seconds), chosen.page.parents[1] / "tables")
    if is_written and chosen.findings:
        judged: dict[str, dict[tuple[str, int], Status]] = {release: {} for release in releases}
        for result in all_verdicts:
            judged[result.release][result.case.op, result.number] = result.status
        write(found_in(judged, judged), judged, chosen.findings)
    print(f"\n{path}\n\n{matrix(all_verdicts)}")
    unknown = 0
    for verdict in smallest(all_verdicts):
        cause = explanation(verdict)
        unknown += cause is None
        print(f"\n{verdict.case.op}, tract {verdict.release}, case {verdict.number}: {verdict.status}")
        print(f"    {cause.reason if cause else 'not known: ' + verdict.reason}")
        print(f"    {verdict.case.statement(spec_for('tract', verdict.release).operator(verdict.case.op))}")
    if is_written and chosen.upstream:
        say(f"{len(write_upstream_cases(all_verdicts, releases[-1], chosen.upstream))} cases in {chosen.upstream}")
    say(f"{path}: {len(all_verdicts)} cases in {time.monotonic() - began:.0f} s; {seconds:.0f} s in all runs")
    return min(unknown, 1)


if __name__ == "__main__":
    sys.exit(main())
