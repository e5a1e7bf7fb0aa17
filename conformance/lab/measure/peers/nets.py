"""Jobs that export the nets of the benchmarks.

{"chain": 50, "repeats": 3}, {"export": "speech encoder", "repeats": 1} or {"net": "lstm-64-l1-uni", "path": …}, each
with a "release".
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from conformance.lab.measure.nets.exported import build, chain
from conformance.lab.measure.nets.layers import LAYERS
from conformance.lab.measure.nets.recurrent import RECURRENT
from conformance.lab.measure.peers.exporters import Export, exporter


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Return the CPU seconds of each export after the first `warm` ones."""
    export, seconds = exporter(job["exporter"]), []
    for _ in range(job.get("warm", 0) + job.get("repeats", 1)):
        with TemporaryDirectory() as scratch:
            request = _export(job, Path(scratch))
            started = time.process_time()
            export(request)
            seconds.append(time.process_time() - started)
    return {"seconds": seconds[job.get("warm", 0) :]}


def _export(job: dict[str, Any], scratch: Path) -> Export:
    """Return a new export each time: an exporter changes the model."""
    if "net" in job:
        net = next(candidate for candidate in [*RECURRENT, *LAYERS] if candidate.name == job["net"])
        model, x = net.build()
        return Export(model, {"x": x}, net.outputs, job["release"], Path(job["path"]), net.dynamic_axes("x") or None)
    model, x = chain(job["chain"]) if "chain" in job else build(job["export"])
    return Export(model, {"input": x}, ["output"], job["release"], scratch / "chain.nnef.tgz")
