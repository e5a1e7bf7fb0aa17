"""The standard's operators against the interpreter of the Khronos tools, in float64.

Where that interpreter is wrong or lacks an operator, the reference is PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from nnef_tools.interpreter.pytorch import Interpreter
from numpy.typing import NDArray
from torch.nn import functional

from t2n_core.dialect import evaluate
from t2n_core.nnef.spec import known_operators

UNARY = "abs neg sign copy sqr exp sin cos tan sinh cosh asinh atan floor ceil relu sigmoid tanh silu elu".split()
POSITIVE = "rcp sqrt rsqr rsqrt log log2".split()
BINARY = "add sub mul div min max lt gt le ge eq ne".split()

X = {"x": (2, 4, 7, 5)}
XY = {"x": (2, 4, 7), "y": (2, 1, 7)}
WINDOW = "size = [1, 1, 3, 2], border = 'constant', padding = [(0, 0), (0, 0), (1, 0), (1, 1)], stride = [1, 1, 2, 1]"
PLAIN = "size = [1, 1, 3, 2], border = 'ignore', padding = [(0, 0), (0, 0), (1, 1), (0, 1)], stride = [1, 1, 2, 3]"
WIDE = f"{WINDOW}, dilation = [1, 1, 2, 3]"

AGAINST_KHRONOS: dict[str, tuple[str, Mapping[str, tuple[int, ...]]]] = {
    **{name: (f"{name}(x)", X) for name in UNARY},
    **{name: (f"{name}(abs(x))", X) for name in POSITIVE},
    **{name: (f"{name}(tanh(x))", X) for name in ("asin", "acos", "atanh")},
    "acosh": ("acosh(add(abs(x), 1.0))", X),
    **{name: (f"{name}(x, y)", XY) for name in BINARY},
    "add of another rank": ("add(x, y)", {"x": (2, 4, 7), "y": (2, 4)}),
    "pow": ("pow(abs(x), y)", XY),
    "and": ("and(lt(x, 0.0), lt(y, 0.5))", XY),
    "or": ("or(lt(x, 0.0), lt(y, 0.5))", XY),
    "not": ("not(lt(x, 0.0))", X),
    "select": ("select(lt(x, 0.0), x, y)", XY),
    "clamp": ("clamp(x, -0.5, 0.25)", X),
    "add_n": ("add_n([x, y, x])", {"x": (2, 3), "y": (2, 3)}),
    "leaky_relu": ("leaky_relu(x, alpha = 0.3)", X),
    "prelu": ("prelu(x, 0.3)", X),
    "gelu": ("gelu(x)", X),
    "softmax": ("softmax(x, axes = [1])", X),
    "softplus": ("softplus(x)", X),
    "sum_reduce": ("sum_reduce(x, axes = [1, 3])", X),
    "sum_reduce, normalised": ("sum_reduce(x, axes = [1, 3], normalize = true)", X),
    "mean_reduce": ("mean_reduce(x, axes = [2])", X),
    "max_reduce": ("max_reduce(x, axes = [0, 2])", X),
    "min_reduce": ("min_reduce(x, axes = [3])", X),
    "argmax_reduce": ("argmax_reduce(x, axes = [2])", X),
    "argmin_reduce": ("argmin_reduce(x, axes = [3])", X),
    "any_reduce": ("any_reduce(lt(x, -1.0), axes = [2])", X),
    "all_reduce": ("all_reduce(lt(x, 1.0), axes = [3])", X),
    "moments": ("moments(x, axes = [0, 2, 3])", X),
    "reshape": ("reshape(x, shape = [0, -1, 10])", X),
    "reshape of some axes": ("reshape(x, shape = [14, 2], axis_start = 1, axis_count = 2)", X),
    "transpose": ("transpose(x, axes = [2, 0, 3, 1])", X),
    "squeeze": ("squeeze(x, axes = [0, 2])", {"x": (1, 4, 1, 5)}),
    "unsqueeze": ("unsqueeze(x, axes = [0, 3])", {"x": (2, 4, 7)}),
    "tile": ("tile(x, repeats = [3, 1, 2])", {"x": (2, 4, 3)}),
    "concat": ("concat([x, y], axis = 1)", {"x": (2, 4, 3), "y": (2, 5, 3)}),
    "stack": ("stack([x, y], axis = 1)", {"x": (2, 4, 3), "y": (2, 4, 3)}),
    "split": ("split(x, axis = 1, ratios = [1, 3, 2])", {"x": (2, 6, 3)}),
    "unstack": ("unstack(x, axis = 1)", {"x": (2, 3, 4)}),
    "copy_n": ("copy_n(x, times = 3)", {"x": (2, 3, 4)}),
    "slice": ("slice(x, axes = [1, 3], begin = [1, 2], end = [3, 0])", X),
    "slice from the end": ("slice(x, axes = [2, 3], begin = [-5, 1], end = [-1, 4])", X),
    "slice with a stride": ("slice(x, axes = [2], begin = [1], end = [6], stride = [2])", X),
    "gather": ("gather(x, argmax_reduce(i, axes = [1]), axis = 1)", {"x": (2, 9, 3), "i": (4, 9)}),
    "cast": ("cast<integer>(mul(x, 3.0))", X),
    "pad": ("pad(x, padding = [(0, 0), (0, 0), (2, 1), (0, 3)], border = 'constant', value = -0.5)", X),
    "pad, reflected": ("pad(x, padding = [(0, 0), (0, 0), (2, 1), (0, 3)], border = 'reflect')", X),
    "pad, replicated": ("pad(x, padding = [(0, 0), (0, 0), (2, 1), (0, 3)], border = 'replicate')", X),
    "box": (f"box(x, {WINDOW})", X),
    "box without padding": ("box(x, size = [1, 1, 3, 2], stride = [1, 1, 2, 1], padding = [])", X),
    "box, normalised": (f"box(x, {PLAIN}, normalize = true)", X),
    "box, normalised with the border": (f"box(x, {WINDOW}, normalize = true)", X),
    "avg_pool": (f"avg_pool(x, {PLAIN})", X),
    "rms_pool": (f"rms_pool(x, {WINDOW})", X),
    "max_pool": (f"max_pool(x, {WINDOW})", X),
    "max_pool, dilated": (f"max_pool(x, {WIDE})", X),
    "max_pool without the border": (f"max_pool(x, {PLAIN})", X),
    "debox": ("debox(x, size = [1, 1, 3, 2], padding = [(0, 0), (0, 0), (1, 0), (0, 1)], stride = [1, 1, 2, 3])", X),
    "nearest_downsample": ("nearest_downsample(x, factor = [3, 2])", {"x": (2, 4, 9, 6)}),
    "area_downsample": ("area_downsample(x, factor = [3, 2])", {"x": (2, 4, 9, 6)}),
    "nearest_upsample": ("nearest_upsample(x, factor = [3, 2])", X),
    "multilinear_upsample": ("multilinear_upsample(x, factor = [2, 2], method = 'symmetric', border = 'replicate')", X),
    "multilinear_upsample, aligned": ("multilinear_upsample(x, factor = [2, 2], method = 'aligned')", X),
    "conv": (
        "conv(x, w, b, padding = [(1, 2), (0, 1)], stride = [2, 1], dilation = [1, 2], groups = 2)",
        {"x": (3, 4, 9, 8), "w": (6, 2, 3, 2), "b": (1, 6)},
    ),
    "conv without padding": ("conv(x, w, stride = [2, 3])", {"x": (2, 4, 9, 8), "w": (3, 4, 3, 4)}),
    "conv of each channel": ("conv(x, w, 0.5, padding = [(1, 1)], groups = 0)", {"x": (2, 4, 9), "w": (8, 1, 3)}),
    "separable_conv": (
        "separable_conv(x, p, q, b, padding = [(1, 1), (0, 0)], stride = [1, 2])",
        {"x": (2, 4, 6, 7), "p": (4, 1, 3, 2), "q": (5, 4, 1, 1), "b": (1, 5)},
    ),
    "deconv of each channel": (
        "deconv(x, w, b, padding = [(1, 0), (0, 1)], stride = [2, 3], groups = 4)",
        {"x": (2, 4, 5, 3), "w": (4, 1, 3, 2), "b": (1, 4)},
    ),
    "matmul": ("matmul(a, b, transposeB = true)", {"a": (2, 3, 4), "b": (2, 5, 4)}),
    "matmul, transposed": ("matmul(a, b, transposeA = true)", {"a": (4, 3), "b": (4, 5)}),
    "linear": ("linear(x, w, b)", {"x": (3, 4), "w": (5, 4), "b": (1, 5)}),
    "local_response_normalization": (
        "local_response_normalization(x, size = [1, 3, 1, 1], alpha = 0.3, beta = 0.7, bias = 2.0)", X),
    "local_mean_normalization": ("local_mean_normalization(x, size = [1, 1, 3, 3])", X),
    "local_variance_normalization": ("local_variance_normalization(x, size = [1, 1, 3, 3], bias = 0.1)", X),
    "local_contrast_normalization": (
        "local_contrast_normalization(x, size = [1, 1, 3, 3], bias = 0.1, epsilon = 0.3)", X),
    "l1_normalization": ("l1_normalization(x, axes = [1, 2], bias = 0.1, epsilon = 0.01)", X),
    "l2_normalization": ("l2_normalization(x, axes = [1], bias = 0.1, epsilon = 3.0)", X),
    "batch_normalization": (
        "batch_normalization(x, m, v, o, u, epsilon = 0.01)",
        {"x": (2, 4, 7, 5), "m": (1, 4), "v": (1, 4), "o": (1, 4), "u": (1, 4)},
    ),
}  # fmt: skip


def numbers(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(3)
    made = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return {name: np.abs(array) if name == "v" else array for name, array in made.items()}


def folder_of(statement: str, shapes: Mapping[str, tuple[int, ...]], folder: Path) -> Path:
    """Write a graph of one expression; its calls become statements of their own."""
    operator = statement.partition("(")[0]
    results = {"moments": "(r, s)", "split": "[r, s, t]", "unstack": "[r, s, t]", "copy_n": "[r, s, t]"}
    left = results.get(operator, "r")
    outputs = left.strip("()[]")
    lines = [f"{name} = external<scalar>(shape = {list(shape)});" for name, shape in shapes.items()]
    lines.append(f"{left} = {statement};")
    names = ", ".join(shapes)
    (folder / "graph.nnef").write_text(
        "version 1.0;\n\nextension KHR_enable_operator_expressions;\n\n"
        f"graph g({names}) -> ({outputs})\n{{\n  " + "\n  ".join(lines) + "\n}\n"
    )
    return folder


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", AGAINST_KHRONOS)
def test_it_computes_what_the_interpreter_of_khronos_does(name: str, tmp_path: Path) -> None:
    statement, shapes = AGAINST_KHRONOS[name]
    inputs = numbers(shapes)
    folder = folder_of(statement, shapes, tmp_path)
    interpreter = Interpreter(str(folder), device="cpu")
    interpreter._nnef_module.double()
    expected = interpreter([array.astype(np.float64) for array in inputs.values()])
    tensors = evaluate(folder, inputs)
    assert list(expected) == list(tensors)
    for output, tensor in tensors.items():
        assert tensor.shape == expected[output].shape
        np.testing.assert_allclose(
            np.asarray(tensor.array, float), np.asarray(expected[output], float), rtol=1e-9, atol=1e-9
        )


TORCH: dict[str, tuple[str, Mapping[str, tuple[int, ...]], Callable[..., Any]]] = {
    "prelu": ("prelu(x, a)", {"x": (2, 4, 7), "a": (1, 4)}, lambda x, a: functional.prelu(x, a[0])),
    "selu": ("selu(x)", X, torch.selu),
    "softmax of two axes": ("softmax(x, axes = [1, 2])", X, lambda x: x.flatten(1, 2).softmax(1).reshape(x.shape)),
    "deconv": (
        "deconv(x, w, b, padding = [(1, 1), (0, 0)], stride = [2, 3], dilation = [1, 2])",
        {"x": (2, 4, 5, 3), "w": (3, 4, 3, 2), "b": (1, 3)},
        lambda x, w, b: functional.conv_transpose2d(
            x, w.transpose(0, 1), b[0], stride=(2, 3), padding=(1, 0), dilation=(1, 2)
        ),
    ),
    "deconv in groups": (
        "deconv(x, w, padding = [(0, 0)], stride = [2], groups = 2)",
        {"x": (2, 4, 5), "w": (6, 2, 3)},
        lambda x, w: functional.conv_transpose1d(
            x, w.unflatten(0, (2, 3)).transpose(1, 2).flatten(0, 1), stride=2, groups=2
        ),
    ),
    "deconv to a shape": (
        "deconv(x, w, padding = [(1, 1)], stride = [2], output_shape = [2, 3, 10])",
        {"x": (2, 4, 5), "w": (3, 4, 3)},
        lambda x, w: functional.conv_transpose1d(x, w.transpose(0, 1), stride=2, padding=1, output_padding=1),
    ),
    "separable_deconv": (
        "separable_deconv(x, p, q, padding = [(1, 1)], stride = [2])",
        {"x": (2, 4, 5), "p": (3, 1, 3), "q": (3, 4, 1)},
        lambda x, p, q: functional.conv_transpose1d(
            functional.conv_transpose1d(x, q.transpose(0, 1)), p, stride=2, padding=1, groups=3
        ),
    ),
    "multilinear_upsample": (
        "multilinear_upsample(x, factor = [3, 2])",
        X,
        lambda x: functional.interpolate(x, scale_factor=(3, 2), mode="bilinear"),
    ),
    "multilinear_upsample, aligned": (
        "multilinear_upsample(x, factor = [3, 2], method = 'aligned')",
        X,
        lambda x: functional.interpolate(x, scale_factor=(3, 2), mode="bilinear", align_corners=True),
    ),
    "argmax_reduce": (
        "argmax_reduce(x, axes = [1, 3])",
        X,
        lambda x: x.movedim(3, 2).flatten(1, 2).argmax(1)[:, None, :, None],
    ),
    "pad, reflected evenly": (
        "pad(x, padding = [(0, 0), (2, 1)], border = 'reflect-even')",
        {"x": (2, 4)},
        lambda x: torch.cat([x[:, :2].flip(1), x, x[:, 3:]], 1),
    ),
    "max_pool_with_index": (
        "max_pool(x, size = [1, 1, 3], border = 'ignore', padding = [(0, 0), (0, 0), (1, 1)], stride = [1, 1, 2])",
        {"x": (2, 4, 7)},
        lambda x: functional.max_pool1d(x, 3, 2, 1),
    ),
    "avg_pool with the border": (
        "avg_pool(x, size = [1, 1, 3], border = 'constant', padding = [(0, 0), (0, 0), (1, 1)], stride = [1, 1, 2])",
        {"x": (2, 4, 7)},
        lambda x: functional.avg_pool1d(x, 3, 2, 1),
    ),
    "avg_pool without the border": (
        "avg_pool(x, size = [1, 1, 3], border = 'ignore', padding = [(0, 0), (0, 0), (1, 1)], stride = [1, 1, 2])",
        {"x": (2, 4, 7)},
        lambda x: functional.avg_pool1d(x, 3, 2, 1, count_include_pad=False),
    ),
    "debox, normalised": (
        "debox(x, size = [1, 1, 3], padding = [(0, 0), (0, 0), (0, 0)], stride = [1, 1, 2], normalize = true)",
        {"x": (2, 1, 7)},
        lambda x: functional.conv_transpose1d(x, torch.full((1, 1, 3), 1 / 3, dtype=x.dtype), stride=2),
    ),
    "softabs": ("softabs(x, epsilon = 0.25)", X, lambda x: (x * x + 0.25).sqrt()),
    "square": ("square(x)", X, torch.square),
    "recip": ("recip(x)", X, torch.reciprocal),
}  # fmt: skip


@pytest.mark.parametrize("name", TORCH)
def test_it_computes_what_pytorch_does(name: str, tmp_path: Path) -> None:
    statement, shapes, function = TORCH[name]
    inputs = numbers(shapes)
    expected = function(*(torch.from_numpy(array).double() for array in inputs.values())).numpy()
    actual = evaluate(folder_of(statement, shapes, tmp_path), inputs)["r"].array
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=1e-6 if name == "selu" else 1e-9, atol=1e-9)


BY_HAND = frozenset(
    "argmax_pool constant desample external linear_quantize logarithmic_quantize max_pool_with_index "
    "min_max_linear_quantize round sample update variable zero_point_linear_quantize".split()
)
"""Operators that tests/unit/dialect checks with values computed by hand: no reference computes them rightly."""
REGIONS = frozenset("avg_roi_align avg_roi_pool max_roi_align max_roi_pool roi_resample".split())
"""Operators without a definition: no engine runs them, and none of the tools agrees with the text on their shapes."""


def test_every_operator_of_the_standard_is_tested() -> None:
    statements = [statement for statement, *_ in (*AGAINST_KHRONOS.values(), *TORCH.values())]
    tested = {statement.partition("(")[0].partition("<")[0] for statement in statements}
    assert set(known_operators("khronos")) - tested == BY_HAND | REGIONS
