"""Measure halves on the architectures of the suite `models`.

python -m conformance.halves stored --tract 0.19,0.20,0.21,0.22,0.23 -o stored.jsonl

A file of results is continued: what it has is not measured again. Needs the libraries of the suite `models`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from t2n_core.engine import resolve_engines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m conformance.halves", description=__doc__, formatter_class=form)
    parser.add_argument("kind", choices=["stored"])
    parser.add_argument("--tract", default="0.19,0.20,0.21,0.22,0.23", metavar="SPEC", help="engines")
    parser.add_argument("--models", default="", metavar="TEXT", help="only architectures with this in their name")
    parser.add_argument("--until", default="99:99", metavar="HH:MM", help="begin no architecture after this time")
    parser.add_argument("-o", "--output", type=Path, required=True, help="results, a line for each")
    options = parser.parse_args(arguments)

    from conformance.halves import stored
    from conformance.suites.test_models import CASES

    engines = resolve_engines(options.tract, offline=True)
    done = _done(options.output)
    names = [name for start in range(8) for name in list(CASES)[start::8] if options.models in name]
    for name in names:
        left = [engine for engine in engines if (name, engine.version) not in done]
        if not left or time.strftime("%H:%M") >= options.until:
            continue
        with tempfile.TemporaryDirectory() as folder, options.output.open("a", encoding="utf-8") as out:
            for row in stored.measure(name, CASES[name], left, Path(folder)):
                out.write(json.dumps(row) + "\n")
                out.flush()
                print(row["name"], row["version"], row.get("ratio"), row.get("failed", row.get("level")), flush=True)
    return 0


def _done(path: Path) -> set[tuple[str, str]]:
    if not path.exists():
        return set()
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {(row["name"], row["version"]) for row in rows}


if __name__ == "__main__":
    sys.exit(main())
