"""Tamper with archives, and print what the check catches.

python -m conformance.lab.plant.mutants [SUITE …] [--cases 40] [--seed 1] [--tract 0.23] [--jobs 2]

Exports a sample of each suite's cases, tampers with the archives, and prints what the check catches, as Markdown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence

from conformance.lab.command import add_tract
from conformance.lab.plant.mutants.judge import REFUSED, Verdict
from conformance.lab.plant.mutants.session import SIZES, verdicts_of
from conformance.lab.plant.mutants.tamper import KINDS
from conformance.lab.plant.trial import by_kind, counts_table, journal, plant_parser, share

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
    "reported",
    "weights",
    SIZES,
)
_VISIBLE = 0.01
"""Share of its deviation by which an output has to change, so that the check has to see it."""


def table_of(groups: Iterable[tuple[str, Sequence[Verdict]]]) -> str:
    """Return a table with a line for each group."""
    columns: dict[str, Callable[[Sequence[Verdict]], object]] = {
        "mutants": lambda these: sum(not verdict.weak for verdict in these),
        "refused by the engine": lambda these: sum(verdict.found == REFUSED and not verdict.weak for verdict in these),
        "change an output": lambda these: len(_visible(these)),
        "caught": lambda these: sum(verdict.is_right for verdict in _visible(these)),
        "share": lambda these: share(sum(verdict.is_right for verdict in _visible(these)), len(_visible(these))),
        "weak archives": lambda these: sum(verdict.weak for verdict in these),
    }
    return counts_table(groups, columns)


def _visible(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the mutants that the check has to see."""
    return [
        verdict for verdict in verdicts if not verdict.weak and verdict.found != REFUSED and verdict.change > _VISIBLE
    ]


def main() -> int:
    parser = plant_parser("mutants", __doc__)
    parser.add_argument("suites", nargs="*", help=f"of {', '.join(SUITES)}; all without one")
    parser.add_argument("--cases", type=int, default=40, help="of each suite")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    add_tract(parser, "0.23")
    options = parser.parse_args()
    suites = options.suites or list(SUITES)
    fresh_verdicts = verdicts_of(suites, options.cases, options.seed, options.tract, options.jobs)
    verdicts = list(journal(fresh_verdicts, options.json))
    by_suite = [(suite, [verdict for verdict in verdicts if verdict.suite == suite]) for suite in suites]
    print(table_of([*by_suite, ("all", verdicts)]), table_of(by_kind(verdicts, KINDS)[:-1]), sep="\n\n")
    for verdict in _visible(verdicts):
        if not verdict.is_right:
            print(
                f"\npassed: {verdict.case}: {verdict.kind}, {verdict.where}, changes an output by {verdict.change:.2%}",
                end="",
            )
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
