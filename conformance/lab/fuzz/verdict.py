"""The outcome of one model in one engine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.lab.fuzz.program import Sizes

RIGHT, REFUSED, WRONG, UNGUARDED, EXCEPTION, ENGINE_ERROR, CRASH, TIMEOUT, HANG, NO_SIZE, OUTSIDE, FROZEN, RED = (
    "right", "refused", "WRONG", "unguarded", "exception", "engine error", "crash", "timeout", "hang", "no size",
    "outside", "frozen", "red",
)  # fmt: skip
STATUSES = (
    WRONG, UNGUARDED, EXCEPTION, CRASH, TIMEOUT, HANG, ENGINE_ERROR, RED, REFUSED, FROZEN, NO_SIZE, RIGHT, OUTSIDE,
)  # fmt: skip
"""The worst first. `unguarded`: other values outside of the archive's range; `hang`: export takes too long; `no size`:
PyTorch itself has no finite values at the example's sizes; `outside`: the engine refused a size outside of the range;
`frozen`: other values, an error or a crash after a FrozenDecisionWarning; `red`: the product's own check fails, though
the archive is right."""
FAILURES = (WRONG, UNGUARDED, EXCEPTION, CRASH, TIMEOUT, HANG, ENGINE_ERROR, RED)
"""What must not be; a refusal by export is allowed."""


def _word(match: re.Match[str]) -> str:
    """Return the text before an expression of sizes, and the expression's outermost operator."""
    rest = match[0][len(match[1]) :]
    return match[1] + next((w for w in ("Max", "Min", "Modulo", "FloorDiv") if w in rest), "sizes")


_UNSTABLE = (
    (re.compile(r"^at stage (\w+): opening file .*?(?=\n\s*\d+: [^\n]*\Z|\Z)", re.DOTALL), r"at stage \1:"),
    (re.compile(r"\n\s*origin:.*|\n\s*target:.*"), ""),
    (
        re.compile(r"(cannot be written: |dynamic size |depends on its data |Received user-specified).*", re.DOTALL),
        _word,
    ),
    (re.compile(r"(?<=data type )\w+|slicing [\dx,A-Z. -]*"), "…"),
    (re.compile(r"`[^`]*`"), "`…`"),
    (re.compile(r"(?:[\w.+~-]*/)+([\w.+~-]+)"), r"\1"),
    (re.compile(r"\b[cnv]\d+\w*|layer_v\d+|fuzz_\w+\.py:?"), "…"),
    (re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?"), "N"),
    (re.compile(r"\[[^\]\n]*\]|\([^()\n]*\)"), "[…]"),
    (re.compile(r"\s+"), " "),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One model in one engine; `status` is the worst of its sizes."""

    engine: str
    status: str
    message: str = ""
    cause: str = ""
    """The message without what differs from model to model, to count by."""
    failing: tuple[Sizes, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many sizes were right, failed, lay outside of the range, or did not count."""
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        return self.status in FAILURES

    def as_json(self) -> dict[str, Any]:
        return {
            "engine": self.engine,
            "status": self.status,
            "message": self.message,
            "cause": self.cause,
            "failing": [dict(sizes) for sizes in self.failing],
            "counts": dict(self.counts),
            "seconds": round(self.seconds, 3),
        }


def cause_of(message: str) -> str:
    """Return a message without names, numbers and positions."""
    for pattern, stand_in in _UNSTABLE:
        message = pattern.sub(stand_in, message)
    return message.strip()[:300]
