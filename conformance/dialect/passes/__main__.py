"""Judge programs around what the engine's passes rewrite, on each path of chosen releases.

    python -m conformance.dialect.passes --tract 0.21,0.23
    python -m conformance.dialect.passes slices scans --tract all --count 40 --folder .tox/passes
    python -m conformance.dialect.passes --tract 0.22.4 --path optimise-only
    python -m conformance.dialect.passes --tract latest --upstream cases

Prints how many programs of each release and path were right, wrong, refused, crashed or timed out, then the smallest
program of each failure, with its known cause. Exits with 1 if a failing program has no explanation in
`conformance/dialect/passes/known.py`. With a folder, an interrupted run resumes where it stopped.
`--upstream` writes a case for each reason why the newest chosen release does not compute a program correctly, in the
form of tract's own test cases, with the text of an issue.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from packaging.version import Version

from conformance.dialect.passes.families import COUNT, FAMILIES, programs
from conformance.dialect.passes.judging import PassVerdict
from conformance.dialect.passes.known import KNOWN, KnownPass, explanation
from conformance.dialect.passes.session import PATHS, judge_kept, matrix, paths_in, smallest
from conformance.dialect.passes.upstream import write_upstream_programs
from conformance.lab.command import add_tract, command_parser, say
from conformance.lab.pages.render import render
from t2n_core.engine import close_all, engine_for, resolve_engines


def main(arguments: list[str] | None = None) -> int:
    parser = command_parser("conformance.dialect.passes", __doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"{', '.join(FAMILIES)}; default all")
    parser.add_argument("--count", type=int, default=COUNT, help="programs of each family")
    parser.add_argument("--path", default="", metavar="LIST", help="declutter, optimise-only; default both up to 0.22")
    parser.add_argument("--folder", type=Path, help="where verdicts are kept; default nowhere")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page of the documentation")
    parser.add_argument("--upstream", type=Path, metavar="DIR", help="write cases for the newest release's authors")
    add_tract(parser)
    chosen = parser.parse_args(arguments)
    drawn = [program for family in chosen.families or FAMILIES for program in programs(family, chosen.count)]
    began = time.monotonic()
    verdicts: list[PassVerdict] = []
    for resolved in resolve_engines(chosen.tract):
        for path in paths_in(resolved.version, chosen.path):
            verdicts += judge_kept(drawn, engine_for(resolved), path, chosen.folder)
            say(f"tract {resolved.version}, {path}: {time.monotonic() - began:.0f} s")
        close_all()
    if chosen.page:
        chosen.page.write_text(passes_page(verdicts), encoding="utf-8")
    print(matrix(verdicts))
    unknown = 0
    for verdict in smallest(verdicts):
        cause = explanation(verdict)
        unknown += cause is None
        print(f"\n{verdict.program.name}, tract {verdict.release}, {verdict.path}: {verdict.status}")
        print(f"    {cause.reason if cause else 'not known: ' + verdict.reason}")
        print("\n".join(f"    {step.text()}" for step in verdict.program.steps))
    if chosen.upstream:
        written = write_upstream_programs(verdicts, verdicts[-1].release, chosen.upstream)
        say(f"{', '.join(written)} in {chosen.upstream}")
    return min(unknown, 1)


def passes_page(verdicts: Iterable[PassVerdict]) -> str:
    """Return the page in Markdown."""
    counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    programs: set[str] = set()
    for verdict in verdicts:
        programs.add(verdict.program.name)
        counts[verdict.release][verdict.path][verdict.status] += 1
    by_release = {release: counts[release] for release in sorted(counts, key=Version)}
    shown = {"programs": programs, "counts": by_release, "paths": PATHS, "known": KNOWN}
    return render("passes", (outcomes, range_of), **shown)


def outcomes(counts: Counter[str] | None) -> str:
    """Return `199 right, 11 refused`."""
    if not counts:
        return "the same as `declutter`"
    return ", ".join(f"{count} {status}" for status, count in counts.most_common())


def range_of(known_pass: KnownPass) -> str:
    """Return the releases of a pass."""
    if known_pass.before is None:
        return f"{known_pass.since} and later" if known_pass.since else "all"
    return f"{known_pass.since} to before {known_pass.before}" if known_pass.since else f"before {known_pass.before}"


if __name__ == "__main__":
    sys.exit(main())
