"""Write the support table of the docs, from measured results, never from registrations.

python -m conformance.lab.measure.coverage --tract all-minors --all-dtypes --outcomes tract.jsonl
python -m conformance.lab.measure.coverage --tract all-minors --dynamic --outcomes dynamic.jsonl
python -m conformance.lab.measure.coverage --khronos --all-dtypes --outcomes khronos.jsonl
python -m conformance.lab.measure.coverage --tract latest --dtypes float64,bfloat16,int8,int16,int32,uint8 --part 1/6 \\
    --outcomes dtypes.jsonl
python -m conformance.lab.pages.support tract.jsonl dynamic.jsonl khronos.jsonl dtypes.jsonl
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from packaging.version import InvalidVersion, Version

from conformance.checks.aten_outcomes import (
    ALL_REFUSED,
    COMPLETE,
    DYNAMIC,
    NO_SAMPLE,
    PASS,
    REFUSED,
    WRONG,
    CaseLine,
    count_verdicts,
    read_lines,
)
from conformance.lab.command import command_parser
from conformance.lab.pages.long_tables import write_page
from conformance.lab.pages.refusal_kinds import KINDS, kind_of
from conformance.lab.pages.render import render
from t2n_core.level import LEVELS

_SECTIONS = {
    "operator": "Operators",
    "inplace": "Operators in place",
    "module": "Modules",
    DYNAMIC: "Operators with every axis dynamic",
}
_LISTED = frozenset(["float32", "float16", "int64", "bool"])
"""Dtypes with a row for each operator; a sample of the others is measured, for the totals and the refusals only."""

_LEVELS = ["", *(level.value for level in LEVELS)]


def support_page(lines: Iterable[CaseLine]) -> str:
    """Return the page as Markdown, which does not depend on the order of the outcomes.

    Raises ValueError for a refusal of none of the KINDS.
    """
    ordered = sorted(lines, key=lambda line: (line.operator, line.dtype, line.engine))
    engines = sorted({line.engine for line in ordered}, key=_engine_order)
    releases = list(dict.fromkeys(map(_release, engines)))
    sections = {title: rows for kind, title in _SECTIONS.items() if (rows := _rows(kind, ordered))}
    shown = {"releases": releases, "sections": sections, "totals": _totals(ordered, engines), "kinds": KINDS}
    return render("support", (release_entry,), refusals=_refusals(ordered, releases), **shown)


def _rows(kind: str, lines: Iterable[CaseLine]) -> dict[tuple[str, str], dict[str, list[CaseLine]]]:
    """Return, by operator and type, then by release, a line per kernel tier."""
    rows: dict[tuple[str, str], dict[str, list[CaseLine]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        if line.kind == kind and line.dtype in _LISTED and line.verdict != NO_SAMPLE:
            rows[line.operator, line.dtype][_release(line.engine)].append(line)
    return rows


def release_entry(lines: Sequence[CaseLine]) -> str:
    """Return a release's entry: its worst kernel tier's, with the tier named if another is better."""
    if not lines:
        return ""
    worst = max(lines, key=_badness)
    entry = entry_of(worst)
    tiers = [_tier(line.engine) or "native" for line in lines if entry_of(line) == entry]
    return entry if len(tiers) == len(lines) else f"{entry} ({', '.join(tiers)})"


def _badness(line: CaseLine) -> tuple[bool, float, int]:
    passed = sum(sample.result == PASS for sample in line.samples)
    wrong = any(sample.result == WRONG for sample in line.samples)
    return wrong, -passed / len(line.samples), _LEVELS.index(line.level)


def _tier(engine: str) -> str:
    return next((word for word in engine.split(" ") if word.startswith("no-")), "")


def _release(engine: str) -> str:
    return " ".join(word for word in engine.split(" ") if not word.startswith("no-"))


def entry_of(line: CaseLine) -> str:
    """Return the entry of one engine."""
    if any(sample.result == WRONG for sample in line.samples):
        return "**wrong**"
    if line.verdict == COMPLETE:
        return line.level
    if line.verdict == ALL_REFUSED:
        return "no"
    passed = sum(sample.result == PASS for sample in line.samples)
    return f"{passed}/{len(line.samples)}" if passed else "fails"


def _totals(lines: Sequence[CaseLine], engines: Sequence[str]) -> Iterator[tuple[str | int, ...]]:
    for engine in engines:
        groups: dict[tuple[str, str], list[CaseLine]] = defaultdict(list)
        for line in lines:
            if line.engine == engine:
                groups[line.kind, line.dtype].append(line)
        for (kind, dtype), group in groups.items():
            verdicts = count_verdicts(group)
            samples = [sample.result for line in group for sample in line.samples]
            usable = len(group) - verdicts[NO_SAMPLE]
            refused, wrong = samples.count(REFUSED), samples.count(WRONG)
            failed = len(samples) - samples.count(PASS) - refused - wrong
            yield engine, kind, dtype, usable, verdicts[COMPLETE], len(samples), refused, failed, wrong


def _refusals(lines: Sequence[CaseLine], releases: Sequence[str]) -> dict[str, list[tuple[str, str, list[str]]]]:
    """Return for each kind of refusal the operators with one, by dtype and engines."""
    where: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for line in lines:
        for sample in line.samples:
            if sample.result == REFUSED:
                kind = kind_of(sample.message)
                if kind is None:
                    raise ValueError(f"a refusal without a kind: {sample.id} in {line.engine}: {sample.message}")
                dtype = f"{line.dtype}, dynamic" if line.kind == DYNAMIC else line.dtype
                where[kind.name, dtype, line.operator].add(_release(line.engine))
    rows: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for (name, dtype, operator), engines in sorted(where.items()):
        rows[name, dtype, _these(engines, releases)].append(f"`{operator}`")
    return {kind.name: [(*key[1:], rows[key]) for key in sorted(rows) if key[0] == kind.name] for kind in KINDS}


def _these(engines: Collection[str], releases: Sequence[str]) -> str:
    """Return a short name of some engines, in their order."""
    tract = [release for release in releases if release.startswith("tract")]
    if set(engines) == set(releases):
        return "all"
    words = ["tract"] if tract and set(tract) <= set(engines) else [r for r in tract if r in engines]
    return ", ".join([*words, *(release for release in releases if release in engines and release not in tract)])


def _engine_order(title: str) -> tuple[bool, Version, str]:
    """Return the key by which engines are sorted: releases of tract ascending, khronos after them."""
    name, version = title.split(" ")[:2]
    try:
        return name != "tract", Version(version), title
    except InvalidVersion:
        return name != "tract", Version("0"), title


def main() -> None:
    parser = command_parser("conformance.lab.pages.support", __doc__)
    parser.add_argument("files", nargs="+", type=Path, help="as `--outcomes` of `measure.coverage` writes them")
    parser.add_argument("--output", type=Path, default=Path("docs/reference/support.md"))
    arguments = parser.parse_args()
    page = support_page(line for path in arguments.files for line in read_lines(path))
    write_page(arguments.output, page, arguments.output.parent / "tables")


if __name__ == "__main__":
    main()
