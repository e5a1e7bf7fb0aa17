"""Run the suites with several exporters, and write the pages of the league.

    python -m conformance.league --site league                          # hours; an interrupted run goes on
    python -m conformance.league --site league --suites layers,dynamic  # a part of it
    python -m conformance.league --site league --pages                  # run nothing, and write the pages

Each suite is a session of its own with a report below `--site`; its results are kept beside the pages, in place of
earlier results. Other exporters run in their environments: `t2n exporters install torch-to-nnef`. Their cells pass or
fail by the profile `values`, and the record has the status by `strict` too.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from conformance.cases.models import LIBRARIES
from conformance.lab.command import add_tract, command_parser, say
from conformance.lab.machine import ROOT
from conformance.lab.pages.tables import show
from conformance.lab.rows import RowFile, read_rows
from conformance.league.pages import FOLDER, MARK, RESULTS, totals, write_pages
from conformance.league.records import results_of_session
from conformance.league.results import keep_results, read_results
from pytest_t2n.records.folder import MATRIX_FILE

SUITES: Final = {
    "recurrent": ("test_recurrent.py",),
    "layers": ("test_layers.py",),
    "dynamic": ("test_dynamic.py",),
    "encoders": ("test_encoders.py",),
    "dtypes": ("test_dtypes.py",),
    "operators": ("test_aten.py", "--aten-dtypes=float32"),
    **{f"models-{name}": ("test_models.py", "-k", f"test_model[{name}-") for name in LIBRARIES},
    "models-registry": ("test_models.py", "-k", "test_registry["),
    "sizes": ("test_sizes.py",),
}
"""Suite -> its file, and further arguments of pytest."""
EXPORTERS: Final = "t2n,torch-onnx,torch-onnx-torchscript,torch-to-nnef,tract-convert"
SECONDS: Final = "seconds.jsonl"
"""The file with the seconds of each session."""
_FAILED: Final = 1
"""The exit status of pytest with failed tests, which are results here."""


def main(arguments: list[str] | None = None) -> int:
    parser = command_parser("conformance.league", __doc__)
    parser.add_argument("--site", type=Path, required=True, metavar="DIR", help="where the reports are kept")
    parser.add_argument("--suites", default=",".join(SUITES), metavar="NAMES")
    parser.add_argument("--exporters", default=EXPORTERS, metavar="NAMES", help="as --t2n-exporter")
    parser.add_argument("--workers", default="auto", help="as -n of pytest-xdist")
    parser.add_argument("--pages", action="store_true", help="run nothing, and write the pages of what has run")
    parser.add_argument("--folder", type=Path, default=FOLDER, metavar="DIR", help="where the pages are written")
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="write the totals between their marks in this page, too"
    )
    add_tract(parser)
    options, further = parser.parse_known_args(arguments)
    site = options.site.absolute()
    columns = [f"--t2n-tract={options.tract}", f"--t2n-exporter={options.exporters}", "--t2n-onnxruntime"]
    for suite in options.suites.split(","):
        if not options.pages:
            run_suite(site, suite, [*columns, "-n", options.workers, *further])
        if (site / suite / MATRIX_FILE).exists():
            seconds = sum(row["seconds"] for row in read_rows(site / SECONDS) if row["suite"] == suite)
            if session := results_of_session(site / suite, suite, seconds):
                keep_results(options.folder / RESULTS, *session)
    results = read_results(options.folder / RESULTS, list(SUITES))
    exporters = options.exporters.split(",")
    write_pages(results, exporters, options.folder)
    if options.page is not None:
        show(totals(results, exporters, results.releases[-1], "../reference/league/"), MARK, options.page)
    return 0


def run_suite(site: Path, suite: str, arguments: Sequence[str]) -> None:
    """Run a suite, or the rest of it. Raises SystemExit if pytest does not come to its end."""
    say(f"suite {suite}")
    folder = site / suite
    file, *options = SUITES[suite]
    report = [f"--t2n-report={folder}", "--t2n-resume", "-q", "--tb=no", "-rN", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", f"conformance/suites/{file}", *options, *report, *arguments]
    began = time.perf_counter()
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    RowFile(site / SECONDS).add({"suite": suite, "seconds": round(time.perf_counter() - began)})
    if status > _FAILED:
        raise SystemExit(f"the session of suite {suite} ended with status {status}")


if __name__ == "__main__":
    sys.exit(main())
