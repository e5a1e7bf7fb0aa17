"""Judge one case in one engine: compare the engine's results with the definition's."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np

from conformance.dialect.together import is_plain, write_cases
from t2n_core.dialect.arrays import Array
from t2n_core.dialect.cases import Case, name_in
from t2n_core.dialect.registry import Definition
from t2n_core.engine.paths import EnginePath
from t2n_core.engine.pool import TractRunner
from t2n_core.engine.protocol import EngineReply
from t2n_core.engine.provision.resolved import CPU
from t2n_core.nnef.signatures import Signature

Status = Literal["right", "wrong", "refused", "crashed", "timed out"]
STATUSES: Final[tuple[Status, ...]] = ("right", "wrong", "refused", "crashed", "timed out")
OF_REPLY: Final[dict[str, Status]] = {"error": "refused", "crash": "crashed", "oom": "crashed", "timeout": "timed out"}
"""The status of a case that has no results."""
_RELATIVE: Final = {np.dtype(np.float16): 4e-3, np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-9}
"""Error that sums and approximations of a kernel may have, relative to the largest value of the result."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on a case in one release."""

    case: Case
    number: int
    """The case's number among its operator's cases."""
    release: str
    status: Status
    reason: str = ""
    """The engine's error, or how its results differ."""
    runtime: str = CPU
    """The engine's runtime, such as `cuda`."""
    path: EnginePath = EnginePath.DECLUTTER


def difference(actual: Array, expected: Array) -> str:
    """Return how a result differs from the definition's beyond the precision of its type, and nothing if it does not.

    Integers and booleans are equal, or differ. Floats may differ by a part of the greatest finite value; NaN and
    infinities are at the same places.
    """
    if actual.shape != expected.shape:
        return f"shape {list(actual.shape)}, not {list(expected.shape)}"
    if actual.dtype.kind != expected.dtype.kind and not {actual.dtype.kind, expected.dtype.kind} <= set("iu"):
        return f"{actual.dtype}, not {expected.dtype}"
    if actual.dtype.kind != "f":
        wrong = actual != expected
    else:
        bound = float(np.finfo(actual.dtype).max)
        with np.errstate(over="ignore", invalid="ignore"):
            exact = np.where(np.abs(expected) > bound, np.copysign(np.inf, expected), expected)
            finite = exact[np.isfinite(exact)]
            allowed = _RELATIVE[actual.dtype] * max(1.0, float(np.abs(finite).max()) if finite.size else 1.0)
            near = np.abs(actual.astype(np.float64) - exact) <= allowed
        wrong = ~(near | (actual == exact) | (np.isnan(actual) & np.isnan(exact)))
    if not wrong.any():
        return ""
    index = tuple(int(at) for at in np.argwhere(wrong)[0])
    share = f"{int(wrong.sum())} of {wrong.size} elements"
    return f"{actual[index]} at {list(index)}, not {expected[index]}; {share}"


def applies(case: Case, signature: Signature) -> bool:
    """Return whether a release knows every argument of a case."""
    return all(name_in(name, signature) is not None for name in case.arguments)


def _judged(case: Case, definition: Definition | None, results: Sequence[Array]) -> tuple[Status, str]:
    expected = case.expected(definition)
    if len(results) != len(expected):
        return "wrong", f"{len(results)} results, not {len(expected)}"
    for at, (result, other) in enumerate(zip(results, expected, strict=True)):
        differs = difference(result, other)
        if differs:
            return "wrong", f"result {at}: {differs}" if len(expected) > 1 else differs
    return "right", ""


def judge(
    cases: Iterable[Case],
    definition: Definition | None,
    signature: Signature,
    engine: TractRunner,
    folder: Path,
    *,
    suspects: Collection[int] = (),
    timeout: float = 10.0,
    runtime: str = CPU,
    path: EnginePath = EnginePath.DECLUTTER,
) -> Iterator[Verdict]:
    """Yield the verdict of each case that applies to a release, on a path; `folder` takes one archive at a time.

    Cases without symbols and fragments are in one graph. One that the engine refuses or dies of takes the others along,
    so such a graph is halved until each case that fails is alone; `suspects` are alone from the beginning.
    """
    cases = list(cases)
    applying = [number for number, case in enumerate(cases) if applies(case, signature)]
    together = [number for number in applying if number not in suspects and is_plain(cases[number].graph(signature))]
    waiting = [together, *([number] for number in applying if number not in together)]
    while waiting:
        numbers = waiting.pop()
        if not numbers:
            continue
        reply = _run([cases[number] for number in numbers], signature, engine, folder, timeout, path)
        if reply.status == "ok":
            results = list(reply.outputs[0])
            for number in numbers:
                case = cases[number]
                count = len(case.results(signature))
                of_case, results = results[:count], results[count:]
                yield Verdict(case, number, engine.version, *_judged(case, definition, of_case), runtime, path)
        elif len(numbers) == 1:
            (number,) = numbers
            reason = f"{reply.stage}: {reply.message}"
            yield Verdict(cases[number], number, engine.version, OF_REPLY[reply.status], reason, runtime, path)
        elif reply.status == "timeout":  # each half would take as long again
            waiting += [[number] for number in numbers]
        else:
            half = len(numbers) // 2
            waiting += [numbers[half:], numbers[:half]]


def _run(
    cases: Sequence[Case], signature: Signature, engine: TractRunner, folder: Path, timeout: float, path: EnginePath
) -> EngineReply:
    archive = write_cases(cases, signature, folder / cases[0].op)
    try:
        return engine.run(archive, [[array for case in cases for array in case.inputs()]], timeout=timeout, path=path)
    finally:
        shutil.rmtree(archive)
