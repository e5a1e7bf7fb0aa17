"""Process that computes the outputs of an ONNX model by its references, or repairs it, in limited memory.

    python -m t2n_core.onnx_file.child

It runs the jobs of `run_job`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from t2n_core.engine.processes.jobs import Answers, serve
from t2n_core.engine.processes.wire import Frame
from t2n_core.engine.protocol import Array
from t2n_core.errors import InputError, MeaningError
from t2n_core.onnx_file.drawing import draw_samples, sizes_of
from t2n_core.onnx_file.model import OnnxModel, read_model
from t2n_core.onnx_file.references import Reference, open_references
from t2n_core.onnx_file.repairs import repair as apply_repair


def _answers(job: Frame) -> Answers:
    """Yield the header and the arrays of each sample, of the first reference that computes all of them.

    For a repair, yield whether it changed the model.
    """
    if repair := job.header.get("repair"):
        changed = apply_repair(repair, Path(job.header["path"]), Path(job.header["target"]), job.header["missing"])
        yield {"event": "repaired", "changed": changed}, []
        return
    model = read_model(Path(job.header["path"]))
    if random := model.random_operators:
        raise InputError(f"{model.path} draws random numbers in {', '.join(random)}: no outputs can be expected")
    arrays = iter(job.arrays())
    input_sets = [[next(arrays) for _ in range(count)] for count in job.header["counts"]]
    reasons = []
    for name, reference in open_references(model, job.header["references"]):
        try:
            samples = list(_samples(job, model, reference, input_sets))
        except (MeaningError, InputError) as wrong:
            if name == job.header["references"][-1]:
                raise
            reasons.append(f"{name}: {wrong.message}")
            continue
        for sizes, inputs, outputs in samples:
            yield {"event": "sample", "inputs": len(inputs), "sizes": sizes, "by": name}, [*inputs, *outputs]
        return
    raise MeaningError(f"no reference computes {model.path}: {'; '.join(reasons)}")


def _samples(
    job: Frame, model: OnnxModel, reference: Reference, input_sets: list[list[Array]]
) -> Iterator[tuple[dict[str, int], list[Array], list[Array]]]:
    if not input_sets:
        yield from draw_samples(model, reference, job.header["sizes"], job.header["seconds"])
    for inputs in input_sets:
        yield sizes_of(model, inputs), inputs, reference(inputs)


if __name__ == "__main__":
    sys.exit(serve(_answers))
