"""Engines that are wrong on purpose: each is caught by the check of an export, and said by its name.

The engine is the library of a real release behind `tests/tract_cli.py`, which spoils what it computed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.engine import ResolvedEngine
from t2n_core.parity.outcome import Status
from tests.releases import NEWEST
from tests.tract_cli import make_cli


class Corners(nn.Module):
    """Numbers, and a second output with both infinities and a NaN."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.tanh(), x * torch.tensor([1.0, float("inf"), float("-inf"), float("nan")])


PANIC = "_log(\"thread 'main' panicked at core/src/plan.rs:7:9:\\nindex out of bounds\\nnote: run with\")"
EAT = (
    "try: kept = [bytes(1 << 30) for _ in range(99)]\n"
    "except MemoryError: _log('memory allocation of 1073741824 bytes failed'); os.abort()"
)
FAULTS = {
    "one element": ("outputs[0][2, 1] += 0.01", Status.MISMATCH, "[2, 1]"),
    "one bit of one element": (
        "outputs[0].view('u4')[4, 3] ^= 1 << 20",
        Status.MISMATCH,
        "[4, 3]",
    ),
    "sign of an infinity": ("outputs[1][3, 1] *= -1", Status.MISMATCH, "1 infinities where the other side"),
    "infinity made finite": ("outputs[1][3, 2] = -3e38", Status.MISMATCH, "1 infinities where the other side"),
    "a NaN at another place": (
        "outputs[1][3, 3], outputs[1][3, 0] = outputs[1][3, 0], outputs[1][3, 3]",
        Status.MISMATCH,
        "2 NaN where the other side has none",
    ),
    "dtype": ("outputs[0] = outputs[0].astype('f8')", Status.MISMATCH, "dtype float64, expected float32"),
    "shape": ("outputs[0] = outputs[0].reshape(4, 5)", Status.MISMATCH, "shape [4, 5], expected [5, 4]"),
    "an output dropped": ("del outputs[1]", Status.MISMATCH, "missing output: 1 came, expected 2"),
    "an output more": (
        "outputs.append(outputs[0]); names.append('more')",
        Status.MISMATCH,
        "extra output: 3 came, expected 2",
    ),
    "outputs swapped": ("outputs.reverse()", Status.MISMATCH, "output_0, output_1"),
    "status 0 after a panic": (f"{PANIC}; sys.exit(0)", Status.CRASH, "status 0 after a panic: thread 'main' panicked"),
    "a panic and outputs": (PANIC, Status.CRASH, "panicked at core/src/plan.rs:7:9: index out of bounds"),
    "status 0 without outputs": ("sys.exit(0)", Status.CRASH, "it succeeded but wrote no outputs"),
    "a signal": ("os.kill(os.getpid(), 11)", Status.CRASH, "died of SIGSEGV"),
    "hang": ("import time; time.sleep(60)", Status.TIMEOUT, "did not answer in time"),
    "memory": (EAT, Status.OOM, "memory allocation of 1073741824 bytes failed"),
}


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_wrong_engine_is_caught_and_named(
    fault: str, resolved_engine: Callable[[str], ResolvedEngine], tmp_path: Path
) -> None:
    spoil, status, words = FAULTS[fault]
    torch.manual_seed(4)
    export = ModelExport(Corners(), torch.rand(5, 4) + 0.5)
    target = TractNNEF(specific_tract_binary_path=make_cli(tmp_path, resolved_engine(NEWEST), spoil=spoil))
    result = export.to(target, tmp_path / "m.tgz")
    level = "approximate" if fault.startswith("one ") else "ultra"
    outcome = result.check_parity(level, timeout=4.0 if fault == "hang" else 60.0)
    assert outcome.status is status, outcome.describe()
    assert words in outcome.describe()
    assert f"tract {NEWEST}" in outcome.describe()


def test_the_same_program_unspoiled_is_right(resolved_engine: Callable[[str], ResolvedEngine], tmp_path: Path) -> None:
    export = ModelExport(Corners(), torch.rand(5, 4) + 0.5)
    target = TractNNEF(specific_tract_binary_path=make_cli(tmp_path, resolved_engine(NEWEST)))
    export.to(target, tmp_path / "m.tgz").assert_parity("close")
