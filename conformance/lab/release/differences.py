"""Compare statuses by name in two releases: count equal ones, list the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

MOST_LINES = 60
"""Of differences that are listed."""


def describe_differences(
    subject: str, before: Mapping[str, str], now: Mapping[str, str], group: Callable[[str], str] = str
) -> list[str]:
    """Return the count of equal statuses, and a line for each group of changed names, right ones last.

    Raises ValueError if there is nothing to compare.
    """
    if not before or not now:
        raise ValueError(f"there are no {subject} of one of both releases")
    common = [name for name in before if name in now]
    changed = [name for name in common if before[name] != now[name]]
    lines = [f"{len(common) - len(changed)} of {len(common)} {subject} end as before."]
    new = [name for name in now if name not in before]
    if new:
        counts = Counter((group(name), now[name]) for name in new)
        listed = [f"{count} of `{name}` {status}" for (name, status), count in counts.most_common(MOST_LINES)]
        lines[0] += f" {len(new)} are new: {', '.join(listed)}."
    gone = [name for name in before if name not in now]
    changes = Counter((group(name), before[name], now.get(name, "missing")) for name in (*changed, *gone))
    ordered = sorted(changes.items(), key=lambda item: (item[0][2].startswith(("right", "pass")), item[0]))
    listed = [
        f"- `{name}`{f', {count} of them' if count > 1 else ''}: {old} before, {new} now"
        for (name, old, new), count in ordered[:MOST_LINES]
    ]
    if len(ordered) > MOST_LINES:
        listed.append(f"- and {len(ordered) - MOST_LINES} more")
    return [*lines, "", *listed] if listed else lines
