"""Weights with another storage format: chosen by the user, and rounded on the torch graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import torch

from t2n_core.errors import InputError
from t2n_core.nnef.dat import BLOCK_ELEMENTS
from t2n_core.nnef.options.weight_choice import Reader, StoredAs, WeightChoice, WeightFormat, chosen_format
from t2n_core.op.stored import blocks, float16
from t2n_core.op.stored.chunks import LEAST, pieces
from t2n_core.op.stored.int8 import as_bytes
from t2n_core.torch_graph.graph.ir import StoredWeight, TensorVariable, TorchModuleIRGraph, TorchOp, tensors_in
from t2n_core.torch_graph.simplify.passes import apply_swaps
from t2n_core.torch_graph.simplify.routers import EXPERTS

Rounded: TypeAlias = dict[tuple[str, StoredAs, tuple[int, ...]], StoredWeight]
"""Rounded weights by label, storage format and channel axes."""
Refusal: TypeAlias = Callable[[WeightFormat, Reader], str]
"""(format, kind of operator that reads the weight) -> why the target cannot store it so; empty if it can."""
_SHOWN = 3
"""Weights that a note names."""
_CONVOLUTIONS = frozenset({f"aten::conv{n}d" for n in (1, 2, 3)} | {"aten::convolution", "aten::_convolution"})
_TRANSPOSED = frozenset(f"aten::conv_transpose{n}d" for n in (1, 2, 3))
_SECOND_OPERANDS = {"aten::mm": "mat2", "aten::addmm": "mat2", "aten::bmm": "mat2", "aten::matmul": "other"}


def with_stored(
    graph: TorchModuleIRGraph,
    choice: WeightChoice,
    target_refusal: Refusal,
    model_weights: Mapping[str, torch.Tensor],
    cache: Rounded,
) -> TorchModuleIRGraph:
    """Return a copy of a graph, with the chosen weights rounded to their storage formats.

    `target_refusal` is asked for each kind of operator that reads a weight. `model_weights` are the weights of the
    model itself, which the reference rounds the same way; `cache` keeps rounded weights for other releases. Vectors
    stay as they are: biases and norms are small, and matter most.
    """
    readers = _readers(graph)
    copies: dict[int, TensorVariable] = {}
    left: dict[str, list[str]] = defaultdict(list)
    for variable in graph.weights:
        copies[id(variable)] = copy = replace(variable)
        data, label = variable.data, variable.label
        if not label or data is None or not _is_matrix(data):
            continue
        chosen = chosen_format(choice, label, data)
        if chosen is None:
            continue
        kinds = readers[id(variable)]
        dtype = str(data.dtype).removeprefix("torch.")
        reason = (
            _refusal(chosen, data, kinds, target_refusal)
            if label in model_weights
            else "not a weight of the model itself"
        )
        if not reason:
            key = (label, chosen, _channels(kinds, data.dim()))
            if key not in cache:
                try:
                    cache[key] = _round(data, chosen, key[2])
                except InputError as wrong:
                    raise InputError(f"weights: `{label}` as {chosen.format}: {wrong}") from wrong
            copy.stored, copy.data = cache[key], cache[key].values
        else:
            left[f"{dtype}: {reason}"].append(f"`{label}`")
    return replace(
        _with_copies(graph, copies), storage_notes=tuple(storage_note(names, reason) for reason, names in left.items())
    )


def storage_note(names: Sequence[str], reason: str) -> str:
    """Return a line for weights that keep their dtype: `float32: rows of 3 elements`; long lists are cut."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more} stay{'s' if len(names) == 1 else ''} {reason}"


def _is_matrix(data: torch.Tensor) -> bool:
    return data.dtype in (torch.float16, torch.float32) and data.dim() >= 2 and data.numel() >= LEAST


def _round(data: torch.Tensor, chosen: StoredAs, channels: tuple[int, ...]) -> StoredWeight:
    if chosen.format == "float16":
        return float16.as_float16(data)
    return blocks.as_blocks(data, chosen.scales) if chosen.format == "q4_0" else as_bytes(data, channels, chosen.scales)


