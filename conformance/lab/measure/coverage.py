"""Measure how much of PyTorch's operator database is exported, print the figures and write them.

python -m conformance.lab.measure.coverage --tract latest                  # first 2 samples per operator, float32
python -m conformance.lab.measure.coverage --tract latest --complete       # all usable samples
python -m conformance.lab.measure.coverage --from outcomes.jsonl           # figures of an earlier run
python -m conformance.lab.measure.coverage --tract 0.21,0.23 --all-dtypes --json numbers.json --outcomes outcomes.jsonl
python -m conformance.lab.measure.coverage --tract all-minors --dynamic    # every axis dynamic: suite `aten_dynamic`
python -m conformance.lab.measure.coverage --tract latest --dtypes float64,int8 --part 1/8
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.checks.aten_outcomes import (
    ALL_FAILED,
    ALL_REFUSED,
    COMPLETE,
    DYNAMIC,
    NO_SAMPLE,
    PARTLY,
    PASS,
    RESULTS,
    WRONG,
    CaseLine,
    count_results,
    count_verdicts,
    read_lines,
)
from conformance.lab.command import command_parser
from conformance.lab.machine import ROOT
from conformance.lab.rows import write_results

SUITE = "conformance/suites/test_aten.py"
DYNAMIC_SUITE = "conformance/suites/test_aten_dynamic.py"
_TITLES = {
    "operator": "operators",
    "inplace": "operators in place",
    "module": "modules",
    DYNAMIC: "operators with every axis dynamic",
}


def summarise(lines: Sequence[CaseLine]) -> list[dict[str, Any]]:
    """Return one entry per engine, kind and dtype; the counts add up to the usable operators and samples."""
    groups: dict[tuple[str, str, str], list[CaseLine]] = defaultdict(list)
    for line in lines:
        groups[line.engine, line.kind, line.dtype].append(line)
    return [_summary(key, group) for key, group in groups.items()]


def _summary(key: tuple[str, str, str], group: Sequence[CaseLine]) -> dict[str, Any]:
    verdicts, results = count_verdicts(group), count_results(group)
    left_out: Counter[str] = Counter()
    for line in group:
        left_out.update(line.left_out)
    return {
        "engine": key[0],
        "kind": key[1],
        "dtype": key[2],
        "operators": {
            "usable": len(group) - verdicts[NO_SAMPLE],
            **{v: verdicts[v] for v in (COMPLETE, PARTLY, ALL_REFUSED, ALL_FAILED)},
            "with a silently wrong sample": sum(any(s.result == WRONG for s in line.samples) for line in group),
            "without a usable sample": verdicts[NO_SAMPLE],
        },
        "samples": {"usable": sum(results.values()), **{r: results[r] for r in RESULTS}},
        "left out": dict(left_out.most_common()),
        "seconds": round(sum(line.seconds for line in group), 1),
        "not passing": {
            s.id: {"result": s.result, "message": s.message} for line in group for s in line.samples if s.result != PASS
        },
    }


def print_summary(entry: Mapping[str, Any]) -> None:
    """Print the figures of one engine, kind and dtype, and every silently wrong sample."""
    operators, samples = entry["operators"], entry["samples"]
    usable = max(operators["usable"], 1)
    print(f"\n{entry['engine']}: {_TITLES[entry['kind']]}, {entry['dtype']} ({entry['seconds']} s of work)")
    print(f"  {operators['usable']} usable, {samples['usable']} samples")
    for verdict in (COMPLETE, PARTLY, ALL_REFUSED, ALL_FAILED):
        print(f"  {operators[verdict]:6} {verdict} ({operators[verdict] / usable:.1%})")
    print(f"  samples: {', '.join(f'{samples[r]} {r}' for r in RESULTS)}")
    if entry["left out"]:
        print(f"  left out: {', '.join(f'{n} {reason}' for reason, n in entry['left out'].items())}")
    wrong = {i: s for i, s in entry["not passing"].items() if s["result"] == WRONG}
    print(f"  silently wrong: {len(wrong) or 'none'}")
    for sample, record in wrong.items():
        print(f"    {sample}: {record['message']}")


def report(lines: Sequence[CaseLine], path: Path | None) -> None:
    """Print the figures, and write them to a file if one is given."""
    summaries = summarise(lines)
    for entry in summaries:
        print_summary(entry)
    if path is not None:
        write_results(path, summaries)


def run_suite(engines: str, outcomes: Path, arguments: argparse.Namespace) -> None:
    """Run the suite in a separate pytest; failing cells are measured too, so its exit status may be 1."""
    chosen = ["-k", "float32 and not inplace"]
    if arguments.dtypes:
        chosen = [f"--aten-dtypes={arguments.dtypes}"]
    elif arguments.all_dtypes or arguments.dynamic:
        chosen = []
    flags = ["--complete"] if arguments.complete else []
    flags += [f"--t2n-shard={arguments.part}"] if arguments.part else []
    selection = ["--t2n-khronos"] if engines == "khronos" else [f"--t2n-tract={engines}"]
    suite = DYNAMIC_SUITE if arguments.dynamic else SUITE
    command = [sys.executable, "-m", "pytest", suite, *selection, *chosen, *flags, f"--aten-outcomes={outcomes}"]
    command += ["-q", "--tb=no", "--no-summary", "-p", "no:cacheprovider", "-n", str(arguments.workers)]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    if status not in (0, 1):
        raise SystemExit(f"pytest ended with {status}: the figures would not be complete")


def main() -> None:
    parser = command_parser("conformance.lab.measure.coverage", __doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--tract", metavar="VERSIONS", help="as --t2n-tract of the plugin")
    source.add_argument("--khronos", action="store_true", help="the Khronos tools")
    source.add_argument("--from", dest="files", nargs="+", type=Path, metavar="FILE", help="outcomes of earlier runs")
    parser.add_argument("--complete", action="store_true", help="every usable float32 sample")
    parser.add_argument("--all-dtypes", action="store_true", help="also float16, int64, bool, and in-place variants")
    parser.add_argument("--dynamic", action="store_true", help="every axis dynamic; in float32")
    parser.add_argument("--dtypes", metavar="NAMES", help="operators in these dtypes alone: float64,bfloat16,int8,…")
    parser.add_argument("--part", metavar="I/N", help="one part of the operators, as --t2n-shard of the plugin")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    parser.add_argument("--outcomes", type=Path, metavar="FILE", help="write what became of each sample")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = arguments.files
        if files is None:
            files = [(arguments.outcomes or Path(folder) / "outcomes.jsonl").absolute()]
            run_suite("khronos" if arguments.khronos else arguments.tract, files[0], arguments)
        lines = [line for path in files for line in read_lines(path)]
    report(lines, arguments.json)


if __name__ == "__main__":
    main()
