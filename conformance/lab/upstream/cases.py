"""What the cases of this folder show: each is a folder in the form of tract's repository, with the text of an issue.

The graphs were made smaller by `t2n reduce` and written by `t2n bundle --format tract`, which write a folder of this
one anew for another release.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from t2n_core.engine.protocol import Engine, EngineReply
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.engine.tract.transforms.transform import Transform
from t2n_core.nnef.reading.archive import read_archive
from t2n_core.npz import read_npz
from t2n_core.reduce.case import IO_FILE

HERE = Path(__file__).parent
RELEASE: Final = "0.23.9"
"""In which the cases of `OPERATORS` and `TRANSFORMED` fail."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A graph that fails in a release."""

    name: str
    release: str
    right_in: str = ""
    """A release that computes it right; empty where no release in the wheels does."""


FAILURES: Final = (
    Failure("sub-of-fewer-elements", "0.21.8", "0.21.13"),
    Failure("mul-stretched-between", "0.21.6", "0.21.13"),
    Failure("avg-pool-over-zeros", "0.22.4", "0.23.9"),
    Failure("max-pool-replicate-panics", "0.23.9"),
    Failure("two-relu-of-one-tensor", "0.21.6", "0.21.13"),
    Failure("scan-with-reshape", "0.20.18", "0.19.15"),
    Failure("depthwise-filter-of-rows", "0.23.9", "0.20.22"),
    Failure("subtracted-convolution", "0.23.9", "0.20.22"),
    Failure("product-with-zero", "0.23.9", "0.20.22"),
    Failure("stride-before-tile", "0.23.9", "0.22.4"),
    Failure("stride-before-reshape", "0.23.9"),
)
OPERATORS: Final = {
    "window-kv-sdpa-of-a-prompt": "tract_transformers_window_kv_sdpa",
    "quantized-kv-sdpa-of-small-keys": "tract_transformers_quantized_kv_sdpa",
}
"""Case -> the operator that computes other values than its definition in every release that has it."""
TRANSFORMED: Final = {
    "nan-is-written-as-a-name": ("round_trip", "--nnef-cycle-declutter"),
    "gelu-cannot-be-written": ("round_trip", "--nnef-cycle-declutter"),
    "f32-to-f16-of-gru-seq": ("f32_to_f16", "-t f32_to_f16"),
    "block-quant-of-six-columns": ("block_quant", "-t block_quant"),
}
"""Case that is right -> the transform after which it is refused, and the same for tract's command line."""


def largest_error(name: str, engine: Engine) -> float:
    """Return the largest difference between what an engine computes for a case of one output and what is expected."""
    document, arrays = read_archive(HERE / name).document, read_npz(HERE / name / IO_FILE)
    (output,) = document.outputs
    (computed,) = engine.run(HERE / name, [[arrays[input_name] for input_name in document.inputs]]).outputs[0]
    return float(np.abs(computed - arrays[output]).max())


def run_transformed(name: str, engine: TractEngine) -> EngineReply:
    """Return what an engine does with a case after its transform."""
    transform, _ = TRANSFORMED[name]
    arrays = read_npz(HERE / name / IO_FILE)
    inputs = [arrays[input_name] for input_name in read_archive(HERE / name).document.inputs]
    if transform == "f32_to_f16":
        inputs = [array.astype("float16") for array in inputs]
    with tempfile.TemporaryDirectory() as scratch:
        return engine.run(HERE / name, [inputs], transforms=[Transform.of(transform)], scratch=Path(scratch))
