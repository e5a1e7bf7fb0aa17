"""torch-to-nnef at work, in its own environment: `python -m conformance.benchmarks.peer_export < jobs > answers`.

One job per line, as JSON: {"chain": 50, "repeats": 3}, {"export": "speech encoder", "repeats": 1} or
{"net": "lstm-64-l1-uni", "version": …, "path": …}; one answer per line. The archives are not checked here: that is done
for both exporters alike, in the engine.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from torch_to_nnef import TractNNEF, export_model_to_nnef

from conformance.benchmarks.layer_nets import LAYERS
from conformance.benchmarks.nets import RECURRENT, build, chain


def target(version: str, folder: Path, **options: Any) -> TractNNEF:
    """The constructor insists on a binary that says its version, and would download one."""
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
            for made in folder.glob("chain*"):  # it may choose another ending
                made.unlink() if made.is_file() else shutil.rmtree(made)
        return {"seconds": seconds}
    net = next(n for n in [*RECURRENT, *LAYERS] if n.name == job["net"])
    model, x = net.build()
    options = {"dynamic_axes": net.dynamic_axes("x")} if net.dynamic else {}
    engine = target(job["version"], folder, **options)
    started = time.perf_counter()
    export_model_to_nnef(model, (x,), Path(job["path"]), engine, input_names=["x"], output_names=net.outputs)
    return {"seconds": [time.perf_counter() - started]}


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what else is printed does not get between the answers
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            try:
                answer = work(json.loads(line), Path(folder))
            except Exception as cause:
                answer = {"error": f"{type(cause).__name__}: {cause}"[:300]}
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
