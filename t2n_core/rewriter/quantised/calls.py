"""Functions of PyTorch that take quantised tensors or packed weights, each with its integer implementation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from t2n_core.errors import CaptureError
from t2n_core.rewriter.quantised import elementwise as el
from t2n_core.rewriter.quantised.dynamic import Dynamic, Recurrent
from t2n_core.rewriter.quantised.grid import QuantisedTensor, quantise, requantise
from t2n_core.rewriter.quantised.packed import CellWeights, PackedWeight
from t2n_core.rewriter.quantised.products import Products

_LAYOUT = frozenset(
    "reshape view flatten transpose permute contiguous unsqueeze squeeze select narrow slice chunk split expand clone "
    "detach unbind unflatten flip roll repeat t max_pool2d max_pool1d max_pool3d _max_pool1d _max_pool2d _max_pool3d "
    "dropout alpha_dropout feature_dropout pixel_shuffle pixel_unshuffle channel_shuffle movedim moveaxis swapaxes "
    "swapdims tile __getitem__ reshape_as view_as expand_as index_select tensor_split hsplit vsplit ravel amax amin "
    "adaptive_max_pool2d".split()
)
"""Functions that only move elements, or select the largest ones; the grid is unchanged."""
_QUESTIONS = frozenset("size dim numel stride is_contiguous ndimension storage_offset is_floating_point".split())
"""Functions of a tensor's layout, which are called on its integers."""
_SAME_GRID: dict[str, Callable[..., Any]] = {
    "dequantize": QuantisedTensor.real,
    "relu": el.rectify, "relu6": el.relu6, "hardtanh": el.hardtanh, "clamp": el.clamp, "clip": el.clamp,
    "mean": el.mean, "cat": el.cat, "concat": el.cat, "concatenate": el.cat, "stack": el.stack, "pad": el.pad_spatial,
    "avg_pool1d": el.average_pool(F.avg_pool1d),
    # as after a convolution, whose result is channels-last; for a contiguous tensor PyTorch rounds ties differently
    "avg_pool2d": el.average_pool(F.avg_pool2d, requantise), "avg_pool3d": el.average_pool(F.avg_pool3d, requantise),
    "adaptive_avg_pool1d": el.adaptive_average_pool(F.adaptive_avg_pool1d, 1),
    "adaptive_avg_pool2d": el.adaptive_average_pool(F.adaptive_avg_pool2d, 2),
    "adaptive_avg_pool3d": el.adaptive_average_pool(F.adaptive_avg_pool3d, 3),
    "interpolate": el.interpolate, "upsample": el.interpolate,
    "leaky_relu": el.via_float(F.leaky_relu), "hardswish": el.via_float(F.hardswish), "elu": el.via_float(F.elu),
    "threshold": el.via_float(F.threshold),
    "sigmoid": el.via_float(torch.sigmoid, 1 / 256), "hardsigmoid": el.via_float(F.hardsigmoid, 1 / 256),
    "tanh": el.via_float(torch.tanh, 2 / 256, 128),
    "q_scale": lambda x: x.scale, "q_zero_point": lambda x: x.zero,
    "qscheme": lambda x: torch.per_tensor_affine,
    "int_repr": lambda x: x.integers.to(torch.uint8 if x.dtype is torch.quint8 else torch.int8),
}  # fmt: skip
"""Functions of quantised tensors without a grid argument: most keep the grid of their input."""
_WITH_GRID: dict[str, Callable[..., Any]] = {
    "add": el.add, "add_relu": functools.partial(el.add, relu=True),
    "mul": el.mul, "mul_relu": functools.partial(el.mul, relu=True),
    "add_scalar": el.add_scalar, "add_scalar_relu": functools.partial(el.add_scalar, relu=True),
    "mul_scalar": el.mul_scalar, "mul_scalar_relu": functools.partial(el.mul_scalar, relu=True),
    "matmul": el.matmul,
    "cat": lambda tensors, dim, scale=None, zero_point=None: el.cat(tensors, dim, scale, zero_point),
    "cat_relu": lambda tensors, dim, scale=None, zero_point=None: el.rectify(el.cat(tensors, dim, scale, zero_point)),
    "relu6": el.relu6, "clamp": el.clamp, "max_pool1d": F.max_pool1d, "max_pool2d": F.max_pool2d,
    "leaky_relu": el.leaky_relu,
    "hardswish": el.to_grid(F.hardswish), "sigmoid": el.to_grid(torch.sigmoid), "softmax": el.to_grid(F.softmax, 1),
    "dropout": lambda x, scale, zero, *rest: quantise(x.real(), scale, zero, x.dtype),
    "elu": lambda x, scale, zero, alpha=1.0, *rest: quantise(F.elu(x.real(), alpha), scale, zero, x.dtype),
    "celu": lambda x, scale, zero, alpha=1.0: quantise(F.celu(x.real(), alpha), scale, zero, x.dtype),
    "threshold": el.via_float(F.threshold),
    "layer_norm": el.to_grid(F.layer_norm, 4), "group_norm": el.to_grid(F.group_norm, 4),
    "instance_norm": el.to_grid(el.instance_norm, 3),
    **{f"batch_norm{n}": el.batch_norm for n in ("", "1d", "2d", "3d")},
    **{f"batch_norm{n}_relu": functools.partial(el.batch_norm, relu=True) for n in ("", "1d", "2d", "3d")},
}  # fmt: skip
"""Operators of the namespace `quantized` without packed weights."""
_NAMES = {"zero_point": "zero"}
_HINT = "export the float model, or end the quantised part before it with torch.ao.quantization.DeQuantStub"


