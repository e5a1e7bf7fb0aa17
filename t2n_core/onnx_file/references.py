"""The references for an ONNX model: onnxruntime, and ONNX's own evaluator, which is slow and follows the standard."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import onnx

from t2n_core.engine.protocol import Array
from t2n_core.errors import MeaningError
from t2n_core.onnx_file.model import OnnxModel

Reference: TypeAlias = Callable[[Sequence[Array]], list[Array]]
"""Returns the outputs of a model for inputs, in order; raises MeaningError where there are none."""

RUNTIME: Final = "onnxruntime"
STANDARD: Final = "onnx.reference"
REFERENCES: Final = (RUNTIME, STANDARD)
"""Names of the references, in the order in which they are tried."""
_SILENT: Final = 4
"""Severity of log lines; errors are raised, too."""


def open_reference(name: str, model: OnnxModel) -> Reference:
    """Return a reference with the model loaded. Raises MeaningError, also if it does not support the model."""
    run_model = _session(model) if name == RUNTIME else _evaluator(model)
    names = [port.name for port in model.inputs]

    def run(inputs: Sequence[Array]) -> list[Array]:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            outputs = _guarded(run_model, None, dict(zip(names, inputs, strict=True)))
        if not all(isinstance(output, np.ndarray | np.generic) for output in outputs):
            raise MeaningError(f"{name} returns values that are no tensors")
        return [np.asarray(output) for output in outputs]

    return run


def open_references(model: OnnxModel, names: Sequence[str] = REFERENCES) -> Iterator[tuple[str, Reference]]:
    """Yield the references that load a model. Raises MeaningError if there are none."""
    reasons = []
    for name in names:
        try:
            reference = open_reference(name, model)
        except MeaningError as wrong:
            reasons.append(f"{name}: {wrong.message}")
        else:
            yield name, reference
    if len(reasons) == len(names):
        raise MeaningError(f"no reference loads {model.path}: {'; '.join(reasons)}")


def _session(model: OnnxModel) -> Any:
    """Return the function of onnxruntime that takes the names of outputs, None for all, and inputs by name."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _SILENT
    # a fused kernel rounds otherwise than the operators that the model has
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    providers = ["CPUExecutionProvider"]
    return _guarded(onnxruntime.InferenceSession, str(model.path), options, providers=providers).run


def _evaluator(model: OnnxModel) -> Any:
    """Return the function of ONNX's own evaluator that takes the same."""
    from onnx.reference import ReferenceEvaluator

    return _guarded(ReferenceEvaluator, onnx.load_model(str(model.path))).run


def _guarded(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a reference. Raises MeaningError for any of its errors, which have no common class."""
    try:
        return function(*arguments, **options)
    except MemoryError:
        raise
    except Exception as wrong:
        lines = str(wrong).strip().splitlines() or [""]
        raise MeaningError(f"{type(wrong).__name__}: {lines[0]}") from wrong
