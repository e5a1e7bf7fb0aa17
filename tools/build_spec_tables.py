"""Writes t2n_core/nnef/spec_data/*.json, the operator tables of every target version, from tools/spec_sources/.

    python tools/build_spec_tables.py            writes the files
    python tools/build_spec_tables.py --check    writes nothing; exit status 1 if a file is not up to date

The sources are kept by hand; the script turns their text into plain data and refuses what does not fit together:
a type or default it cannot read, version ranges that overlap, a release that nobody has heard of.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import re
import sys
from pathlib import Path
from typing import Any

from packaging.version import Version

from t2n_core.nnef.signatures import REQUIRED, parse_parameters

SOURCES = Path(__file__).parent / "spec_sources"
OUTPUT = Path(__file__).parent.parent / "t2n_core" / "nnef" / "spec_data"
KHRONOS = re.compile(r"\w+(?P<generic><[^(]*>)?\( (?P<parameters>.*) \) -> \( (?P<results>.*) \)")


def parameters(text: str) -> list[list[Any]]:
    """`x: tensor<scalar>, axis: integer = 0` -> [["x", "tensor<scalar>"], ["axis", "integer", 0]]."""
    return [[p.name, p.type] if p.default is REQUIRED else [p.name, p.type, p.default] for p in parse_parameters(text)]


def read_tsv(name: str) -> list[dict[str, str]]:
    with (SOURCES / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def known_releases() -> list[str]:
    """Return the releases of tract that rows may name, in order."""
    releases = (SOURCES / "tract_releases.txt").read_text(encoding="utf-8").split()
    if sorted(releases, key=Version) != releases:
        raise ValueError("tract_releases.txt is not in order")
    return releases


def tract_table() -> dict[str, Any]:
    releases = known_releases()
    operators: dict[str, list[dict[str, Any]]] = {}
    for row in read_tsv("tract_operators.tsv"):
        since, until = releases.index(row["since"]), releases.index(row["until"])
        entry: dict[str, Any] = {"registry": row["registry"], "since": row["since"], "until": row["until"]}
        # The end is kept as the next release: a later patch of an old line still has what its last known one had.
        entry["before"] = releases[until + 1] if until + 1 < len(releases) else None
        if row["status"] not in ("ok", "absent", "broken") or (row["status"] == "ok") == bool(row["reason"]):
            raise ValueError(f"status and reason do not fit: {row}")
        if row["status"] != "ok":
            entry[row["status"]] = row["reason"]
        entry["parameters"] = parameters(row["parameters"])
        entry["results"] = parameters(row["results"])
        if since > until:
            raise ValueError(f"{row['operator']}: {row['since']} is after {row['until']}")
        operators.setdefault(row["operator"], []).append(entry)
    for name, entries in operators.items():
        entries.sort(key=lambda e: releases.index(e["since"]))
        for earlier, later in itertools.pairwise(entries):
            if earlier["before"] is None or Version(earlier["before"]) > Version(later["since"]):
                raise ValueError(f"{name}: {earlier['since']}..{earlier['until']} overlaps {later['since']}")
    return {"oldest": "0.19.2", "newest": releases[-1], "operators": dict(sorted(operators.items()))}


def khronos_table() -> dict[str, Any]:
    operators = {}
    for row in read_tsv("khronos_operators.tsv"):
        match = KHRONOS.fullmatch(row["signature"])
        if match is None:
            raise ValueError(f"not a signature: {row['signature']!r}")
        entry = {"registry": "", "since": row["since"], "until": "1.0.5", "before": None}
        entry |= {"parameters": parameters(match["parameters"]), "results": parameters(match["results"])}
        operators[row["operator"]] = [entry]
    return {"oldest": "1.0", "newest": "1.0.5", "operators": dict(sorted(operators.items()))}


def as_text(table: dict[str, Any]) -> str:
    """One operator signature per line, so that a change of the table is a readable difference."""
    head = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in table.items() if k != "operators")
    body = ",\n".join(
        f"{json.dumps(name)}: [\n  " + ",\n  ".join(json.dumps(entry) for entry in entries) + "\n]"
        for name, entries in table["operators"].items()
    )
    return f'{{\n{head},\n"operators": {{\n{body}\n}}\n}}\n'


def tables() -> dict[str, str]:
    """File name -> text, for every data file."""
    built = {"tract.json": tract_table(), "khronos.json": khronos_table()}
    return {name: as_text(table) for name, table in built.items()}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail if a file is not up to date")
    check = parser.parse_args(arguments).check
    stale = []
    for name, text in tables().items():
        path = OUTPUT / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    print(f"{'stale' if check else 'written'}: {', '.join(stale) or 'none'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
