"""Tamper with archives, and print what the check catches.

python -m conformance.lab.plant.mutants [SUITE …] [--cases 40] [--seed 1] [--tract 0.23] [--jobs 2]
python -m conformance.lab.plant.mutants --of dialect [FUNCTION …] [--jobs 2]
python -m conformance.lab.plant.mutants --of paths [--tract 0.23]

Exports a sample of each suite's cases, tampers with the archives, and prints what the check catches, as Markdown. With
`--of dialect` the functions that define the dialect's operators are changed, those whose module or name has one of the
texts, and what their tests catch is printed. With `--of paths` faults are planted into the exporter, into the glue of a
program and into what judges a bundle, and it is printed which sessions and commands fail for them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from conformance.lab.command import command_parser
from conformance.lab.pages.tables import figures_table
from conformance.lab.plant.mutants.judge import CAUGHT, PASSED, REFUSED, Verdict
from conformance.lab.plant.mutants.session import SIZES, verdicts_of
from conformance.lab.plant.mutants.tamper import KINDS
from conformance.lab.rows import RowFile

SUITES = (
    "recurrent",
    "layers",
    "encoders",
    "dynamic",
    "dtypes",
    "aten",
    "aten_dynamic",
    "models",
    "int8",
    "programs",
    "weights",
    SIZES,
)
_VISIBLE = 0.01
"""Share of its deviation by which an output has to change, so that the check has to see it."""


def table_of(groups: Iterable[tuple[str, Sequence[Verdict]]]) -> str:
    """Return a table with a line for each group."""
    head = ("", "mutants", "refused by the engine", "change an output", "caught", "share", "weak archives")
    rows = []
    for name, verdicts in groups:
        proven = [one for one in verdicts if not one.weak]
        runs = [one for one in proven if one.found != REFUSED and one.change > _VISIBLE]
        caught = sum(one.found == CAUGHT for one in runs)
        share = f"{caught / len(runs):.1%}" if runs else ""
        refused = sum(one.found == REFUSED for one in proven)
        rows.append(
            (name, *map(str, (len(proven), refused, len(runs), caught)), share, str(len(verdicts) - len(proven)))
        )
    return figures_table(head, rows)


def main() -> int:
    parser = command_parser("conformance.lab.plant.mutants", __doc__)
    parser.add_argument("suites", nargs="*", help=f"of {', '.join(SUITES)}; all without one")
    parser.add_argument("--of", choices=("archives", "dialect", "paths"), default="archives", help="what is changed")
    parser.add_argument("--cases", type=int, default=40, help="of each suite")
    parser.add_argument("--seed", type=int, default=1, help="which cases, and which changes")
    parser.add_argument("--tract", default="0.23", metavar="VERSION", help="the engine, as --t2n-tract")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write each mutant, one a line")
    options = parser.parse_args()
    if options.of == "dialect":
        from conformance.lab.plant.definitions.table import run

        return run(options.suites, options.jobs)
    if options.of == "paths":
        from conformance.lab.plant.mutants.paths import run as run_paths

        return run_paths(options.tract)
    options.suites = options.suites or list(SUITES)
    verdicts = list(verdicts_of(options.suites, options.cases, options.seed, options.tract, options.jobs))
    rows = RowFile(options.json, anew=True)
    for one in verdicts:
        rows.add(asdict(one))
    suites = [(suite, [one for one in verdicts if one.suite == suite]) for suite in options.suites]
    kinds = [(kind, [one for one in verdicts if one.kind == kind]) for kind in KINDS]
    print(table_of([*suites, ("all", verdicts)]), table_of(kinds), sep="\n\n")
    missed = [one for one in verdicts if one.found == PASSED and not one.weak and one.change > _VISIBLE]
    for one in missed:
        print(f"\npassed: {one.case}: {one.kind}, {one.where}, changes an output by {one.change:.2%}", end="")
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
