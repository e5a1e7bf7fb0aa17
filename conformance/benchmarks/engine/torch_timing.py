"""PyTorch itself on one thread: `python -m conformance.benchmarks.engine.torch_timing layers > answer.json`."""

from __future__ import annotations

import json
import os
import sys
import time

import numpy as np
import torch

from conformance.benchmarks.nets.groups import GROUPS

SECONDS = 0.4


def main() -> None:
    torch.set_num_threads(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    found = {}
    with torch.inference_mode():
        for net in GROUPS[sys.argv[1]]:
            model, x = net.build()
            for _ in range(3):
                model(x)
            times, end = [], time.perf_counter() + SECONDS
            while time.perf_counter() < end or len(times) < 20:
                started = time.process_time()
                model(x)
                times.append(time.process_time() - started)
            found[net.name] = {"cpu_ms": 1e3 * float(np.median(times)), "runs": len(times)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
