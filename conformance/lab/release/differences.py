"""Statuses by name in two releases: how many are the same, and those that are not."""

from __future__ import annotations

from collections.abc import Mapping

MOST_LINES = 60
"""Of differences that are listed."""


def describe_differences(what: str, before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the count of equal statuses, and a line for each name with another one, with those that are right last."""
    common = [name for name in before if name in now]
    changed = [name for name in common if before[name] != now[name]]
    lines = [f"{len(common) - len(changed)} of {len(common)} {what} end as before."]
    new = [name for name in now if name not in before]
    if new:
        lines[0] += f" {len(new)} are new: {', '.join(f'{now[name]} {name}' for name in new[:MOST_LINES])}."
    ordered = sorted(changed, key=lambda name: (now[name] in ("right", "pass"), name))
    listed = [f"- `{name}`: {before[name]} before, {now[name]} now" for name in ordered[:MOST_LINES]]
    if len(ordered) > MOST_LINES:
        listed.append(f"- and {len(ordered) - MOST_LINES} more")
    return [*lines, "", *listed] if listed else lines
