"""Print the outcome of each pattern of suite `sizes` in each engine as a table.

    python -m conformance.lab.pages.sizes crop 'pad_*' --tract 0.21.19,0.23.9
    python -m conformance.lab.pages.sizes --records site/matrix.jsonl

The first form runs the patterns whose names hold or match one of the words, in this process; the second reads what the
suite found. A row is a pattern at one traced size; `=` is right at every size.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from conformance.lab.command import command_parser

ENGINES = "0.19.15,0.20.22,0.21.8,0.21.19,0.22.4,0.23.9"
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


def run(words: list[str], versions: list[str]) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """Row, engine and what became of it."""
    from conformance.cases.sizes.patterns import NETS
    from conformance.checks.sizes import SECONDS_TO_RUN, check_result, export_of
    from t2n_core import TractNNEF
    from t2n_core.parity.outcome import Outcome

    targets = [TractNNEF(version, check_io=False) for version in versions]
    chosen = [n for n in NETS if not words or any(word in n or fnmatch(n, word) for word in words)]
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            for sizes in NETS[name].traced:
                for target, version in zip(targets, versions, strict=True):
                    try:
                        result = export_of(name, tuple(sizes.values())).to(target, Path(folder, "model.tar"))
                        outcome = check_result(result, name, sizes, SECONDS_TO_RUN)
                    except Exception as cause:
                        outcome = Outcome.from_error(cause, "lower")
                    fields = {**outcome.to_dict(), "status": outcome.status.value, "stage": outcome.stage.value}
                    yield f"{name}-{'x'.join(map(str, sizes.values()))}", version, word_of(fields)


def read(path: Path) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """Return what `run` does, from the records of a session that came to its end."""
    import msgspec

    from pytest_t2n.records.file import read_records
    from pytest_t2n.records.index import completeness_of
    from pytest_t2n.records.schema import cells_of

    records = read_records(path / "matrix.jsonl" if path.is_dir() else path)
    state = completeness_of(records)
    if not state.is_complete:
        raise SystemExit(f"{path}: {state.notice}")
    for cell in cells_of(records):
        if "test_sizes[" in cell.case:
            row = cell.case.partition("[")[2].removesuffix("]")
            yield row, cell.version, word_of(msgspec.to_builtins(cell))


def main() -> int:
    parser = command_parser("conformance.lab.pages.sizes", __doc__)
    parser.add_argument("words", nargs="*", help="of the patterns that are run; all if there is none")
    parser.add_argument("--tract", default=ENGINES, help=f"versions, default {ENGINES}")
    parser.add_argument("--records", type=Path, help="matrix.jsonl or its folder, in place of running anything")
    parser.add_argument("--details", action="store_true", help="also print where and why each wrong cell fails")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    start = time.monotonic()
    cells = read(options.records) if options.records else run(options.words, options.tract.split(","))
    rows: dict[str, dict[str, tuple[str, str]]] = {}
    for row, version, outcome in cells:
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
    print(f"{time.monotonic() - start:.0f} s")
    return int(any(outcome[0] in (WRONG, UNGUARDED, CRASH, BUG) for row in rows.values() for outcome in row.values()))


if __name__ == "__main__":
    sys.exit(main())
