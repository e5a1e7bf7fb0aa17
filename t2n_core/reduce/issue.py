"""The text of an issue for the engine's maintainers: what fails, where, since when, on which machine."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from t2n_core.engine.processor import this_processor
from t2n_core.engine.protocol import Array, EngineReply
from t2n_core.errors import Origin
from t2n_core.parity.stage import Author
from t2n_core.reduce.program import Program
from t2n_core.releases.search import ReleaseReport

_AUTHORS: Final[Mapping[Author, str]] = {
    Author.ENGINE: "the graph has the expected values: the engine is wrong.",
    Author.EXPORTER: "the graph has the values that the engine computes: the graph is wrong, and not the engine.",
    Author.BOTH: "the graph has neither the expected values nor those that the engine computes.",
}
_SHOWN: Final = 8
"""Elements of a tensor that are shown."""


def issue_text(
    title: str,
    program: Program,
    reply: EngineReply,
    expected: Mapping[str, Array],
    *,
    engine: str,
    oracle: str = "",
    report: ReleaseReport | None = None,
    origins: Mapping[str, Origin | str] | None = None,
    place: str = "",
    author: Author | str | None = None,
    meant: Mapping[str, Array] | None = None,
) -> str:
    """Return the text in Markdown. `place` is where the files of the case are.

    `author` is a result of `t2n_core.check.mismatch.author.author_of`, and `meant` has the values of the outputs by the
    definitions of the operators.
    """
    parts = [f"# {title}", _what(reply, engine, oracle), verdict(author), f"```\n{program.text().strip()}\n```"]
    parts.append(_numbers(program, reply, expected, meant or {}))
    if report is not None:
        parts.append(_releases(report))
    lines = [f"- `{name}`: {origin}" for name in program.results() if (origin := (origins or {}).get(name))]
    if lines:
        parts.append("## PyTorch\n\n" + "\n".join(lines))
    if place:
        parts.append(f"## Files\n\n{place}")
    parts.append(f"## Machine\n\n{machine_text()}")
    return "\n\n".join(part for part in parts if part) + "\n"


def verdict(author: Author | str | None) -> str:
    """Return whether the engine is wrong, as a sentence; empty without an author."""
    if isinstance(author, Author):
        return f"By the definitions of its operators, in float64, {_AUTHORS[author]}"
    return f"Who is wrong is {author}." if author else ""


def machine_text() -> str:
    """Return the processor of this machine with its features, and the system."""
    processor = this_processor()
    machine = f"{processor.model or processor.vendor}, {platform.system()} {platform.machine()}"
    return f"{machine}; {' '.join(processor.features)}".rstrip("; ")


def _what(reply: EngineReply, engine: str, oracle: str) -> str:
    if reply.status == "ok":
        return f"{engine} computes other values for this graph than {oracle or 'the standard defines'}."
    symptom = {"crash": "dies", "timeout": "does not answer", "oom": "uses up the memory"}.get(
        reply.status, "refuses it"
    )
    message = reply.message.strip()
    return f"{engine} {symptom} at stage `{reply.stage}`:" + (f"\n\n```\n{message}\n```" if message else "")


def _numbers(
    program: Program, reply: EngineReply, expected: Mapping[str, Array], by_definition: Mapping[str, Array]
) -> str:
    lines = ["## Values", "", "| tensor | shape | values |", "|---|---|---|"]
    lines += [value_row(f"`{name}`", array) for name, array in program.inputs.items()]
    got = reply.outputs[0] if reply.status == "ok" and reply.outputs else ()
    computed = dict(zip(program.outputs, got, strict=False))
    for name in program.outputs:
        for source, arrays in (("expected", expected), ("by definition", by_definition), ("computed", computed)):
            if name in arrays:
                lines.append(value_row(f"`{name}`, {source}", arrays[name]))
    return "\n".join(lines)


def value_row(name: str, array: Array) -> str:
    """Return the row of a tensor in a table of values."""
    return f"| {name} | {list(array.shape)} | {_values(array)} |"


def _values(array: Array) -> str:
    flat = array.ravel()
    if flat.size > 1 and (flat == flat[0]).all():
        return f"{_number(flat[0])} in all elements"
    more = f", … ({flat.size})" if flat.size > _SHOWN else ""
    return ", ".join(_number(value) for value in flat[:_SHOWN]) + more


def _number(value: np.generic) -> str:
    return f"{float(value):.7g}" if value.dtype.kind == "f" else str(value)


def _releases(report: ReleaseReport) -> str:
    lines = ["## Releases", "", *(f"- {stretch.describe()}" for stretch in report.stretches)]
    boundaries = report.boundaries
    if boundaries:
        lines += [
            "",
            *(
                f"Changed between {boundary.before} ({boundary.was}) and {boundary.after} ({boundary.becomes})."
                for boundary in boundaries
            ),
        ]
    right: Sequence[object] = report.right
    if right:
        lines.append(f"The first release that is right is {right[0]}, the last one {right[-1]}.")
    return "\n".join(lines)
