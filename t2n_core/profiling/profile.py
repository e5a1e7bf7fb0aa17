"""The profile of a file in one engine: the nodes' shares of the time, scaled to the median of plain runs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from t2n_core.check.file import open_checked
from t2n_core.engine.paths import EnginePath
from t2n_core.engine.protocol import Array
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.errors import EngineRunError
from t2n_core.nnef.reading.document import Document
from t2n_core.parity.outcomes import failure_outcome
from t2n_core.profiling.nodes import Owners, ProfiledNode, read_nodes

OTHERS: Final = "(no statement)"
SECONDS: Final = 1.0
"""Total time of the plain runs, by default."""


@dataclass(frozen=True, slots=True)
class Line:
    """An operation with the time of the nodes that compute it."""

    name: str
    operator: str
    seconds: float
    """Time in one run: the share of the nodes' time, times the median of plain runs."""
    share: float
    nodes: tuple[str, ...]
    """Operators of the engine's nodes."""
    inside: int = 0
    """Nodes in the body of a scan, which are not measured separately."""
    origin: str = ""
    """Operator, module and line in PyTorch."""

    @property
    def place(self) -> str:
        """Return the origin, or the name if unknown, with a note for a scan."""
        body = f"; {self.inside} nodes of its body are not measured separately" if self.inside else ""
        return f"{self.origin or self.name}{body}"


@dataclass(frozen=True, slots=True)
class Profile:
    """Time per operation, the slowest first."""

    engine: str
    median: float
    """Seconds of a plain run."""
    cpu: float
    """Mean CPU seconds of a plain run."""
    cpu_profiled: float
    """Mean CPU seconds of a profiled run."""
    lines: tuple[Line, ...]
    memory: int = 0
    """Bytes that the loaded model and its plain runs take; 0 if unknown."""

    @property
    def agreement(self) -> float:
        """Return the CPU time of profiled runs relative to plain runs."""
        return self.cpu_profiled / self.cpu if self.cpu else 0.0

    def describe(self, most: int = 20) -> str:
        """Return a table for a terminal."""
        head = f"{self.engine}: {self.median * 1e3:.3g} ms a run (median), profiled at {self.agreement:.0%} of its time"
        rows = [
            f"{line.share:6.1%}  {line.seconds * 1e6:9.1f} µs  {line.operator:20}  {line.place}" for line in self.lines
        ]
        more = [f"… {len(rows) - most} more"] if len(rows) > most else []
        return "\n".join([head, *rows[:most], *more])


def profile_archive(
    engine: TractEngine,
    archive: Path,
    inputs: Sequence[Array],
    *,
    origins: Mapping[str, str] | None = None,
    path: EnginePath = EnginePath.DECLUTTER,
    sizes: Mapping[str, int] | None = None,
    seconds: float = SECONDS,
    timeout: float = 60.0,
) -> Profile:
    """Return the profile of an archive or an ONNX model on a path of the engine; `sizes` are the input sizes.

    `origins` default to the file's. Raises EngineRunError if it does not run, InputError for any other file.
    """
    file = open_checked(archive, {})
    document = file.document
    symbols = sizes if path is EnginePath.FIXED_SYMBOLS else None
    name = f"tract {engine.version}" + ("" if path is EnginePath.DECLUTTER else f" on the path `{path}`")
    reply = engine.profile(archive, inputs, seconds=seconds, symbols=symbols, path=path, timeout=timeout)
    if reply.status != "ok":
        outcome = file.with_hint(failure_outcome(reply, [], {}, timeout), engine, "tract")
        message = f"{name} does not run it: {reply.status} at {reply.stage}: {reply.message}"
        raise EngineRunError(message, hint=None if outcome.error is None else outcome.error.hint)
    facts = reply.facts
    nodes = read_nodes(facts["profile"])
    runs = _iterations(facts["profile"])
    median = statistics.median(facts["seconds"])
    lines = lines_of(document, nodes, median, origins or file.origins)
    return Profile(name, median, facts["cpu"], facts["cpu_profiled"] / runs, lines, facts.get("memory", 0))


def _iterations(text: str) -> int:
    import json

    return max(1, int(json.loads(text).get("profiling_info", {}).get("iterations", 1)))


def lines_of(
    document: Document, nodes: Sequence[ProfiledNode], median: float, origins: Mapping[str, str]
) -> tuple[Line, ...]:
    """Return the time per operation, the slowest first."""
    owners = Owners(document, nodes)
    groups: dict[str, list[ProfiledNode]] = {}
    for node in nodes:
        groups.setdefault(owners.owner(node), []).append(node)
    total = sum(node.seconds for node in nodes) or 1.0
    lines = []
    for name, group in groups.items():
        share = sum(node.seconds for node in group) / total
        statement = owners.statement(name)
        operators = tuple(dict.fromkeys(node.operator for node in group))
        inside = sum(node.inside for node in group)
        operator = statement.operator if statement else ", ".join(operators)
        lines.append(Line(name or OTHERS, operator, share * median, share, operators, inside, origins.get(name, "")))
    return tuple(sorted(lines, key=lambda line: -line.share))


def comparison_table(profiles: Sequence[Profile], most: int = 20) -> str:
    """Return several profiles side by side: time per origin, or per name if unknown, the slowest first."""
    tables = [_seconds_by_place(profile) for profile in profiles]
    places = sorted({label for table in tables for label in table}, key=lambda p: -max(t.get(p, 0.0) for t in tables))
    heads = [f"{profile.engine} ({profile.median * 1e6:.0f} µs)" for profile in profiles]
    width = max(map(len, heads))
    rows = ["  ".join([*(f"{head:>{width}}" for head in heads), "where"])]
    for label in places[:most]:
        cells = [f"{table[label] * 1e6:.1f} µs" if label in table else "-" for table in tables]
        rows.append("  ".join([*(f"{cell:>{width}}" for cell in cells), label]))
    if len(places) > most:
        rows.append(f"… {len(places) - most} more")
    return "\n".join(rows)


def _seconds_by_place(profile: Profile) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for line in profile.lines:
        label = line.origin or f"{line.operator} {line.name}"
        seconds[label] = seconds.get(label, 0.0) + line.seconds
    return seconds
