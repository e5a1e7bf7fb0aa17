"""The page of the documentation on paths: what each release gets wrong on which path, and the pass that does it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from packaging.version import Version

from conformance.dialect.passes.judging import PassVerdict
from conformance.dialect.passes.known import KNOWN, KnownPass
from conformance.dialect.passes.session import PATHS
from conformance.lab.pages.render import render


def passes_page(found: Iterable[PassVerdict]) -> str:
    """Return the page in Markdown."""
    counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    programs: set[str] = set()
    for verdict in found:
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


def range_of(one: KnownPass) -> str:
    """Return the releases of a pass."""
    if one.before is None:
        return f"{one.since} and later" if one.since else "all"
    return f"{one.since} to before {one.before}" if one.since else f"before {one.before}"
