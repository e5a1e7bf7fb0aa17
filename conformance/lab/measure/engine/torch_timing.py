"""PyTorch itself on one thread: `python -m conformance.lab.measure.engine.torch_timing layers > answer.json`."""

from __future__ import annotations

import json
import sys

import numpy as np
import torch

from conformance.lab.machine import pin_to_one_core
from conformance.lab.measure.nets.groups import GROUPS
from conformance.lab.timing import Stopwatch

SECONDS = 0.4


def main() -> None:
    torch.set_num_threads(1)
    pin_to_one_core()
    figures = {}
    with torch.inference_mode():
        for net in GROUPS[sys.argv[1]]:
            model, x = net.build()
            for _ in range(3):
                model(x)
            times, total_watch = [], Stopwatch()
            while total_watch.wall < SECONDS or len(times) < 20:
                watch = Stopwatch()
                model(x)
                times.append(watch.cpu)
            figures[net.name] = {"cpu_ms": 1e3 * float(np.median(times)), "runs": len(times)}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
