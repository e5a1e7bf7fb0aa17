"""The judgement of a case in a release, by the tolerance that onnx gives it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from conformance.onnx.cases import OnnxCase
from conformance.onnx.table import Status, Verdict
from t2n_core.engine.pool import TractRunner
from t2n_core.engine.protocol import Array

_REFUSED: Final = "error"
"""The status of a reply with the engine's own error."""
_ROUNDING: Final = 0.01
"""Largest deviation beyond a case's tolerance that is called rounding."""
_SECONDS: Final = 20.0


def judge(case: OnnxCase, engine: TractRunner, folder: Path) -> Verdict:
    """Return the verdict on a case in an engine; `folder` takes its model for so long."""
    path = folder / f"{case.name}.onnx"
    path.write_bytes(case.model.SerializeToString())
    try:
        reply = engine.run(path, [case.inputs], timeout=_SECONDS)
    finally:
        path.unlink()
    if reply.status != "ok":
        status: Status = "refused" if reply.status == _REFUSED else "died"
        return Verdict(status, f"{reply.stage}: {reply.message}")
    return compare(reply.outputs[0], case)


def compare(outputs: Sequence[Array], case: OnnxCase) -> Verdict:
    """Return the verdict on outputs for the inputs of a case."""
    if len(outputs) != len(case.outputs):
        return Verdict("wrong", f"{len(outputs)} outputs, not {len(case.outputs)}")
    deviation, reasons = 0.0, []
    for output, expected in zip(outputs, case.outputs, strict=True):
        if output.shape != expected.shape:
            return Verdict("wrong", f"shape {list(output.shape)}, not {list(expected.shape)}")
        if output.dtype != expected.dtype:
            return Verdict("wrong", f"{output.dtype}, not {expected.dtype}")
        largest, reason = _deviation(output, expected, case)
        deviation = max(deviation, largest)
        reasons += [reason] if reason else []
    if not reasons:
        return Verdict("right")
    return Verdict("rounding" if deviation <= _ROUNDING else "wrong", "; ".join(reasons))


def _deviation(output: Array, expected: Array, case: OnnxCase) -> tuple[float, str]:
    """Return the largest deviation of the elements beyond the tolerance, and its description; else 0 and nothing."""
    exact, other = expected.astype(np.float64), output.astype(np.float64)
    far = ~np.isclose(other, exact, rtol=case.rtol, atol=case.atol, equal_nan=True)
    if not far.any():
        return 0.0, ""
    with np.errstate(invalid="ignore"):
        deviations = np.where(far, np.abs(other - exact), 0.0)
    deviations[np.isnan(deviations)] = np.inf  # only one of both is a number
    index = np.unravel_index(np.argmax(deviations), deviations.shape)
    largest = float(deviations[index])
    off = f"off by {largest:.2g}" if np.isfinite(largest) else f"{output[index]}, not {expected[index]}"
    return largest, f"{off} in {far.sum()} of {far.size} elements"
