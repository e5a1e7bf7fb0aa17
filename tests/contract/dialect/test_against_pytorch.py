"""The definitions of tract's operators against PyTorch in float64, over all drawn cases; no engine runs.

An operator without an equal one in PyTorch is checked with values computed by hand, in tests/unit/dialect/meaning.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from t2n_core.dialect.cases import cases
from t2n_core.dialect.operators import functions
from tests.contract.dialect.test_standard import AGAINST_KHRONOS, TORCH
from tests.unit.dialect.meaning.standard.test_special_values import TABLE

BY_HAND = Path(__file__).parents[2] / "unit" / "dialect" / "meaning"
Reference = Callable[..., Any]
_SCATTER = {None: None, "none": None, "add": "sum", "mul": "prod", "min": "amin", "max": "amax"}


def topk(input: Tensor, k: Tensor, axis: int, largest: bool) -> tuple[Tensor, Tensor]:
    """Of equal elements, the first one comes first."""
    order = torch.argsort(input, dim=axis, descending=largest, stable=True).narrow(axis, 0, int(k))
    return input.gather(axis, order), order


def cumsum(input: Tensor, axis: int, exclusive: bool, reverse: bool) -> Tensor:
    turned = input.flip(axis) if reverse else input
    total = turned.cumsum(axis) - (turned if exclusive else 0)
    return total.flip(axis) if reverse else total


def gather(input: Tensor, indices: Tensor, axis: int) -> Tensor:
    flat = torch.where(indices < 0, indices + input.shape[axis], indices).reshape(-1).long()
    return (
        input.index_select(axis, flat).unflatten(axis, indices.shape) if indices.ndim else input.select(axis, flat[0])
    )


def gather_elements(input: Tensor, indices: Tensor, axis: int) -> Tensor:
    return input.gather(axis, torch.where(indices < 0, indices + input.shape[axis], indices).long())


def scatter_elements(input: Tensor, indices: Tensor, updates: Tensor, axis: int, reduction: Any = None) -> Tensor:
    places = torch.where(indices < 0, indices + input.shape[axis], indices).long()
    reduce_mode = _SCATTER[reduction]
    return (
        input.scatter(axis, places, updates)
        if reduce_mode is None
        else input.scatter_reduce(axis, places, updates, reduce_mode)
    )


def product(input: Tensor, axes: list[int]) -> Tensor:
    for axis in axes:
        input = input.prod(axis, keepdim=True)
    return input


def softmax(x: Tensor, axes: list[int]) -> Tensor:
    rest = [axis for axis in range(x.ndim) if axis not in axes]
    moved = x.permute(*rest, *axes)
    flat = moved.reshape(*(x.shape[axis] for axis in rest), -1).softmax(-1).reshape(moved.shape)
    return flat.permute([[*rest, *axes].index(axis) for axis in range(x.ndim)])


def sdpa(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    scale: float | None = None,
    is_causal: bool = False,
    **_: Any,
) -> Tensor:
    rows, columns = q.shape[-2], k.shape[-2]
    if is_causal:  # aligned at the last key
        mask = torch.ones(rows, columns, dtype=torch.bool).tril(columns - rows)
    return F.scaled_dot_product_attention(q, k, v, mask, scale=scale, enable_gqa=q.ndim == 4)


def masked_softmax(input: Tensor, mask: Tensor, scale: float, post_softmax_mask: bool = False) -> Tensor:
    scores = (input * scale).masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else input * scale + mask
    weights = scores.softmax(-1)
    return weights * mask if post_softmax_mask else weights


def window_sdpa(q: Tensor, k: Tensor, v: Tensor, axis: int, window: int, scale: float | None = None) -> Tensor:
    steps = torch.arange(q.shape[2])
    distance = steps[:, None] - steps[None, :]
    mask = (distance >= 0) & (distance < window)
    return F.scaled_dot_product_attention(q, k, v, mask, scale=scale, enable_gqa=True)


def rms_norm(input: Tensor, axis: int, eps: float = 1e-6) -> Tensor:
    return F.rms_norm(input.movedim(axis, -1), [input.shape[axis]], eps=eps).movedim(-1, axis)


def lrn(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Tensor:
    around = F.pad(input.square().movedim(1, -1), ((size - 1) // 2, size // 2)).unfold(-1, size, 1).sum(-1)
    return input / (bias + alpha / size * around.movedim(-1, 1)) ** beta


def fft(input: Tensor, axis: int, inverse: bool) -> Tensor:
    values = torch.view_as_complex(input)
    # the inverse is not divided by the number of elements
    result = torch.fft.ifft(values, dim=axis, norm="forward") if inverse else torch.fft.fft(values, dim=axis)
    return torch.view_as_real(result)


def stft(input: Tensor, axis: int, frame: int, stride: int, window: Tensor | None = None) -> Tensor:
    values = torch.view_as_complex(input).movedim(axis, -1)
    lines = values.reshape(-1, values.shape[-1])
    length = frame if window is None else window.shape[0]
    weights = torch.ones(frame, dtype=torch.float64) if window is None else window
    spectrum = torch.stft(
        lines, frame, stride, length, weights, center=False, onesided=False, return_complex=True
    )  # [lines, frequency, frame]
    spectrum = spectrum.mT.reshape(*values.shape[:-1], *spectrum.shape[:0:-1])
    return torch.view_as_real(spectrum.movedim((-2, -1), (axis, axis + 1)))


def lstm_epilogue(preact: Tensor, c_prev: Tensor, hidden: int) -> Any:
    enter, out, forget, cell = preact.split(hidden, 1)  # as ONNX orders the gates
    c = forget.sigmoid() * c_prev + enter.sigmoid() * cell.tanh()
    return out.sigmoid() * c.tanh(), c


def gru_epilogue(xh: Tensor, rh: Tensor, h_prev: Tensor, hidden: int) -> Tensor:
    (x_z, x_r, x_n), (h_z, h_r, h_n) = xh.split(hidden, 1), rh.split(hidden, 1)  # as ONNX orders the gates
    update = (x_z + h_z).sigmoid()
    return (1 - update) * (x_n + (x_r + h_r).sigmoid() * h_n).tanh() + update * h_prev


def core_resize(input: Tensor, sizes: Tensor | None = None, **given: Any) -> Tensor | None:
    """The interpolations that PyTorch has: in float64 it finds places as the definition does in float32."""
    interpolator, places = given.get("interpolator", "nearest"), given.get("coord_transformer", "half_pixel")
    if sizes is None or interpolator != "cubic" or places not in ("half_pixel", "align_corners"):
        return None
    images = input if input.ndim == 4 else input.unsqueeze(2)  # PyTorch has two axes alone
    extents = [1] * (4 - input.ndim) + [int(size) for size in sizes[2:]]
    result = F.interpolate(images, extents, mode="bicubic", align_corners=places == "align_corners")
    return result.reshape(*input.shape[:2], *extents[4 - input.ndim :])


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", **given: Any) -> Tensor | None:
    padding, align = given.get("padding_mode", "zeros"), given.get("align_corners", False)
    if input.ndim == 3:
        return None
    return F.grid_sample(input, grid, mode, padding, align)


def downsample(input: Tensor, axis: int, stride: int, modulo: int = 0) -> Tensor | None:
    if stride < 0:
        return None
    return input[(slice(None),) * axis + (slice(modulo, None, stride),)]


def one_hot(input: Tensor, axis: int, dim: int, value_off: float = 0.0, value_on: float = 1.0) -> Tensor:
    places = torch.where(input < 0, input + dim, input).long()
    return torch.where(F.one_hot(places, dim).movedim(-1, axis).bool(), value_on, value_off)


PYTORCH: Mapping[str, Reference] = {
    "tract_core_silu": lambda x: torch.where(x.isneginf(), -0.0, F.silu(x)),
    "tract_transformers_silu": lambda x: torch.where(x.isneginf(), -0.0, F.silu(x)),
    "tract_core_erf": torch.erf,
    "tract_core_round_even": torch.round,
    "tract_core_is_nan": torch.isnan,
    "tract_onnx_is_nan": torch.isnan,
    "tract_core_pow_const": lambda input, exponent: input ** torch.tensor(exponent, dtype=torch.float64),
    "tract_core_bitand": torch.bitwise_and,
    "tract_core_bitor": torch.bitwise_or,
    "tract_core_bitxor": torch.bitwise_xor,
    "tract_core_bitnot": torch.bitwise_not,
    "tract_core_xor": torch.logical_xor,
    "tract_core_topk": topk,
    "tract_core_cumsum": cumsum,
    "tract_core_gather": gather,
    "tract_core_gather_elements": gather_elements,
    "tract_core_scatter_elements": scatter_elements,
    "tract_core_product_reduce": product,
    "tract_core_softmax": softmax,
    "tract_core_log_softmax": lambda x, axes: None if len(axes) > 1 else x.log_softmax(axes[0]),
    "tract_core_einsum": lambda inputs, expr, acc: torch.einsum(expr, *inputs),
    "tract_onnx_einsum": lambda inputs, expr: torch.einsum(expr, *inputs),
    "tract_core_trilu": lambda input, k, upper: (torch.triu if upper else torch.tril)(input, int(k)),
    "tract_core_broadcast": lambda input, shape: input.expand(shape),
    "tract_core_downsample": downsample,
    "tract_core_one_hot": one_hot,
    "tract_core_dyn_slice": lambda input, start, end, len, axis: input.narrow(axis, int(start), int(end - start)),
    "tract_transformers_sdpa": sdpa,
    "tract_transformers_window_kv_sdpa": window_sdpa,
    "tract_transformers_scaled_masked_softmax": masked_softmax,
    "tract_core_rms_norm": rms_norm,
    "tract_transformers_rms_norm": rms_norm,
    "tract_onnx_lrn": lrn,
    "tract_core_fft": fft,
    "tract_core_stft": stft,
    "tract_core_lstm_epilogue": lstm_epilogue,
    "tract_core_gru_epilogue": gru_epilogue,
    "tract_core_resize": core_resize,
    "tract_core_grid_sample": grid_sample,
    "tract_onnx_grid_sample": grid_sample,
}
"""The same functions in PyTorch, with the parameters of the operator; None for a case that PyTorch does not have."""


def _tensor(value: Any) -> Any:
    if isinstance(value, list):
        return [_tensor(item) for item in value]
    if not isinstance(value, np.ndarray):
        return value
    return torch.from_numpy(value.astype(np.float64) if value.dtype.kind == "f" else value)


@pytest.mark.parametrize("op", PYTORCH)
def test_the_definition_computes_what_pytorch_does(op: str) -> None:
    compared = 0
    for case in cases(op):
        arguments = list({name: _tensor(value) for name, value in case.arguments.items()}.items())
        try:
            expected = PYTORCH[op](**dict(arguments))
        except (TypeError, NotImplementedError) as wrong:
            if isinstance(wrong, TypeError) and len(arguments) <= 2:  # PyTorch names its operands otherwise
                expected = PYTORCH[op](*(value for _, value in arguments))
            else:  # a data type that PyTorch does not compute with
                continue
        if expected is None:
            continue
        results = case.expected(functions()[op])
        for result, other in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
            assert result.shape == tuple(other.shape), case
            np.testing.assert_allclose(
                np.asarray(result, dtype=float),
                other.to(torch.float64).numpy(),
                rtol=1e-6,
                atol=1e-6,
                err_msg=str(case),
            )
        compared += 1
    assert compared >= 5


def _imported() -> Iterator[str]:
    """Yield the names of the functions that the tests of the definitions import."""
    for file in BY_HAND.rglob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("t2n_core.dialect.meaning"):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_definition_has_a_reference_or_values_by_hand() -> None:
    statements = [statement for statement, *_ in (*AGAINST_KHRONOS.values(), *TORCH.values())]
    tested = {statement.partition("(")[0].partition("<")[0] for statement in statements}
    tested |= {op for op, *_ in TABLE} | PYTORCH.keys()
    by_hand = set(_imported())
    neither = [
        op
        for op, definition in functions().items()
        if op not in tested and f"{definition.function.__module__}.{definition.function.__name__}" not in by_hand
    ]
    assert neither == []
