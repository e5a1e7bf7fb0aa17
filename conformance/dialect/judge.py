"""The judgement of one case in one engine: the engine's results against those of the definition."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np

from t2n_core.dialect.arrays import Array
from t2n_core.dialect.cases import Case, name_in
from t2n_core.dialect.registry import Definition
from t2n_core.engine.pool import TractRunner
from t2n_core.engine.protocol import EngineReply
from t2n_core.nnef.signatures import Signature

Status = Literal["right", "wrong", "refused", "crashed", "timed out"]
STATUSES: Final[tuple[Status, ...]] = ("right", "wrong", "refused", "crashed", "timed out")
_OF_REPLY: Final[dict[str, Status]] = {
    "error": "refused",
    "crash": "crashed",
    "oom": "crashed",
    "timeout": "timed out",
}
_RELATIVE: Final = {np.dtype(np.float16): 4e-3, np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-9}
"""What the sums and the approximations of a kernel may lose, as a part of the greatest value of the result."""


@dataclass(frozen=True)
class Verdict:
    """What an engine made of a case."""

    case: Case
    number: int
    """The number of the case among those of its operator."""
    release: str
    status: Status
    reason: str = ""
    """The engine's error, or how its results differ."""


def difference(found: Array, wanted: Array) -> str:
    """Return how a result differs from the definition's beyond the precision of its type, and nothing if it does not.

    Integers and booleans are equal, or differ. Floats may differ by a part of the greatest finite value; NaN and
    infinities are at the same places.
    """
    if found.shape != wanted.shape:
        return f"shape {list(found.shape)}, not {list(wanted.shape)}"
    if found.dtype.kind != wanted.dtype.kind and not {found.dtype.kind, wanted.dtype.kind} <= set("iu"):
        return f"{found.dtype}, not {wanted.dtype}"
    if found.dtype.kind != "f":
        wrong = found != wanted
    else:
        bound = float(np.finfo(found.dtype).max)
        with np.errstate(over="ignore", invalid="ignore"):
            exact = np.where(np.abs(wanted) > bound, np.copysign(np.inf, wanted), wanted)
            finite = exact[np.isfinite(exact)]
            allowed = _RELATIVE[found.dtype] * max(1.0, float(np.abs(finite).max()) if finite.size else 1.0)
            near = np.abs(found.astype(np.float64) - exact) <= allowed
        wrong = ~(near | (found == exact) | (np.isnan(found) & np.isnan(exact)))
    if not wrong.any():
        return ""
    place = tuple(int(at) for at in np.argwhere(wrong)[0])
    share = f"{int(wrong.sum())} of {wrong.size} elements"
    return f"{found[place]} at {list(place)}, not {wanted[place]}; {share}"


def applies(case: Case, signature: Signature) -> bool:
    """Return whether a release knows every argument of a case."""
    return all(name_in(name, signature) is not None for name in case.arguments)


def _judged(case: Case, definition: Definition, reply: EngineReply) -> tuple[Status, str]:
    if reply.status != "ok":
        return _OF_REPLY[reply.status], f"{reply.stage}: {reply.message}"
    wanted = case.wanted(definition)
    if len(reply.outputs[0]) != len(wanted):
        return "wrong", f"{len(reply.outputs[0])} results, not {len(wanted)}"
    for at, (one, other) in enumerate(zip(reply.outputs[0], wanted, strict=True)):
        found = difference(one, other)
        if found:
            return "wrong", f"result {at}: {found}" if len(wanted) > 1 else found
    return "right", ""


def judge(
    cases: Iterable[Case],
    definition: Definition,
    signature: Signature,
    engine: TractRunner,
    folder: Path,
    *,
    timeout: float = 20.0,
) -> Iterator[Verdict]:
    """Yield the verdict of each case that applies to a release; `folder` takes the archive of one case at a time."""
    for number, case in enumerate(cases):
        if applies(case, signature):
            archive = case.write(folder / f"{case.op}_{number}", signature)
            reply = engine.run(archive, [case.inputs()], timeout=timeout)
            status, reason = _judged(case, definition, reply)
            yield Verdict(case, number, engine.version, status, reason)
            shutil.rmtree(archive)
