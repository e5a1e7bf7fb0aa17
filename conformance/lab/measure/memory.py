"""Memory and speed of writing large weights; `python -m conformance.lab.measure.memory FORM GB FOLDER` is one run.

The peak is a fresh process's (VmHWM, reset when the model exists), beyond what it holds then.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conformance.lab.machine import VERSIONS, memory_of_process
from conformance.lab.processes import ask_module
from conformance.lab.timing import Stopwatch

FORMS = ("tar", "directory")
ROUNDS = 8
"""Turns of writing; the fastest counts, since the disk is shared."""
_WIDTH = 8192
_LAYER = _WIDTH * _WIDTH * 4
"""Bytes of one weight."""


def measure(gigabytes: float, folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """{form: figures of one process}. Raises OSError where the disk is too small; Linux only."""
    needed = int(2.2 * gigabytes * 1e9)
    if shutil.disk_usage(folder).free < needed:
        raise OSError(f"{folder} needs {needed / 1e9:.1f} GB")
    figures = {}
    for form in FORMS:
        say(f"weights of {gigabytes:g} GB as {form}")
        figures[form] = ask_module(__spec__.name, form, gigabytes, folder)
    return figures


def run(form: str, gigabytes: float, folder: Path) -> dict[str, Any]:
    """Bytes of the weights, the peak beyond them, and seconds of writing them: by us, and as plain bytes."""
    import torch
    from torch import nn

    from t2n_core import ModelExport, TractNNEF

    torch.manual_seed(0)
    small = ModelExport(nn.Linear(3, 3), (torch.randn(1, 3),))
    small.to(TractNNEF(VERSIONS[-1], check_io=False), folder / "small.tar").archive.unlink()
    layers = [nn.Linear(_WIDTH, _WIDTH, bias=False) for _ in range(round(gigabytes * 1e9 / _LAYER))]
    model, x = nn.Sequential(*layers).eval(), torch.randn(1, _WIDTH)
    path = folder / ("weights.tar" if form == "tar" else "weights")
    baseline = _reset_peak()
    export = ModelExport(model, (x,))
    times = export.to(TractNNEF(VERSIONS[-1], check_io=False), path).times
    peak = memory_of_process("VmHWM") - baseline
    writes, raws = [], []
    for _ in range(ROUNDS):
        _clear(path)
        watch = Stopwatch()
        _write_plain(path, layers)
        raws.append(watch.wall)
        _clear(path)
        writes.append(export.to(TractNNEF(VERSIONS[-1], check_io=False), path).times["write"])
    _clear(path)
    return {
        "weights_bytes": _LAYER * len(layers),
        "peak_beyond_bytes": peak,
        "times_s": times,
        "write_s": min(writes),
        "plain_s": min(raws),
    }


def _write_plain(path: Path, layers: list[Any]) -> None:
    """Write the same bytes by the system's own call, in pieces as large as it takes."""
    with path.open("wb", buffering=0) as out:
        for layer in layers:
            rest = memoryview(layer.weight.detach().numpy()).cast("B")
            while rest:
                rest = rest[out.write(rest) :]


def _clear(path: Path) -> None:
    """Remove the file and write all that waits for the disk, so that each turn begins alike."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    os.sync()


def _reset_peak() -> int:
    """Bytes held now, from which the peak is counted on."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory_of_process("VmRSS")


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]))))
