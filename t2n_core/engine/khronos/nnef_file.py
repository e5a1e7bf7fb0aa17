"""Checks of an NNEF file that the Khronos parser lacks, and the graphs that its C++ executor cannot judge."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import nnef
import numpy as np

from t2n_core.nnef.spec import spec_for

_LABEL: Final = re.compile(r"[A-Za-z0-9_\-./\\]+")
_INTEGER: Final = re.compile(r"(?<![\w.\"])-?\d+(?![\w.\"])")
_STRING: Final = re.compile(r"\"[^\"]*\"|'[^']*'|#[^\n]*")
_EXTENSION: Final = re.compile(r"^\s*extension[^;]*", re.MULTILINE)
_FRAGMENT: Final = re.compile(r"\bfragment\s+\w+")
_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
_CALL: Final = re.compile(r"\s*(\w+)\s*(?:<[^>]*>)?\s*\(")
_NESTED: Final = re.compile(r"([A-Za-z_]\w*)\s*\(")
_OPERATION: Final = re.compile(r"[\w)\]]\s*(?:[-+*/^<>]|==|!=|<=|>=|&&|\|\|)\s*[\w(]")
_ARGUMENT: Final = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)")
_BORDERS: Final = frozenset(["ignore", "constant", "replicate", "reflect", "reflect-even"])
_STORED_AS: Final = {"scalar": "f", "integer": "iu", "logical": "b"}
_READING: Final = (nnef.Error, ValueError, OSError, TypeError, AssertionError)
"""Exceptions that the package raises for an invalid file; its message formatter raises the TypeError."""
_DEVIATIONS: Final = {
    "gelu": "computes gelu by a sigmoid",
    "round": "rounds ties away from zero",
    "softplus": "computes softplus as log(exp(x) + 1), which overflows",
    "zero_point_linear_quantize": "parses a unary minus of the standard's own text differently",
    "update": "does not write the variable",
}
_NO_KERNEL: Final = frozenset(["argmax_pool", "sample", "desample", "max_pool_with_index", "roi_resample"])


class IllegalFileError(Exception):
    """Raised for a file that is not strict NNEF; the message has all reasons."""


def load(folder: Path) -> Any:
    """Return the graph with weights and inferred shapes. Raises IllegalFileError with all problems."""
    try:
        graph = nnef.load_graph(str(folder))
        text = (folder / "graph.nnef").read_text(encoding="ascii")
    except _READING as wrong:
        raise IllegalFileError(f"{type(wrong).__name__}: {wrong}") from wrong
    problems = [*_wrapped_integers(text), *_unsupported_syntax(text), *_problems(graph)]
    try:
        nnef.infer_shapes(graph)
    except _READING as wrong:
        problems.append(f"the shapes cannot be inferred: {wrong}")
    if problems:
        raise IllegalFileError("\n".join(problems))
    return graph


def _wrapped_integers(text: str) -> Iterator[str]:
    for literal in _INTEGER.findall(_STRING.sub("", text)):
        if not -(2**31) <= int(literal) < 2**31:
            yield f"the integer {literal} wraps around in the parser (32 bits)"


def _unsupported_syntax(text: str) -> Iterator[str]:
    """Yield a message for each kind of syntax that strict NNEF lacks.

    These are extensions, fragments, nested calls, infix operators, and tensors passed by name.
    """
    plain = _STRING.sub("''", text)
    body = plain.partition("{")[2]
    yield from (f"the statement `{word.strip()}`: strict NNEF has none" for word in _EXTENSION.findall(plain))
    if _FRAGMENT.search(plain):
        yield "a fragment: strict NNEF is flat"
        return
    for statement in body.rpartition("}")[0].split(";"):
        _, _, call = statement.partition("=")
        match = _CALL.match(call)
        if not match:
            if call.strip():
                yield f"`{statement.strip()}` is not a call of an operator"
            continue
        inside = call[match.end() :]
        nested = _NESTED.search(inside)
        if nested:
            yield f"`{nested[1]}` is called inside `{match[1]}`: strict NNEF is flat"
        if _OPERATION.search(_NUMBER.sub("0", inside)):
            yield f"an expression among the arguments of `{match[1]}`: strict NNEF is flat"
        for name in _named_tensors(match[1], inside):
            yield f"the tensor `{name}` of `{match[1]}` is passed by name, which is deprecated"


def _named_tensors(operator: str, inside: str) -> list[str]:
    spec = spec_for("khronos", "1.0.5")
    if not spec.has(operator):
        return []
    signature = spec.operator(operator)
    names = _ARGUMENT.findall(inside)
    return [name for name in names if (p := signature.parameter(name)) is not None and p.is_tensor]


def _problems(graph: Any) -> Iterator[str]:
    labels: set[str] = set()
    if len(set(graph.outputs)) != len(graph.outputs) or set(graph.outputs) & set(graph.inputs):
        yield "an output is listed twice, or is an input"
    for op in graph.operations:
        if op.name not in nnef.StandardOperations or op.name == "softabs":
            yield f"{op.name} is not in the standard"
        shape = op.attribs.get("shape") if op.name in ("external", "variable", "constant") else None
        if shape is not None and any(extent <= 0 for extent in shape):
            yield f"{op.name} has shape {shape}"
        if op.name == "constant" and len(op.attribs["value"]) not in (1, math.prod(op.attribs["shape"])):
            yield f"constant has {len(op.attribs['value'])} values for shape {shape}"
        if op.name == "variable":
            label, tensor = op.attribs["label"], graph.tensors[op.outputs["output"]]
            if not _LABEL.fullmatch(label):
                yield f"{label!r} is not a label"
            if label in labels:
                yield f"two variables have the label {label!r}"
            labels.add(label)
            if not tensor.quantization and tensor.data.dtype.kind not in _STORED_AS[op.dtype]:
                yield f"the variable {label!r} is declared {op.dtype} and stored as {tensor.data.dtype}"
        if op.attribs.get("border", "constant") not in _BORDERS:
            yield f"{op.attribs['border']!r} is not a border"


def session_objection(graph: Any) -> str:
    """Return why the C++ executor cannot judge this graph; empty if it can. The shapes must have been inferred."""
    for op in graph.operations:
        reason = _objection(graph, op)
        if reason:
            return f"the C++ executor {reason}"
    return ""


def _objection(graph: Any, op: Any) -> str:
    border = op.attribs.get("border")
    if op.name in _NO_KERNEL or "roi" in op.name:
        return f"has no kernel for {op.name}"
    if op.name in ("constant", "variable"):
        return _source_objection(graph, op)
    if op.name == "debox" and op.attribs["normalize"]:
        return "computes debox with normalize wrongly"
    if op.name == "matmul" and _batch(graph, op.inputs["A"]) != _batch(graph, op.inputs["B"]):
        return "reads out of bounds in a matmul that broadcasts"
    if border in ("replicate", "reflect", "reflect-even") and op.name not in ("pad", "multilinear_upsample"):
        return f"has no border {border} in {op.name}"
    if op.name in ("softmax", "argmax_reduce", "argmin_reduce") and len(op.attribs["axes"]) > 1:
        return f"has no {op.name} over several axes"
    return _DEVIATIONS.get(op.name, "")


def _source_objection(graph: Any, op: Any) -> str:
    if op.dtype == "logical":
        return f"crashes on a logical {op.name}"
    if op.name == "constant" and op.dtype == "integer" and len(op.attribs["value"]) != math.prod(op.attribs["shape"]):
        return "crashes on an integer constant that repeats one value"
    data = graph.tensors[op.outputs["output"]].data
    if op.name == "variable" and data.dtype == np.float16:
        return "crashes on float16 variables"
    return ""


def _batch(graph: Any, name: str) -> list[int]:
    return list(graph.tensors[name].shape[:-2])
