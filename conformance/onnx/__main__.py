"""Run ONNX's own backend tests in chosen releases of tract, and judge them by ONNX's tolerance.

    python -m conformance.onnx --tract 0.22,0.23
    python -m conformance.onnx --tract all --jobs 2 --folder .tox/onnx/verdicts --table conformance/onnx/verdicts.tsv
    python -m conformance.onnx --tract all --folder .tox/onnx/verdicts --upstream cases

Prints how many cases of the installed onnx are right, rounded otherwise, refused, wrong, or end the process, in each
release; then what is wrong in the newest one, with its known cause. Exits with 1 if something wrong has no cause in
`conformance/onnx/known.py`. With a folder, an interrupted run resumes where it stopped. `--table` writes the verdicts
of all cases, which the documentation and the tests read; `--upstream` a case for each cause, with the text of an issue.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from conformance.lab.command import add_tract, command_parser, say
from conformance.lab.pages.tables import figures_table
from conformance.onnx.known import cause_of
from conformance.onnx.session import judge_releases, table_of
from conformance.onnx.table import STATUSES, totals, write
from conformance.onnx.upstream import write_upstream_cases
from t2n_core.engine import resolve_engines


def main(arguments: list[str] | None = None) -> int:
    parser = command_parser("conformance.onnx", __doc__)
    parser.add_argument("--jobs", "-j", type=int, default=1, help="releases at a time")
    parser.add_argument("--folder", type=Path, help="where verdicts are kept; default nowhere")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the verdicts by ranges of releases")
    parser.add_argument("--upstream", type=Path, metavar="DIR", help="write cases for the newest release's authors")
    add_tract(parser)
    chosen = parser.parse_args(arguments)
    releases = [resolved.version for resolved in resolve_engines(chosen.tract)]
    began = time.monotonic()
    with TemporaryDirectory(prefix="t2n-onnx-") as scratch:
        folder = (chosen.folder or Path(scratch)) / f"onnx-{onnx.__version__}"
        judge_releases(releases, folder, chosen.jobs)
        table = table_of(releases, folder)
    say(f"{len(table.rows)} cases in {len(releases)} releases in {time.monotonic() - began:.0f} s")
    if chosen.table:
        write(table, chosen.table)
    rows = [[release, *(str(totals(table.rows, release)[status]) for status in STATUSES)] for release in table.releases]
    print(figures_table(["tract", *STATUSES], rows))
    newest = table.releases[-1]
    wrong = [row for row in table.rows if row.statuses[newest] == "wrong"]
    for row in wrong:
        cause = cause_of(row.case)
        print(f"\n{row.operator} {row.opset}, {row.case}: {row.deviation}")
        print(f"    {cause.reason if cause else 'not known'}")
    if chosen.upstream:
        say(f"{len(write_upstream_cases(table, newest, chosen.upstream))} cases in {chosen.upstream}")
    return int(any(cause_of(row.case) is None for row in wrong))


if __name__ == "__main__":
    sys.exit(main())
