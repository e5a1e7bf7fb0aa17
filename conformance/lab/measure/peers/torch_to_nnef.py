"""torch-to-nnef at work, in its own environment: `python -m …peers.torch_to_nnef < jobs > answers`.

One job per line, as JSON: {"chain": 50, "repeats": 3}, {"export": "speech encoder", "repeats": 1} or
{"net": "lstm-64-l1-uni", "version": …, "path": …}; one answer per line. The archives are not checked here: that is done
for both exporters alike, in the engine.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from torch_to_nnef import TractNNEF, export_model_to_nnef

from conformance.lab.measure.nets.exported import build, chain
from conformance.lab.measure.nets.layers import LAYERS
from conformance.lab.measure.nets.recurrent import RECURRENT
from conformance.lab.measure.peers.jobs import answer_jobs


def target(version: str, folder: Path, **options: Any) -> TractNNEF:
    """Return a target of the exporter without its constructor's download of a binary."""
    shim = folder / f"tract-{version}"
    shim.write_text(f"#!/bin/sh\necho tract {version}\n", encoding="utf-8")
    shim.chmod(0o755)
    return TractNNEF(version, check_io=False, specific_tract_binary_path=shim, **options)


def work(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    if "chain" in job or "export" in job:
        seconds = []
        for _ in range(job["repeats"]):
            # a new one each time: the exporter changes the model
            model, x = chain(job["chain"]) if "chain" in job else build(job["export"])
            started = time.perf_counter()
            path = folder / "chain.nnef.tgz"
            export_model_to_nnef(
                model, (x,), path, target(job["version"], folder), input_names=["input"], output_names=["output"]
            )
            seconds.append(time.perf_counter() - started)
            for written in folder.glob("chain*"):  # it may choose another ending
                written.unlink() if written.is_file() else shutil.rmtree(written)
        return {"seconds": seconds}
    net = next(n for n in [*RECURRENT, *LAYERS] if n.name == job["net"])
    model, x = net.build()
    options = {"dynamic_axes": net.dynamic_axes("x")} if net.dynamic else {}
    engine = target(job["version"], folder, **options)
    started = time.perf_counter()
    export_model_to_nnef(model, (x,), Path(job["path"]), engine, input_names=["x"], output_names=net.outputs)
    return {"seconds": [time.perf_counter() - started]}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        answer_jobs(partial(work, folder=Path(name)))