def _refusal(chosen: StoredAs, data: torch.Tensor, kinds: set[Reader], target_refusal: Refusal) -> str:
    """Return why a weight cannot have a storage format; empty if it can."""
    unsupported = next((reason for kind in sorted(kinds) if (reason := target_refusal(chosen.format, kind))), "")
    if unsupported:
        return unsupported
    if chosen.format == "float16":
        return "it is so already" if data.dtype == torch.float16 else float16.loss(data)
    if not all(bool(part.isfinite().all()) for _, part in pieces(data)):
        return "elements that are not finite"
    if chosen.format == "int8":
        return f"{chosen.format} is for weights of float32" if data.dtype != torch.float32 else ""
    if data[0].numel() % BLOCK_ELEMENTS:
        return f"rows of {data[0].numel()} elements, no multiple of {BLOCK_ELEMENTS}"
    if data.dtype == torch.float16 and not kinds <= {Reader.LINEAR, Reader.EMBEDDING}:
        return f"{chosen.format} of float16 is for linear layers and embeddings"
    if data.dim() > 2 and len(kinds) > 1:
        return f"{' and '.join(sorted(kinds))} read it"
    return "" if chosen.scales else blocks.loss(data)


def _channels(kinds: set[Reader], rank: int) -> tuple[int, ...]:
    """Return the axes of a weight whose indices are the output channels of its readers."""
    if kinds == {Reader.TRANSPOSED}:
        return (1,)
    if kinds == {Reader.MATRIX}:
        return (*range(rank - 2), rank - 1)
    return tuple(range(rank - 1)) if kinds <= {Reader.EXPERTS, Reader.OTHER} else (0,)


def _readers(graph: TorchModuleIRGraph) -> dict[int, set[Reader]]:
    """Return the kinds of operators that read each weight, by the weight's `id`."""
    readers: dict[int, set[Reader]] = defaultdict(set)
    for variable in graph.outputs:
        readers[id(variable)].add(Reader.OTHER)
    for op in graph.op_nodes:
        for name, argument in op.arguments.items():
            for variable in tensors_in([argument]):
                readers[id(variable)].add(_reader(op, name, variable))
    return readers


def _reader(op: TorchOp, name: str, weight: TensorVariable) -> Reader:
    packet = op.kind.split(".")[0]
    if name == _SECOND_OPERANDS.get(packet):
        return Reader.MATRIX
    if packet == "aten::index" and name == "self" and _picks_matrices(op.arguments["indices"]):
        return Reader.EXPERTS
    if op.kind == EXPERTS and name in ("up_proj", "down_proj") and not op.arguments["is_grouped"]:
        return Reader.EXPERTS
    if name != "weight":
        return Reader.OTHER
    if packet in ("aten::linear", "aten::embedding") and weight.rank == 2:
        return Reader.LINEAR if packet == "aten::linear" else Reader.EMBEDDING
    if packet in _TRANSPOSED or (packet in _CONVOLUTIONS and op.arguments.get("transposed", False)):
        return Reader.TRANSPOSED
    if packet in _CONVOLUTIONS:
        groups = op.arguments["groups"]
        is_depthwise = groups > 1 and weight.shape[:2] == (groups, 1)
        return Reader.DEPTHWISE if is_depthwise else Reader.CONVOLUTION
    return Reader.OTHER


def _picks_matrices(indices: Any) -> bool:
    """Return whether an index is one tensor of integers, for the first axis."""
    tensors = list(indices)
    if len(tensors) != 1 or not isinstance(tensors[0], TensorVariable):
        return False
    return tensors[0].dtype in (torch.int32, torch.int64)


def _with_copies(graph: TorchModuleIRGraph, copies: dict[int, TensorVariable]) -> TorchModuleIRGraph:
    """Return a graph with copies of all operators and results, since constants will be computed in them."""
    ops = []
    for op in graph.op_nodes:
        results = tuple(None if o is None else replace(o, data=None, moved=None) for o in op.outputs)
        copies.update((id(old), new) for old, new in zip(op.outputs, results, strict=True) if old is not None and new)
        arguments = {name: apply_swaps(argument, copies) for name, argument in op.arguments.items()}
        ops.append(replace(op, arguments=arguments, outputs=results))
        for result in results:
            if result is not None:
                result.producer = ops[-1]
    outputs = [copies.get(id(v), v) for v in graph.outputs]
    return replace(graph, outputs=outputs, op_nodes=ops, weights=[copies[id(v)] for v in graph.weights])
