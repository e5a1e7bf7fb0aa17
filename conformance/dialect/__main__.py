"""Judge the operators of tract's dialect in chosen releases by their definitions.

    python -m conformance.dialect --tract 0.21.19,0.23.9
    python -m conformance.dialect tract_core_silu tract_core_resize --tract all

Prints the table operator × release with the cases that were right, wrong, refused, crashed or timed out, then the
smallest case of each that was not right, with what is known of it. Exits with 1 if a case that is not right has no
explanation in `conformance/dialect/known.py`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from conformance.dialect.known import explanation
from conformance.dialect.session import known_definitions, matrix, smallest, verdicts
from conformance.lab.command import add_tract, command_parser, say
from t2n_core.dialect.cases import CASES, operators
from t2n_core.engine import close_all, resolve_engines
from t2n_core.nnef.spec import spec_for


def main(arguments: list[str] | None = None) -> int:
    parser = command_parser("conformance.dialect", __doc__)
    parser.add_argument("ops", nargs="*", metavar="OPERATOR", help="operators, default all that have cases")
    parser.add_argument("--count", type=int, default=CASES, help="cases of each operator")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the table, in Markdown")
    add_tract(parser)
    chosen = parser.parse_args(arguments)
    ops = chosen.ops or sorted(set(operators()) & set(known_definitions()))
    began, engines = time.monotonic(), resolve_engines(chosen.tract)
    found = list(verdicts(ops, engines, chosen.count))
    close_all()
    text = matrix(found)
    if chosen.write:
        chosen.write.write_text(f"{text}\n", "utf-8")
    print(text)
    unknown = 0
    for verdict in smallest(found):
        known = explanation(verdict)
        unknown += known is None
        print(f"\n{verdict.case.op}, tract {verdict.release}, case {verdict.number}: {verdict.status}")
        print(f"    {known.reason if known else 'not known: ' + verdict.reason}")
        print(f"    {verdict.case.statement(spec_for('tract', verdict.release).operator(verdict.case.op))}")
    say(f"{len(found)} cases in {time.monotonic() - began:.0f} s")
    return min(unknown, 1)


if __name__ == "__main__":
    sys.exit(main())
