"""The page of the documentation on paths: what each release gets wrong on which path, and the pass that does it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from packaging.version import Version

from conformance.dialect.passes.judging import PassVerdict
from conformance.dialect.passes.known import KNOWN, KnownPass
from conformance.lab.pages.tables import table
from t2n_core.engine.paths import EnginePath

_HEAD: Final = """# Paths through tract

A program reaches outputs from an archive by one of these paths, and each takes other rewrites of the graph. A check
runs an archive on all paths that its release has; `--t2n-paths=` (`t2n check --paths`) selects some.

| path | who takes it | releases |
|---|---|---|
| `declutter` | Rust: `into_optimized()`; the command line's `-O`; from 0.23 on everybody | all |
| `optimise-only` | Python wheels: `into_optimized()`; the C interface: `tract_model_optimize` | up to 0.22 |
| `fixed-symbols` | sizes fixed first, then `declutter`: `concretize_dims` in Rust, `concretize_symbols` and \
`set_symbols` elsewhere | all; up to 0.21.7 only reported, since several operators keep their symbols |

Samples, second calls in one State, rows and pieces of sequences are compared on `declutter`; the further paths run all
samples and refused sizes again, that of fixed symbols one sample of sizes that were not traced. Streams and language
models run on both of the first two. Not checked: `into_decluttered()` alone or `into_runnable()` without optimising,
outputs chosen by `with_output_names`, and several threads.
"""
_PROGRAMS: Final = """
## Programs around passes

`python -m conformance.dialect.passes --tract all --page docs/reference/dialect/paths.md` draws programs of two to four
statements around what the engine's passes rewrite, judges them by the definitions of their operators, and writes this
page: {count} programs in {releases} releases. What is not right has a cause below.

{matrix}

## What the passes get wrong

The exporter writes most of these otherwise, or not at all: see
[what each release gets wrong](../../explanation/tract-releases.md).

{causes}
"""


def passes_page(found: Iterable[PassVerdict]) -> str:
    """Return the page in Markdown."""
    counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    programs: set[str] = set()
    for verdict in found:
        programs.add(verdict.program.name)
        counts[verdict.release][verdict.path][verdict.status] += 1
    releases = sorted(counts, key=Version)
    paths = (EnginePath.DECLUTTER, EnginePath.OPTIMISE_ONLY)
    rows = [[release, *(_text(counts[release].get(path)) for path in paths)] for release in releases]
    matrix = table(["release", *(f"`{path}`" for path in paths)], rows)
    causes = table(["pass", "what", "paths", "releases"], [_row(one) for one in KNOWN])
    return _HEAD + _PROGRAMS.format(count=len(programs), releases=len(releases), matrix=matrix, causes=causes)


def _text(counts: Counter[str] | None) -> str:
    """Return `199 right, 11 refused`."""
    if not counts:
        return "the same as `declutter`"
    return ", ".join(f"{count} {status}" for status, count in counts.most_common())


def _row(one: KnownPass) -> Sequence[str]:
    releases = f"{one.since or 'all'} to before {one.before}" if one.before else f"{one.since or 'all'} and later"
    if one.since is None and one.before is None:
        releases = "all"
    elif one.since is None:
        releases = f"before {one.before}"
    return [one.name, one.reason, ", ".join(f"`{path}`" for path in one.paths), releases]
