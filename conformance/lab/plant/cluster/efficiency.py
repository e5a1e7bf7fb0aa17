"""Measure how much of the time of hosts is work.

    python -m conformance.lab.plant.cluster.efficiency --hosts 2,4 --cases 500

Units take about a second each: a case with all its engines. The efficiency is the time that engines say they loaded,
optimised and ran, divided by the number of hosts and the time from the start of the client to its end. What the engines
do not count (processes, samples, comparisons, records) is therefore no work here. Hosts that share processors run more
slowly, which both times contain. Needs root, on Linux.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance.lab.command import add_tract, command_parser
from conformance.lab.plant.cluster.bundle import write_bundle
from conformance.lab.plant.cluster.hosts import Hosts, why_not
from conformance.lab.plant.cluster.run import Run
from pytest_t2n.cli import main as t2n
from t2n_core.engine.provision.store import default_cache_dir

_WIDTH = 512
_SECONDS = 1.0
"""Wanted for a unit."""


def statements(products: int) -> str:
    """Return a graph's statements that compute `x * 2` after `products` products of matrices."""
    rows = f"wide = tanh(tile(reshape(x, shape = [6, 1]), repeats = [{_WIDTH * _WIDTH // 6 + 1}, 1]));"
    cut = f"cut = slice(wide, axes = [0], begin = [0], end = [{_WIDTH * _WIDTH}]);"
    lines = [rows, cut, f"product_0 = reshape(cut, shape = [{_WIDTH}, {_WIDTH}]);"]
    step = f"product_%d = matmul(product_%d, product_0) * {1 / _WIDTH!r};"
    lines += [step % (number + 1, number) for number in range(products)]
    lines += [f"mean = mean_reduce(product_{products}, axes = [0, 1]);", "y = x * 2.0 + mean * 1e-30;"]
    return "\n    ".join(lines)


def work_of(report: Path) -> tuple[int, float]:
    """Return the number of cells of a report that passed, and the seconds that engines worked for all."""
    records = map(json.loads, (report / "matrix.jsonl").read_text().splitlines())
    cells = [record for record in records if record["type"] == "cell"]
    return sum(cell["status"] == "pass" for cell in cells), sum(sum(cell["times"].values()) for cell in cells)


def products_for(seconds: float, engines: list[str], folder: Path) -> int:
    """Return how many products make a unit take so long on this machine."""
    tried = 20
    write_bundle(folder / "trial", 3, statements(tried))
    t2n(["matrix", "run", "--bundle", str(folder / "trial"), *engines, "--report", str(folder / "tried")])
    _, time_of_three = work_of(folder / "tried")
    return max(1, round(tried * seconds * 3 / time_of_three))


def main() -> int:
    """Print a line for each number of hosts; return 1 if a cell is lost or wrong, or the efficiency is below 0.9."""
    parser = command_parser("conformance.lab.plant.cluster.efficiency", __doc__)
    parser.add_argument("--hosts", default="2,4")
    parser.add_argument("--cases", type=int, default=500)
    add_tract(parser, "0.20,0.21,0.22,0.23")
    options = parser.parse_args()
    if reason := why_not():
        print(f"skipped: {reason}")
        return 0
    cell_count, good = options.cases * len(options.tract.split(",")), True
    with TemporaryDirectory(prefix="t2n-hosts-") as scratch:
        folder = Path(scratch)
        engines = ["--tract", options.tract, "--offline", "--cache-dir", str(default_cache_dir())]
        products = products_for(_SECONDS, engines, folder)
        write_bundle(folder / "bundle", options.cases, statements(products))
        for count in map(int, options.hosts.split(",")):
            with Hosts(folder, folder / "bundle", count) as hosts:
                hosts.start()
                hosts.wait()
                started, report = time.monotonic(), folder / f"of-{count}"
                run = Run(hosts, folder / "bundle", report, options.tract)
                run.start()
                run.end(3600.0)
                elapsed = time.monotonic() - started
            passed, work = work_of(report)
            efficiency = work / (count * elapsed)
            print(
                f"{count} hosts: {passed} of {cell_count} cells right, units of {work / options.cases:.2f} s, "
                f"{elapsed:.0f} s, efficiency {efficiency:.3f}",
                flush=True,
            )
            good = good and passed == cell_count and efficiency >= 0.9
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
