"""Process that evaluates archives by the definitions of their operators, within the memory and the time of each job.

    python -m t2n_core.parity.evaluation.child

It runs the jobs of `Evaluator`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from t2n_core.dialect.graphs.drawing import draw_evaluated
from t2n_core.dialect.graphs.evaluation import evaluate, sizes_of
from t2n_core.dialect.tensors import Tensor
from t2n_core.engine.processes.jobs import Answers, serve
from t2n_core.engine.processes.wire import Frame
from t2n_core.engine.protocol import Array
from t2n_core.nnef.reading.archive import read_archive
from t2n_core.parity.evaluation.noise import Noise, with_noise


def _answers(job: Frame) -> Answers:
    """Yield the header and the arrays of each sample, floats of its results in float64."""
    start = time.monotonic()
    content = read_archive(Path(job.header["archive"]))
    if job.header["noise"] is not None:
        noise = Noise(*job.header["noise"])
        random = np.random.default_rng(noise.seed)
        tensors = {label: with_noise(array, noise.ulps, random) for label, array in content.tensors.items()}
        content = replace(content, tensors=tensors)
    counts, memory = job.header["counts"], job.header["memory"]
    end: float = start + job.header["seconds"]
    standard, options = job.header["standard"], job.header["options"]
    arrays = iter(job.arrays())
    batches = [tuple(next(arrays) for _ in range(count)) for count in counts]

    def seconds_left() -> float:
        return max(0.0, end - time.monotonic())

    def sample(
        inputs: Sequence[Array], outputs: Mapping[str, Any], shown: Sequence[Array]
    ) -> tuple[dict[str, Any], list[Array]]:
        results = {name: value for name, value in outputs.items() if isinstance(value, Tensor)}
        header = {
            "event": "sample",
            "inputs": len(shown),
            "sizes": sizes_of(content, inputs),
            "results": {name: tensor.dtype.str for name, tensor in results.items()},
        }
        return header, [np.asarray(array) for array in (*shown, *(tensor.array for tensor in results.values()))]

    for inputs in batches:
        outputs = evaluate(content, inputs, timeout=seconds_left(), memory=memory, standard=standard, **options)
        yield sample(inputs, outputs, ())
    if not batches:
        limits = {"timeout": seconds_left(), "memory": memory}
        for drawn, outputs in draw_evaluated(content, standard=standard, **limits, **job.header["drawing"]):
            inputs = tuple(drawn.values())
            yield sample(inputs, outputs, inputs)


if __name__ == "__main__":
    sys.exit(serve(_answers))
