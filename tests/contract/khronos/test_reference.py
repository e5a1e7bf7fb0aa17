"""The Khronos oracles against PyTorch, on one statement each: what judges exports must itself be right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from t2n_core.engine.khronos.engine import KhronosEngine

RNG = np.random.default_rng(61)


def made(*shape: int) -> Tensor:
    return torch.from_numpy(RNG.standard_normal(shape).astype(np.float32))


X, ROW, FLAT = made(2, 4, 5, 7), made(2, 4, 7), made(3, 5)
OTHER, COLUMN, SLOPE = made(2, 4, 5, 7), made(1, 4), made(1, 4, 1, 1)
KERNEL, GROUPED, UP, LINE, BIAS = made(6, 4, 3, 2), made(6, 2, 3, 2), made(4, 3, 3, 2), made(6, 4, 3), made(1, 6)
A, B, MATRIX = made(2, 3, 4, 5), made(2, 3, 5, 6), made(6, 5)
SPREAD = COLUMN.abs()
POSITIVE, PROBABLE = X.abs() + 0.1, X.tanh() * 0.9
INDEX = torch.tensor([[2, 0, 3], [1, 1, 0]])

Case = tuple[str, dict[str, Tensor], Callable[[], Tensor], bool]


def edge(x: Tensor, mode: str, *amounts: int) -> Tensor:
    return F.pad(x, list(amounts), mode=mode)


def pooled(x: Tensor, **options: Any) -> Tensor:
    return F.avg_pool2d(x, (3, 2), (2, 1), padding=(1, 1), **options)


PAD = "padding = [(1, 1), (1, 0)]"
POOL = "size = [1, 1, 3, 2], stride = [1, 1, 2, 1], padding = [(0, 0), (0, 0), (1, 1), (1, 1)]"
CASES: dict[str, Case] = {
    # name: statement with result y, tensors, reference, whether the C++ executor judges too
    "conv": (f"conv(x, w, b, {PAD}, stride = [2, 1])", {"x": X, "w": KERNEL, "b": BIAS},
             lambda: F.conv2d(F.pad(X, (1, 0, 1, 1)), KERNEL, BIAS[0], stride=(2, 1)), True),
    "conv groups": (f"conv(x, w, 0.0, {PAD}, dilation = [1, 2], groups = 2)", {"x": X, "w": GROUPED},
                    lambda: F.conv2d(F.pad(X, (1, 0, 1, 1)), GROUPED, dilation=(1, 2), groups=2), True),
    "conv depthwise": ("conv(x, w, padding = [(0, 0), (0, 0)], groups = 0)", {"x": X, "w": GROUPED[:4, :1]},
                       lambda: F.conv2d(X, GROUPED[:4, :1], groups=4), True),
    "conv line": ("conv(x, w, padding = [(2, 1)])", {"x": ROW, "w": LINE},
                  lambda: F.conv1d(F.pad(ROW, (2, 1)), LINE), True),
    "conv replicate": (f"conv(x, w, {PAD}, border = 'replicate')", {"x": X, "w": KERNEL},
                       lambda: F.conv2d(edge(X, "replicate", 1, 0, 1, 1), KERNEL), False),
    "conv reflect": (f"conv(x, w, {PAD}, border = 'reflect')", {"x": X, "w": KERNEL},
                     lambda: F.conv2d(edge(X, "reflect", 1, 0, 1, 1), KERNEL), False),
    "deconv": ("deconv(x, w, padding = [(1, 1), (0, 0)], stride = [2, 1])", {"x": X, "w": UP},
               lambda: F.conv_transpose2d(X, UP, stride=(2, 1), padding=(1, 0)), True),
    "deconv groups": ("deconv(x, w, padding = [(0, 0), (0, 0)], groups = 2)", {"x": X, "w": UP},
                      lambda: F.conv_transpose2d(X, UP, groups=2), True),
    "deconv output": ("deconv(x, w, padding = [(1, 1), (0, 0)], stride = [2, 3], output_shape = [2, 3, 10, 20])",
                      {"x": X, "w": UP},
                      lambda: F.conv_transpose2d(X, UP, stride=(2, 3), padding=(1, 0), output_padding=(1, 0)), True),
    "max_pool": (f"max_pool(x, {POOL}, border = 'ignore')", {"x": X},
                 lambda: F.max_pool2d(F.pad(X, (1, 1, 1, 1), value=-np.inf), (3, 2), (2, 1)), True),
    "avg_pool": (f"avg_pool(x, {POOL})", {"x": X}, lambda: pooled(X), True),
    "avg_pool ignore": (f"avg_pool(x, {POOL}, border = 'ignore')", {"x": X},
                        lambda: pooled(X, count_include_pad=False), True),
    "matmul": ("matmul(a, b)", {"a": A, "b": B}, lambda: A @ B, True),
    "matmul transposed": ("matmul(a, b, transposeA = true, transposeB = true)",
                          {"a": A.mT.contiguous(), "b": B.mT.contiguous()}, lambda: A @ B, True),
    "matmul broadcast": ("matmul(a, b)", {"a": A[:1], "b": B[:, :1]}, lambda: A[:1] @ B[:, :1], False),
    "linear": ("linear(x, w, b)", {"x": FLAT, "w": MATRIX, "b": BIAS}, lambda: F.linear(FLAT, MATRIX, BIAS[0]), True),
    "leading axes": ("mul(x, c)", {"x": X, "c": COLUMN}, lambda: X * COLUMN[..., None, None], True),
    "select": ("lt(x, o); y = select(c, 0.5, x)", {"x": X, "o": OTHER}, lambda: torch.where(X < OTHER, 0.5, X), True),
    "prelu": ("prelu(x, s)", {"x": X, "s": SLOPE}, lambda: F.prelu(X, SLOPE.flatten()), True),
    "batch_normalization": ("batch_normalization(x, m, v, m, v, epsilon = 0.01)",
                            {"x": X, "m": COLUMN, "v": SPREAD},
                            lambda: F.batch_norm(X, COLUMN[0], SPREAD[0], SPREAD[0], COLUMN[0], eps=0.01), True),
    "softmax": ("softmax(x, axes = [3])", {"x": X}, lambda: X.softmax(3), True),
    "elu": ("elu(x, alpha = 0.3)", {"x": X}, lambda: F.elu(X, 0.3), True),
    "selu": ("selu(x)", {"x": X}, lambda: F.selu(X), True),
    "silu": ("silu(x)", {"x": X}, lambda: F.silu(X), True),
    "gelu": ("gelu(x)", {"x": X}, lambda: F.gelu(X), False),
    "pad": ("pad(x, padding = [(0, 1), (2, 0), (0, 0), (1, 3)], value = -2.0)", {"x": X},
            lambda: F.pad(X, (1, 3, 0, 0, 2, 0, 0, 1), value=-2.0), True),
    "pad reflect": ("pad(x, padding = [(0, 0), (0, 0), (3, 1), (0, 2)], border = 'reflect')", {"x": X},
                    lambda: edge(X, "reflect", 0, 2, 3, 1), True),
    "gather": ("gather(x, i, axis = 1)", {"x": X, "i": INDEX}, lambda: X[:, INDEX], True),
    "slice": ("slice(x, axes = [1, 3], begin = [1, 5], end = [3, 1], stride = [1, -2])", {"x": X},
              lambda: X[:, 1:3].flip(3)[..., 1:5:2], True),
    "tile": ("tile(x, repeats = [1, 2, 1, 3])", {"x": X}, lambda: X.repeat(1, 2, 1, 3), True),
    "transpose": ("transpose(x, axes = [2, 0, 3, 1])", {"x": X}, lambda: X.permute(2, 0, 3, 1), True),
    "reshape": ("reshape(x, shape = [0, -1])", {"x": X}, lambda: X.reshape(2, -1), True),
    "reshape inside": ("reshape(x, shape = [20], axis_start = 1, axis_count = 2)", {"x": X},
                       lambda: X.reshape(2, 20, 7), True),
    "mean": ("mean_reduce(x, axes = [1, 3])", {"x": X}, lambda: X.mean((1, 3), keepdim=True), True),
    "sum": ("sum_reduce(x, axes = [2])", {"x": X}, lambda: X.sum(2, keepdim=True), True),
    "argmax": ("argmax_reduce(x, axes = [3])", {"x": X}, lambda: X.argmax(3, keepdim=True), True),
    "upsample": ("multilinear_upsample(x, factor = [2, 2], method = 'symmetric')", {"x": X},
                 lambda: F.interpolate(X, scale_factor=2, mode="bilinear", align_corners=False), True),
    "upsample aligned": ("multilinear_upsample(x, factor = [2, 3], method = 'aligned')", {"x": X},
                         lambda: F.interpolate(X, scale_factor=(2, 3), mode="bilinear", align_corners=True), False),
    "nearest": ("nearest_upsample(x, factor = [2, 3])", {"x": X}, lambda: F.interpolate(X, scale_factor=(2, 3)), True),
    "local response": ("local_response_normalization(x, size = [1, 3, 1, 1], alpha = 0.2, beta = 0.7, bias = 1.5)",
                       {"x": X}, lambda: F.local_response_norm(X, 3, 0.2, 0.7, 1.5), True),
    "l2": ("l2_normalization(x, axes = [1])", {"x": X}, lambda: F.normalize(X, dim=1), True),
}  # fmt: skip
for _name in "exp sin cos tan sinh cosh tanh asin acos atan asinh atanh abs sign neg floor ceil relu sigmoid".split():
    CASES[_name] = (f"{_name}(x)", {"x": PROBABLE}, lambda n=_name: getattr(torch, n)(PROBABLE), True)
for _name in ("log", "log2", "sqrt", "rsqrt"):
    CASES[_name] = (f"{_name}(x)", {"x": POSITIVE}, lambda n=_name: getattr(torch, n)(POSITIVE), True)


@pytest.fixture(scope="module")
def engine() -> Iterator[KhronosEngine]:
    engine = KhronosEngine()
    yield engine
    engine.close()


@pytest.mark.parametrize("name", CASES)
def test_oracles(name: str, engine: KhronosEngine, tmp_path: Path) -> None:
    statement, tensors, reference, both = CASES[name]
    kinds = {n: "scalar" if t.is_floating_point() else "integer" for n, t in tensors.items()}
    body = "".join(f"  {n} = external<{kinds[n]}>(shape = {list(t.shape)});\n" for n, t in tensors.items())
    inputs = ", ".join(tensors)
    first = "c" if "; y =" in statement else "y"
    text = f"version 1.0;\n\ngraph g({inputs}) -> (y)\n{{\n{body}  {first} = {statement};\n}}\n"
    (tmp_path / "graph.nnef").write_text(text)
    reply = engine.run(tmp_path, [[t.numpy() for t in tensors.values()]])
    assert reply.status == "ok", reply.message
    (got,) = reply.outputs[0]
    want = reference().numpy()
    assert got.dtype.kind == want.dtype.kind
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6)
    assert (reply.facts["judged_by"] == ["interpreter", "session"]) == both, reply.facts["session"]
