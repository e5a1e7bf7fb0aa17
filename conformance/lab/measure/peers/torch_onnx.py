"""torch.onnx at work, in its own environment: `python -m conformance.lab.measure.peers.torch_onnx < jobs > answers`.

One job per line, as JSON: {"net": "softmax", "path": …}; one answer per line. The file is for tract's own reader.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch

from conformance.lab.measure.nets.layers import LAYERS
from conformance.lab.measure.peers.jobs import answer_jobs


def work(job: dict[str, Any]) -> dict[str, Any]:
    net = next(n for n in LAYERS if n.name == job["net"])
    model, x = net.build()
    shapes = ({axis: torch.export.Dim(name) for axis, name in net.dynamic.items()},) if net.dynamic else None
    started = time.perf_counter()
    torch.onnx.export(
        model, (x,), Path(job["path"]), dynamo=True, verbose=False, external_data=False, dynamic_shapes=shapes
    )
    return {"seconds": [time.perf_counter() - started]}


if __name__ == "__main__":
    answer_jobs(work)
