"""Functions of PyTorch that are called with quantised tensors or packed weights, each with what computes it."""

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
from t2n_core.rewriter.quantised.embeddings import embedding, embedding_bag
from t2n_core.rewriter.quantised.grid import Grid, quantised, requantised
from t2n_core.rewriter.quantised.packed import CellWeights, PackedWeight
from t2n_core.rewriter.quantised.products import Products

_LAYOUT = frozenset(
    "reshape view flatten transpose permute contiguous unsqueeze squeeze select narrow slice chunk split expand clone "
    "detach unbind unflatten flip roll repeat t max_pool2d max_pool1d max_pool3d _max_pool1d _max_pool2d _max_pool3d "
    "dropout alpha_dropout feature_dropout pixel_shuffle pixel_unshuffle channel_shuffle movedim moveaxis swapaxes "
    "swapdims tile __getitem__ reshape_as view_as expand_as index_select tensor_split hsplit vsplit ravel amax amin "
    "adaptive_max_pool2d".split()
)
"""Functions that move numbers and compute none, or only choose the largest ones; the grid stays."""
_QUESTIONS = frozenset("size dim numel stride is_contiguous ndimension storage_offset is_floating_point".split())
"""Functions of a tensor's form, which are asked of its numbers."""
_SAME_GRID: dict[str, Callable[..., Any]] = {
    "dequantize": Grid.real,
    "relu": el.rectified, "relu6": el.relu6, "hardtanh": el.hardtanh, "clamp": el.clamped, "clip": el.clamped,
    "mean": el.mean, "cat": el.cat, "concat": el.cat, "concatenate": el.cat, "stack": el.stack, "pad": el.padded,
    "avg_pool1d": el.averaged(F.avg_pool1d),
    # as after a convolution, whose result is channels-last; of a contiguous tensor PyTorch rounds other ties
    "avg_pool2d": el.averaged(F.avg_pool2d, requantised), "avg_pool3d": el.averaged(F.avg_pool3d, requantised),
    "adaptive_avg_pool1d": el.adaptive(F.adaptive_avg_pool1d, 1),
    "adaptive_avg_pool2d": el.adaptive(F.adaptive_avg_pool2d, 2),
    "adaptive_avg_pool3d": el.adaptive(F.adaptive_avg_pool3d, 3),
    "interpolate": el.interpolated, "upsample": el.interpolated,
    "leaky_relu": el.through(F.leaky_relu), "hardswish": el.through(F.hardswish), "elu": el.through(F.elu),
    "threshold": el.through(F.threshold),
    "sigmoid": el.through(torch.sigmoid, 1 / 256), "hardsigmoid": el.through(F.hardsigmoid, 1 / 256),
    "tanh": el.through(torch.tanh, 2 / 256, 128),
    "q_scale": lambda x: x.scale, "q_zero_point": lambda x: x.zero,
    "qscheme": lambda x: torch.per_tensor_affine,
    "int_repr": lambda x: x.numbers.to(torch.uint8 if x.dtype is torch.quint8 else torch.int8),
}  # fmt: skip
"""Functions of quantised tensors that say no grid: most keep that of their input."""
_WITH_GRID: dict[str, Callable[..., Any]] = {
    "add": el.add, "add_relu": functools.partial(el.add, relu=True),
    "mul": el.mul, "mul_relu": functools.partial(el.mul, relu=True),
    "add_scalar": el.add_scalar, "add_scalar_relu": functools.partial(el.add_scalar, relu=True),
    "mul_scalar": el.mul_scalar, "mul_scalar_relu": functools.partial(el.mul_scalar, relu=True),
    "matmul": el.matmul,
    "cat": lambda tensors, dim, scale=None, zero_point=None: el.cat(tensors, dim, scale, zero_point),
    "cat_relu": lambda tensors, dim, scale=None, zero_point=None: el.rectified(el.cat(tensors, dim, scale, zero_point)),
    "relu6": el.relu6, "clamp": el.clamped, "max_pool1d": F.max_pool1d, "max_pool2d": F.max_pool2d,
    "leaky_relu": el.leaky_relu,
    "hardswish": el.onto(F.hardswish), "sigmoid": el.onto(torch.sigmoid), "softmax": el.onto(F.softmax, 1),
    "dropout": lambda x, scale, zero, *rest: quantised(x.real(), scale, zero, x.dtype),
    "elu": lambda x, scale, zero, alpha=1.0, *rest: quantised(F.elu(x.real(), alpha), scale, zero, x.dtype),
    "celu": lambda x, scale, zero, alpha=1.0: quantised(F.celu(x.real(), alpha), scale, zero, x.dtype),
    "threshold": el.through(F.threshold),
    "layer_norm": el.onto(F.layer_norm, 4), "group_norm": el.onto(F.group_norm, 4),
    "instance_norm": el.onto(el.instance_norm, 3),
    **{f"batch_norm{n}": el.batch_norm for n in ("", "1d", "2d", "3d")},
    **{f"batch_norm{n}_relu": functools.partial(el.batch_norm, relu=True) for n in ("", "1d", "2d", "3d")},
}  # fmt: skip
"""Operators of the namespace `quantized` without packed weights."""
_NAMES = {"zero_point": "zero"}
_HINT = "export the float model, or end the quantised part before it with torch.ao.quantization.DeQuantStub"


