"""Print the outcome of each pattern of suite `sizes` in each engine as a table.

    pytest conformance/suites/test_sizes.py -k crop --t2n-tract=0.21.19,0.23.9 --t2n-report=site
    python -m conformance.lab.pages.sizes site

A row is a pattern at one traced size; `=` is right at every size.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from conformance.lab.command import command_parser
from pytest_t2n.records.index import open_index

RIGHT, NARROWED, REFUSED, WRONG, CRASH, ERROR, BUG = "=", "part", "refused", "WRONG", "CRASH", "error", "BUG"
UNGUARDED, LESS = "OPEN", "less"
"""`part`: right, refused beyond a range that the model's own decisions make smaller; `less`: the same without such a
decision; `OPEN`: wrong beyond the range, since nothing guards it; `error`: refused in it, or never loaded; `refused`:
a T2NError of export; `BUG`: another exception of export."""
_EXPORTING = ("setup", "input", "capture", "lower", "spec", "write")


def word_of(fields: Mapping[str, Any]) -> tuple[str, str]:
    """Return the outcome of a cell as a word, and where or why, from the fields of its record."""
    facts, error = fields.get("facts") or {}, fields.get("error") or {}
    if fields["status"] == "pass":
        out = facts.get("refused_sizes") or []
        beyond = [sizes for sizes in out if all(sizes.values())]
        return (NARROWED, f"not at {spans(beyond)}{_range(facts)}") if beyond else (RIGHT, "")
    where = spans(fields.get("failed_sizes") or [])
    if fields["status"] == "mismatch":
        return (UNGUARDED if facts.get("unguarded_sizes") else WRONG), f"at {where}{_range(facts)}"
    if fields["status"] in ("crash", "timeout", "oom"):
        return CRASH, f"{fields['stage']} {where} {_short(error)}"
    if error.get("error_class") == "SmallerRange":
        return LESS, f"not at {where}{_range(facts)}"
    if fields["stage"] in _EXPORTING:
        ours = error.get("error_class") in _our_errors()
        return (REFUSED if ours else BUG), f"{error.get('error_class')}: {_short(error)}"
    return ERROR, f"{fields['stage']} {where} {_short(error)}"


def _range(facts: Mapping[str, Any]) -> str:
    return f" (declared {facts['range']})" if "range" in facts else ""


def spans(sizes: Iterable[Mapping[str, int]]) -> str:
    """`T 1-4 9`; of two symbols `P 0, S 1 3-6` and so on, at most three of them."""
    found: dict[tuple[str, ...], list[int]] = {}
    for one in sizes:
        for name, size in list(one.items())[-1:]:
            others = tuple(f"{n} {v}," for n, v in one.items() if n != name)
            found.setdefault((*others, name), []).append(size)
    texts = [" ".join([*names, *_ranges(sorted(set(values)))]) for names, values in found.items()]
    return "; ".join(texts[:3]) + (f" and {len(texts) - 3} more" if len(texts) > 3 else "")


def _ranges(values: list[int]) -> Iterator[str]:
    """Runs of one step, also of steps of two, as `3-70` and `2-70/2`."""
    while values:
        for step in (1, 2):
            end = 1
            while end < len(values) and values[end] - values[end - 1] == step:
                end += 1
            if end > 2:
                break
        else:
            step, end = 1, 1
        yield str(values[0]) if end == 1 else f"{values[0]}-{values[end - 1]}" + (f"/{step}" if step > 1 else "")
        values = values[end:]


def _short(error: Mapping[str, Any]) -> str:
    text = " ".join(str(error.get("message", "")).split())
    return text if len(text) < 200 else f"{text[:90]} … {text[-100:]}"


def _our_errors() -> set[str]:
    from t2n_core import errors

    return {name for name in vars(errors) if name.endswith("Error") or name.startswith("Engine")}


def read(path: Path) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """Yield row, engine and outcome of each cell of a session that came to its end."""
    with open_index(path) as index:
        if not index.completeness.is_complete:
            raise SystemExit(f"{path}: {index.completeness.notice}")
        for cell in index.cells():
            if "test_sizes[" in cell.case:
                row = cell.case.partition("[")[2].removesuffix("]")
                yield row, cell.version, word_of(msgspec.to_builtins(cell))


def main() -> int:
    parser = command_parser("conformance.lab.pages.sizes", __doc__)
    parser.add_argument("records", type=Path, help="matrix.jsonl or its folder")
    parser.add_argument("--details", action="store_true", help="also print where and why each wrong cell fails")
    options = parser.parse_args()
    rows: dict[str, dict[str, tuple[str, str]]] = {}
    for row, version, outcome in read(options.records):
        rows.setdefault(row, {})[version] = outcome
        if options.details and outcome[0] != RIGHT:
            print(f"{row:44s} {version:8s} {outcome[0]:8s} {outcome[1]}", flush=True)
    versions = sorted({v for row in rows.values() for v in row}, key=lambda v: tuple(map(int, v.split("."))))
    print(f"{'pattern-traced size':44s} " + " ".join(f"{v:8s}" for v in versions))
    for row, outcome in rows.items():
        words = [outcome.get(v, ("", ""))[0] for v in versions]
        if set(words) != {RIGHT}:
            print(f"{row:44s} " + " ".join(f"{word:8s}" for word in words))
    for version in versions:
        counts = Counter(row[version][0] for row in rows.values() if version in row)
        print(f"{version:8s} {sum(counts.values())} cells: " + ", ".join(f"{n} {w}" for w, n in counts.most_common()))
    return int(any(outcome[0] in (WRONG, UNGUARDED, CRASH, BUG) for row in rows.values() for outcome in row.values()))


if __name__ == "__main__":
    sys.exit(main())
