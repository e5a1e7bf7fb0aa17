"""The cases that the installed onnx generates for each operator, and its simple models."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import onnx

from t2n_core.engine.protocol import Array

SIMPLE_MODELS: Final = "simple models"
"""What stands for the operator of a case with several."""
_EXPANDED: Final = "_expanded"
"""Part of the name of a case whose operator is replaced by the function that defines it."""
_PLAIN: Final = "fiub"


@dataclass(frozen=True)
class OnnxCase:
    """A model with one set of inputs and outputs, all of which are tensors of NumPy's data types."""

    name: str
    operator: str
    """With its domain, unless that is ONNX's own, and with `, expanded` for the function that defines it."""
    opset: int
    """The version of the operator's domain."""
    model: onnx.ModelProto
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    rtol: float
    atol: float


@dataclass(frozen=True)
class Generated:
    """What onnx generates."""

    cases: dict[str, OnnxCase]
    """By their names."""
    left_out: Counter[str]
    """How many others there are, by the first type of value that no engine takes."""


@cache
def generated() -> Generated:
    """Return all cases of nodes and all simple models."""
    cases: dict[str, OnnxCase] = {}
    left_out: Counter[str] = Counter()
    operators: dict[str, tuple[str, int]] = {}
    for case in _collected():
        (feeds, expected), opsets = case.data_sets[0], {each.domain: each.version for each in case.model.opset_import}
        base, expanded, _ = case.name.partition(_EXPANDED)
        if case.kind == "simple":
            operator, opset = SIMPLE_MODELS, opsets[""]
        elif expanded:
            operator, opset = operators[base]
            operator += ", expanded"
        else:
            (node,) = case.model.graph.node
            operator, opset = ".".join(filter(None, (node.domain, node.op_type))), opsets[node.domain]
            operators[case.name] = operator, opset
        if strange := next(_strange_types([*feeds, *expected]), ""):
            left_out[strange] += 1
            continue
        inputs, outputs = (tuple(map(_tensor, values)) for values in (feeds, expected))
        cases[case.name] = OnnxCase(case.name, operator, opset, case.model, inputs, outputs, case.rtol, case.atol)
    return Generated(cases, left_out)


def _collected() -> Iterator[Any]:
    """Yield the test cases of onnx whose models it generates, each before its expanded form."""
    from onnx.backend.test.case import model, node

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield from node.collect_testcases(None)
        yield from (case for case in model.collect_testcases() if case.kind == "simple")


def _strange_types(values: list[Any]) -> Iterator[str]:
    """Yield the types of values that are no tensors, or whose elements NumPy does not have."""
    for value in values:
        if not isinstance(value, np.ndarray | np.generic | onnx.TensorProto):
            yield type(value).__name__
            continue
        dtype = _tensor(value).dtype
        if dtype.kind not in _PLAIN or dtype.type.__module__ != "numpy":
            yield dtype.name


def _tensor(value: Any) -> Array:
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
