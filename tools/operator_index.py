"""Print which function writes each torch operator.

python -m tools.operator_index             # all of them
python -m tools.operator_index conv pool   # operators with one of these texts in their names
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from t2n_core.op.registry import Rule, load_default

ROOT = Path(__file__).parents[1]


def rows(words: Sequence[str] = ()) -> Iterator[tuple[str, str, str]]:
    """Yield operator, `file:line` and function of each rule, in the order of operators."""
    for rule in sorted(load_default(), key=lambda rule: (rule.key, rule.target or "", rule.place)):
        if not words or any(word in rule.key for word in words):
            path, _, line = rule.place.rpartition(":")
            name = rule.function.__qualname__.replace(".<locals>", "")
            yield rule.key, f"{Path(path).relative_to(ROOT).as_posix()}:{line}", f"{name}{_limits(rule)}"


def _limits(rule: Rule) -> str:
    """Return the target, releases and option that limit a rule; '' if it always holds."""
    words = {"since": rule.releases.since, "before": rule.releases.before, "with": rule.option}
    limits = [*([rule.target] if rule.target else []), *(f"{word} {value}" for word, value in words.items() if value)]
    return f" ({' '.join(limits)})" if limits else ""


def main(words: Sequence[str]) -> int:
    """Print the rows in columns; return 1 if there are none."""
    entries = list(rows(words))
    widths = [max(map(len, column)) for column in zip(*entries, strict=True)][:2]
    for key, location, function in entries:
        print(f"{key:{widths[0]}}  {location:{widths[1]}}  {function}")
    return 0 if entries else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