class QuantisedCalls(TorchFunctionMode):
    """While active, functions of quantised tensors or packed weights compute with integers."""

    def __init__(self, engine: str) -> None:
        super().__init__()
        self._products, self._dynamic = Products(engine), Dynamic(engine)
        self._packed = {**_products(self._products), **_dynamic(self._dynamic)}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.call(func, args, kwargs or {})

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a function; without quantised tensors it is called unchanged."""
        namespace, name = _name_of(func)
        if namespace == "quantized":
            return self._operator(name, args, kwargs)
        if name in ("quantize_per_tensor", "quantize_per_tensor_dynamic", "quantize_per_channel"):
            return _quantise(name, args, kwargs)
        if name in ("quantized_lstm", "quantized_gru"):
            return self._recurrent(name, args, kwargs)
        grids = [leaf for leaf in _leaves((args, kwargs)) if isinstance(leaf, QuantisedTensor)]
        if not grids:
            return func(*args, **kwargs)
        if name in _QUESTIONS:
            return func(args[0].integers, *args[1:], **kwargs)
        return _of_quantised(func, name, args, kwargs)

    def _operator(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        implementation = self._packed.get(name) or _WITH_GRID.get(name)
        if implementation is None:
            raise CaptureError(f"the operator quantized::{name} is not supported", op=f"quantized::{name}", hint=_HINT)
        kwargs = {_NAMES.get(key, key): value for key, value in kwargs.items()}
        if name in ("max_pool1d", "max_pool2d"):
            return args[0].like(implementation(args[0].integers, *args[1:], **kwargs))
        kwargs = {("zero_point" if key == "zero" and name.startswith("cat") else key): v for key, v in kwargs.items()}
        return implementation(*args, **kwargs)

    def _recurrent(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        x, hx, *rest = args
        if not (isinstance(rest[0], list | tuple) and isinstance(rest[0][0], CellWeights)):
            raise CaptureError("a packed sequence in a dynamic quantised layer is not supported", hint="pad the batch")
        cells, _, layers, _, _, bidirectional, batch_first = rest[:7]
        if isinstance(x.shape[1 if batch_first else 0], torch.SymInt):
            raise CaptureError(
                f"the time axis of a dynamic quantised {name.removeprefix('quantized_').upper()} is dynamic",
                hint="its state is requantised at every step, so the steps are written one by one: declare the time "
                "axis static",
            )
        settings = Recurrent(layers, 2 if bidirectional else 1, batch_first)
        return (self._dynamic.lstm if name == "quantized_lstm" else self._dynamic.gru)(x, hx, cells, settings)


def _name_of(func: Any) -> tuple[str, str]:
    """Return the namespace of an operator (empty for a function of torch's API) and the name."""
    qualified = getattr(func, "_qualified_op_name", "") or getattr(getattr(func, "_schema", None), "name", "")
    namespace, _, name = qualified.rpartition("::")
    return (namespace, name) if namespace else ("", getattr(func, "__name__", str(func)))


def _of_quantised(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    stem = name.rstrip("_") if not name.endswith("__") else name
    in_place = name != stem or kwargs.get("inplace") is True
    if stem in _SAME_GRID:
        result = _SAME_GRID[stem](*args, **kwargs)
    elif name in _LAYOUT and isinstance(args[0], QuantisedTensor):
        grid = args[0]
        moved = func(grid.integers, *_integers(args[1:]), **{key: _integers(value) for key, value in kwargs.items()})
        result = type(moved)(map(grid.like, moved)) if isinstance(moved, list | tuple) else grid.like(moved)
    else:
        raise CaptureError(f"`{name}` of a quantised tensor is not supported", op=name, hint=_HINT)
    if in_place and isinstance(args[0], QuantisedTensor) and isinstance(result, QuantisedTensor):
        vars(args[0]).update(vars(result))
        return args[0]
    return result


def _integers(value: Any) -> Any:
    """Return the argument with quantised tensors replaced by integers."""
    if isinstance(value, QuantisedTensor):
        return value.integers
    return type(value)(map(_integers, value)) if type(value) in (list, tuple) else value


def _quantise(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if name != "quantize_per_tensor":
        raise CaptureError(f"torch.{name} while the model runs is not supported", op=name, hint=_HINT)
    arguments = dict(zip(("input", "scale", "zero_point", "dtype"), args, strict=False)) | kwargs
    x, scale, zero = arguments["input"], arguments["scale"], arguments["zero_point"]
    x = x.real() if isinstance(x, QuantisedTensor) else x
    if any(isinstance(number, Tensor) for number in (scale, zero)):
        raise CaptureError(
            "the scale of torch.quantize_per_tensor is a tensor that the model computes",
            op=name,
            hint="convert the model with torch.ao.quantization.convert, which makes it a constant",
        )
    return quantise(x, float(scale), int(zero), arguments["dtype"])


def _products(of: Products) -> dict[str, Callable[..., Any]]:
    """Return the operators on packed weights whose grid is known: linear layers and convolutions."""

    def product(
        x: QuantisedTensor, weight: PackedWeight, *grid: Any, relu: bool = False, **keywords: Any
    ) -> QuantisedTensor:
        scale, zero = _grid_of(grid, keywords)
        return of.product(x, weight, scale, zero, relu)

    def with_sum(
        x: QuantisedTensor, plus: QuantisedTensor, weight: PackedWeight, *grid: Any, relu: bool = False, **keywords: Any
    ) -> QuantisedTensor:
        scale, zero = _grid_of(grid, keywords)
        return of.product(x, weight, scale, zero, relu, plus)

    def leaky(
        x: QuantisedTensor, weight: PackedWeight, scale: float, zero: int, negative_slope: float
    ) -> QuantisedTensor:
        return of.product_with_activation(x, weight, scale, zero, lambda real: F.leaky_relu(real, negative_slope))

    def tanh(x: QuantisedTensor, weight: PackedWeight, scale: float, zero: int) -> QuantisedTensor:
        return of.product_with_activation(x, weight, scale, zero, torch.tanh)

    table: dict[str, Callable[..., Any]] = {"linear_leaky_relu": leaky, "linear_tanh": tanh}
    for name in ("linear", "conv1d", "conv2d", "conv3d", *(f"conv_transpose{n}d" for n in (1, 2, 3))):
        table[name] = product
        table[f"{name}_relu"] = functools.partial(product, relu=True)
    return table | {"conv2d_add": with_sum, "conv2d_add_relu": functools.partial(with_sum, relu=True)}


def _grid_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[float, int]:
    """Return scale and zero point, which come last. Older variants have the settings of a convolution before them."""
    scale, zero = (*args, *kwargs.values())[-2:]
    return float(scale), int(zero)


def _dynamic(of: Dynamic) -> dict[str, Callable[..., Any]]:
    """Return the operators on packed weights whose grid is computed while the model runs, and embeddings."""
    relu = functools.partial(of.product, relu=True)
    table: dict[str, Callable[..., Any]] = {
        "linear_dynamic": of.product, "linear_relu_dynamic": relu,
        "quantized_lstm_cell_dynamic": lambda x, hx, w_ih, w_hh, *_: of.lstm_cell(x, hx, w_ih, w_hh),
        "quantized_gru_cell_dynamic": lambda x, hx, w_ih, w_hh, *_: of.gru_cell(x, hx, w_ih, w_hh),
        "quantized_rnn_relu_cell_dynamic": lambda x, hx, w_ih, w_hh, *_: of.rnn_cell(x, hx, w_ih, w_hh, True),
        "quantized_rnn_tanh_cell_dynamic": lambda x, hx, w_ih, w_hh, *_: of.rnn_cell(x, hx, w_ih, w_hh, False),
        "embedding_byte": embedding, "embedding_4bit": embedding,
        "embedding_bag_byte": embedding_bag, "embedding_bag_4bit": embedding_bag,
    }  # fmt: skip
    return table


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


_MODES = ("sum", "mean", "max")


def embedding(weight: PackedWeight, indices: Tensor, pruned_weights: bool = False) -> Tensor:
    """Return rows as floats; they are picked before they are dequantised."""
    numbers = F.embedding(indices, weight.stored).to(torch.float32)
    return numbers * F.embedding(indices, weight.scales) + F.embedding(indices, weight.lowest)


def embedding_bag(
    weight: PackedWeight, indices: Tensor, offsets: Tensor | None = None, scale_grad_by_freq: bool = False,
    mode: int = 0, pruned_weights: bool = False, per_sample_weights: Tensor | None = None,
    compressed_indices_mapping: Any = None, include_last_offset: bool = False,
) -> Tensor:  # fmt: skip
    """Return sums of rows, one for each row of `indices` [bags, entries]."""
    if offsets is not None or indices.dim() != 2 or pruned_weights:
        raise CaptureError(
            "an embedding bag of 8 bits has bags of different lengths here",
            hint="pass the indices as [bags, entries], without offsets",
        )
    rows = embedding(weight, indices)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    if _MODES[mode] == "max":
        return rows.amax(1)
    return rows.sum(1) if _MODES[mode] == "sum" else rows.mean(1)
