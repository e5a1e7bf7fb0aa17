"""Fold batch norms after convolutions and linear layers into the layers' weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from t2n_core.torch_graph.graph.ir import FoldedNorm, TensorVariable, TorchModuleIRGraph, TorchOp
from t2n_core.torch_graph.simplify.passes import apply_swaps

NORMS = frozenset({"aten::batch_norm", "aten::_native_batch_norm_legit_no_training"})
CONVOLUTIONS = frozenset({"aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::convolution"})
FOLDED = frozenset({torch.float32, torch.float64})
"""Dtypes of weights that are folded; float16 would be rounded at other points than in PyTorch."""
Array = TypeVar("Array", torch.Tensor, NDArray[np.float64])


def affine_of_norm(
    weight: Array | None, bias: Array | None, mean: Array, var: Array, eps: float
) -> tuple[Array, Array]:
    """Return scale and shift of a batch norm, `x * scale + shift`, in float64: one of each for a channel."""
    scale = (var + eps) ** -0.5
    scale = scale if weight is None else scale * weight
    shift = -mean * scale
    return scale, shift if bias is None else shift + bias


def fold_norms(
    graph: TorchModuleIRGraph, is_plain: Callable[[TorchOp], bool], folds: Callable[[int, int], bool]
) -> TorchModuleIRGraph:
    """Return a graph in which (W x + b) * s + t is (W s) x + (b s + t), equal up to rounding.

    A norm is folded only if it is the sole user of the product, all weights are constants, and `is_plain` holds for
    both operators: our own rules lower them. `folds` takes the number of output channels and of elements of a stored
    filter, and returns whether a norm is folded into it. The original graph does not change.
    """
    readers = Counter(id(v) for v in graph.outputs)
    for op in graph.op_nodes:
        readers.update(id(v) for v in op.inputs)
    products: dict[int, int] = {}
    new_weights: dict[str, TensorVariable] = {}
    swaps: dict[int, TensorVariable] = {}
    done: list[TorchOp] = []
    for op in graph.op_nodes:
        if any(id(v) in swaps for v in op.inputs):
            op = replace(op, arguments={k: apply_swaps(v, swaps) for k, v in op.arguments.items()})
        index = products.get(id(op.arguments.get("input"))) if _is_norm(op, readers) and is_plain(op) else None
        if index is not None and (weights := _normed_weights(done[index], op, new_weights)) is not None:
            done[index] = _with_weights(done[index], op, *weights, swaps)
            continue
        if _is_product(op) and is_plain(op) and readers[id(op.outputs[0])] == 1 and not _is_left(op, folds):
            products[id(op.outputs[0])] = len(done)
        done.append(op)
    outputs = [swaps.get(id(v), v) for v in graph.outputs]
    return replace(graph, outputs=outputs, op_nodes=done, weights=[*graph.weights, *new_weights.values()])


def _is_norm(op: TorchOp, readers: Counter[int]) -> bool:
    """Return whether this is a batch norm with fixed statistics of which only the first result is used."""
    name = op.kind.split(".")[0]
    return (
        name in NORMS
        and not op.arguments.get("training", False)
        and op.arguments["running_mean"] is not None
        and op.arguments["running_var"] is not None
        and not any(readers[id(o)] for o in op.outputs[1:] if o is not None)
    )


def _is_product(op: TorchOp) -> bool:
    """Return whether this is a convolution or linear layer whose axis 1 is its output channels.

    A batch norm after it then scales each filter, and can be folded into the weights.
    """
    name, out = op.kind.split(".")[0], op.outputs[0]
    if out is None:
        return False
    if name == "aten::linear":
        return out.rank == 2 and op.arguments["weight"].rank == 2
    return (
        name in CONVOLUTIONS and not op.arguments.get("transposed", False) and out.rank == op.arguments["weight"].rank
    )


def _is_left(op: TorchOp, folds: Callable[[int, int], bool]) -> bool:
    """Return whether the operator's weight must stay as it is: in blocks of 4 bits, or of sizes that are not folded."""
    weight = op.arguments["weight"]
    if weight.stored is None:
        return False
    return weight.stored.format == "q4_0" or not folds(len(weight.data), weight.data.numel())


def _normed_weights(
    product: TorchOp, norm: TorchOp, new_weights: dict[str, TensorVariable]
) -> tuple[TensorVariable, TensorVariable] | None:
    """Return filter and bias with the norm folded in, computed in float64 and rounded once; None if not possible."""
    weight, bias = product.arguments["weight"], product.arguments["bias"]
    statistics = [norm.arguments[name] for name in ("weight", "bias", "running_mean", "running_var")]
    if any(v is not None and (v.data is None or v.dtype != weight.dtype) for v in (weight, bias, *statistics)):
        return None
    gamma, beta, mean, var = (_as_float64(v) for v in statistics)
    assert mean is not None
    assert var is not None
    if weight.dtype not in FOLDED or var.shape != (weight.shape[0],):
        return None
    filters, start = _as_float64(weight), _as_float64(bias)
    assert filters is not None
    with torch.no_grad():
        scale, offset = affine_of_norm(gamma, beta, mean, var, norm.arguments["eps"])
        offset = offset if start is None else offset + start * scale
        scale = scale.reshape(-1, *(1 for _ in weight.shape[1:]))
        numbers = [n.to(weight.dtype) for n in (filters * scale, offset, scale)]
    if not all(n.isfinite().all() for n in numbers):
        return None
    scaled, offset, scale = numbers
    recipe = FoldedNorm(weight, scale) if weight.stored else None
    labelled = bias or norm.arguments["bias"] or norm.arguments["running_mean"]
    return _add_weight(new_weights, weight, scaled, recipe), _add_weight(new_weights, labelled, offset, None)


def _as_float64(variable: TensorVariable | None) -> torch.Tensor | None:
    return None if variable is None or variable.data is None else variable.data.detach().double()


def _with_weights(
    product: TorchOp, norm: TorchOp, weight: TensorVariable, bias: TensorVariable, swaps: dict[int, TensorVariable]
) -> TorchOp:
    """Return the product with the folded weights; `swaps` maps the norm's result to the new tensor for its users."""
    old = norm.outputs[0]
    assert old is not None
    new = replace(old)
    folded = replace(product, arguments={**product.arguments, "weight": weight, "bias": bias}, outputs=(new,))
    new.producer, swaps[id(old)] = folded, new
    return folded


def _add_weight(
    new_weights: dict[str, TensorVariable], source: TensorVariable, data: torch.Tensor, folded_norm: FoldedNorm | None
) -> TensorVariable:
    """Return a weight computed from another, with a unique label derived from that weight's."""
    label = f"{source.label or source.name}.normed"
    while label in new_weights and not torch.equal(new_weights[label].data, data):  # type: ignore[arg-type]
        label += "_"  # a weight shared by two layers with separate norms
    shape = tuple(int(d) for d in data.shape)
    new = TensorVariable(f"{source.name}_normed", data, shape, data.dtype, label=label, folded_norm=folded_norm)
    return new_weights.setdefault(label, new)