class QuantisedCalls(TorchFunctionMode):
    """While active, functions that are given grids or packed weights compute with integers."""

    def __init__(self, engine: str) -> None:
        super().__init__()
        self._products, self._dynamic = Products(engine), Dynamic(engine)
        self._packed = {**_products(self._products), **_dynamic(self._dynamic)}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.call(func, args, kwargs or {})

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what a function gives; one that is not of quantised tensors is called as it is."""
        namespace, name = _name_of(func)
        if namespace == "quantized":
            return self._operator(name, args, kwargs)
        if name in ("quantize_per_tensor", "quantize_per_tensor_dynamic", "quantize_per_channel"):
            return _quantise(name, args, kwargs)
        if name in ("quantized_lstm", "quantized_gru"):
            return self._recurrent(name, args, kwargs)
        grids = [leaf for leaf in _leaves((args, kwargs)) if isinstance(leaf, Grid)]
        if not grids:
            return func(*args, **kwargs)
        if name in _QUESTIONS:
            return func(args[0].numbers, *args[1:], **kwargs)
        return _of_grids(func, name, args, kwargs)

    def _operator(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        known = self._packed.get(name) or _WITH_GRID.get(name)
        if known is None:
            raise CaptureError(f"the operator quantized::{name} is not supported", op=f"quantized::{name}", hint=_HINT)
        kwargs = {_NAMES.get(key, key): value for key, value in kwargs.items()}
        if name in ("max_pool1d", "max_pool2d"):
            return args[0].like(known(args[0].numbers, *args[1:], **kwargs))
        kwargs = {("zero_point" if key == "zero" and name.startswith("cat") else key): v for key, v in kwargs.items()}
        return known(*args, **kwargs)

    def _recurrent(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        x, hx, *rest = args
        if not (isinstance(rest[0], list | tuple) and isinstance(rest[0][0], CellWeights)):
            raise CaptureError("a packed sequence in a dynamic quantised layer is not supported", hint="pad the batch")
        cells, _, layers, _, _, bidirectional, batch_first = rest[:7]
        if isinstance(x.shape[1 if batch_first else 0], torch.SymInt):
            raise CaptureError(
                f"the time axis of a dynamic quantised {name.removeprefix('quantized_').upper()} is dynamic",
                hint="its state is quantised anew at every step, so the steps are written one by one: declare the time "
                "axis static",
            )
        settings = Recurrent(layers, 2 if bidirectional else 1, batch_first)
        return (self._dynamic.lstm if name == "quantized_lstm" else self._dynamic.gru)(x, hx, cells, settings)


def _name_of(func: Any) -> tuple[str, str]:
    """Return the namespace of an operator (empty for a function of torch's API) and the name."""
    qualified = getattr(func, "_qualified_op_name", "") or getattr(getattr(func, "_schema", None), "name", "")
    namespace, _, name = qualified.rpartition("::")
    return (namespace, name) if namespace else ("", getattr(func, "__name__", str(func)))


def _of_grids(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    stem = name.rstrip("_") if not name.endswith("__") else name
    in_place = name != stem or kwargs.get("inplace") is True
    if stem in _SAME_GRID:
        found = _SAME_GRID[stem](*args, **kwargs)
    elif name in _LAYOUT and isinstance(args[0], Grid):
        grid = args[0]
        moved = func(grid.numbers, *_numbers(args[1:]), **{key: _numbers(value) for key, value in kwargs.items()})
        found = type(moved)(map(grid.like, moved)) if isinstance(moved, list | tuple) else grid.like(moved)
    else:
        raise CaptureError(f"`{name}` of a quantised tensor is not supported", op=name, hint=_HINT)
    if in_place and isinstance(args[0], Grid) and isinstance(found, Grid):
        vars(args[0]).update(vars(found))
        return args[0]
    return found


def _numbers(value: Any) -> Any:
    """Return the argument with the numbers of grids in their place."""
    if isinstance(value, Grid):
        return value.numbers
    return type(value)(map(_numbers, value)) if type(value) in (list, tuple) else value


def _quantise(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if name != "quantize_per_tensor":
        raise CaptureError(f"torch.{name} while the model runs is not supported", op=name, hint=_HINT)
    given = dict(zip(("input", "scale", "zero_point", "dtype"), args, strict=False)) | kwargs
    x, scale, zero = given["input"], given["scale"], given["zero_point"]
    x = x.real() if isinstance(x, Grid) else x
    if any(isinstance(number, Tensor) for number in (scale, zero)):
        raise CaptureError(
            "the scale of torch.quantize_per_tensor is a tensor that the model computes",
            op=name,
            hint="convert the model with torch.ao.quantization.convert, which makes it a number",
        )
    return quantised(x, float(scale), int(zero), given["dtype"])


def _products(of: Products) -> dict[str, Callable[..., Any]]:
    """Return the operators on packed weights whose grid is known: linear layers and convolutions."""

    def product(x: Grid, weight: PackedWeight, *grid: Any, relu: bool = False, **named: Any) -> Grid:
        scale, zero = _grid_of(grid, named)
        return of.product(x, weight, scale, zero, relu)

    def with_sum(x: Grid, plus: Grid, weight: PackedWeight, *grid: Any, relu: bool = False, **named: Any) -> Grid:
        scale, zero = _grid_of(grid, named)
        return of.product(x, weight, scale, zero, relu, plus)

    def leaky(x: Grid, weight: PackedWeight, scale: float, zero: int, negative_slope: float) -> Grid:
        return of.activated(x, weight, scale, zero, lambda real: F.leaky_relu(real, negative_slope))

    def tanh(x: Grid, weight: PackedWeight, scale: float, zero: int) -> Grid:
        return of.activated(x, weight, scale, zero, torch.tanh)

    table: dict[str, Callable[..., Any]] = {"linear_leaky_relu": leaky, "linear_tanh": tanh}
    for name in ("linear", "conv1d", "conv2d", "conv3d", *(f"conv_transpose{n}d" for n in (1, 2, 3))):
        table[name] = product
        table[f"{name}_relu"] = functools.partial(product, relu=True)
    return table | {"conv2d_add": with_sum, "conv2d_add_relu": functools.partial(with_sum, relu=True)}


def _grid_of(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[float, int]:
    """Return scale and zero point, which come last. Older forms have the settings of a convolution before them."""
    scale, zero = (*args, *named.values())[-2:]
    return float(scale), int(zero)


def _dynamic(of: Dynamic) -> dict[str, Callable[..., Any]]:
    """Return the operators on packed weights whose grid is found while the model runs, and embeddings."""
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


__all__ = ["QuantisedCalls"]
