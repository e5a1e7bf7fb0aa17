"""The hazards of the spec table against real engines, in both directions.

An operation is refused for a version exactly if that version computes it wrongly, refuses it or dies of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from t2n_core.nnef.archive import write_archive
from t2n_core.nnef.graph import Graph
from t2n_core.nnef.legality import check_graph
from t2n_core.nnef.sizes.dims import FloorDiv, symbol
from t2n_core.nnef.spec import spec_for
from tests.releases import NEWEST, SCANNED

VERSIONS = ["0.19.15", "0.20.22", "0.21.6", "0.21.8", "0.21.10", "0.21.19", "0.22.4", "0.23.0", NEWEST, *SCANNED]
Array: TypeAlias = NDArray[Any]
Case: TypeAlias = tuple[Graph, Array, Array]
"""A graph of one input, the input, and what the standard says comes out."""

RNG = np.random.default_rng(19)
LINE = RNG.standard_normal((2, 3, 5)).astype(np.float32)
CASES: dict[str, Callable[[Any], Case]] = {}


CAUTIOUS = {
    # aborts for some shapes in every version, for this one not in all
    "conv_cropping": frozenset(VERSIONS),
    # wrong where the axes in front or behind have more than 32 elements
    **dict.fromkeys(("mul_second_stretched_between", "div_second_stretched_between"), frozenset({"0.21.6"})),
    # wrong where the engine takes a kernel for the pair, which depends on sizes
    **dict.fromkeys(
        (f"sub_first_stretched_{where}" for where in ("in_front", "around", "between")),
        frozenset({"0.21.8", "0.21.10"}),
    ),
}
"""Case -> versions that are refused although they get it right."""


def case(make: Callable[[Any], Case]) -> Callable[[Any], Case]:
    CASES[make.__name__] = make
    return make


def one(build: Any, x: Array, operator: str, want: Array, /, parameter: str = "input", **arguments: Any) -> Case:
    """A graph of one statement on one input."""
    source = build.input("x", x.shape, x.dtype.str)
    y = build.op(operator, "y", want.shape, want.dtype.str, **{parameter: source}, **arguments)
    return build.outputs(y), x, want


def windows(x: Array, border: float, before: int = 1) -> Array:
    """All windows of two along the last axis of `x`, padded in front."""
    padded = np.concatenate([np.full((*x.shape[:-1], before), border, x.dtype), x], axis=-1)
    return np.lib.stride_tricks.sliding_window_view(padded, 2, axis=-1)


FRONT = {"size": [1, 1, 2], "padding": [(0, 0), (0, 0), (1, 0)]}
INSIDE = {"size": [1, 1, 2], "padding": [(0, 0), (0, 0), (0, 0)]}


@case
def box_sum(build: Any) -> Case:
    return one(build, LINE, "box", windows(LINE, 0.0).sum(-1), **FRONT)


@case
def box_mean_padded(build: Any) -> Case:
    return one(build, LINE, "box", windows(LINE, 0.0).mean(-1), normalize=True, **FRONT)


@case
def box_mean_inside(build: Any) -> Case:
    return one(build, LINE, "box", windows(LINE, 0.0)[:, :, 1:].mean(-1), normalize=True, **INSIDE)


@case
def avg_pool_padded(build: Any) -> Case:
    return one(build, LINE, "avg_pool", windows(LINE, 0.0).mean(-1), **FRONT)


@case
def avg_pool_ignoring(build: Any) -> Case:
    return one(build, LINE, "avg_pool", np.nanmean(windows(LINE, np.nan), -1), border="ignore", **FRONT)


@case
def rms_pool_padded(build: Any) -> Case:
    return one(build, LINE, "rms_pool", np.sqrt((windows(LINE, 0.0) ** 2).mean(-1)), **FRONT)


@case
def local_mean(build: Any) -> Case:
    want = windows(np.concatenate([LINE, np.zeros((2, 3, 1), np.float32)], -1), 0.0, before=0).mean(-1)
    return one(build, LINE, "local_mean_normalization", LINE - want, size=[1, 1, 2])


@case
def mean_over_channels(build: Any) -> Case:
    want = np.lib.stride_tricks.sliding_window_view(LINE, 3, axis=1).mean(-1)
    return one(build, LINE, "avg_pool", want, size=[1, 3, 1], padding=[(0, 0)] * 3, border="ignore")


@case
def max_over_channels(build: Any) -> Case:
    want = LINE.max(1, keepdims=True)
    return one(build, LINE, "max_pool", want, size=[1, 3, 1], padding=[(0, 0)] * 3, border="ignore")


@case
def max_pool_zero_border(build: Any) -> Case:
    x = -np.abs(LINE)
    return one(build, x, "max_pool", windows(x, 0.0).max(-1), **FRONT)


@case
def max_pool_ignoring(build: Any) -> Case:
    return one(build, LINE, "max_pool", windows(LINE, -np.inf).max(-1), border="ignore", **FRONT)


@case
def max_pool_cropping(build: Any) -> Case:
    padding = [(0, 0), (0, 0), (-1, 0)]
    want = windows(LINE[..., 1:], 0.0, before=0).max(-1)
    return one(build, LINE, "max_pool", want, size=[1, 1, 2], padding=padding, border="ignore")


@case
def max_pool_reflect(build: Any) -> Case:
    want = np.pad(LINE, [(0, 0), (0, 0), (1, 0)], "reflect")
    return one(build, LINE, "max_pool", windows(want, 0.0, 0).max(-1), border="reflect", **FRONT)


@case
def debox_mean(build: Any) -> Case:
    want = np.zeros((2, 3, 10), np.float32)
    want[..., ::2] = want[..., 1::2] = LINE / 2
    return one(build, LINE, "debox", want, stride=[1, 1, 2], normalize=True, **INSIDE)


def convolution(build: Any, padded: Array, **arguments: Any) -> Case:
    kernel = np.random.default_rng(5).standard_normal((4, 3, 2)).astype(np.float32)
    want = np.einsum("bitk,oik->bot", np.lib.stride_tricks.sliding_window_view(padded, 2, axis=-1), kernel)
    x = build.input("x", LINE.shape)
    w = build.variable("w", kernel)
    y = build.op("conv", "y", want.shape, input=x, filter=w, **arguments)
    return build.outputs(y), LINE, want


@case
def conv_zero_border(build: Any) -> Case:
    return convolution(build, np.pad(LINE, [(0, 0), (0, 0), (1, 0)]), padding=[(1, 0)])


@case
def conv_cropping(build: Any) -> Case:
    x = np.random.default_rng(6).standard_normal((1, 3, 8, 7)).astype(np.float32)
    kernel = np.random.default_rng(5).standard_normal((4, 3, 3, 3)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x[:, :, 1:-1], (3, 3), axis=(2, 3))
    want = np.einsum("bihwkl,oikl->bohw", windows, kernel)
    source, w = build.input("x", x.shape), build.variable("w", kernel)
    y = build.op("conv", "y", want.shape, input=source, filter=w, padding=[(-1, -1), (0, 0)])
    return build.outputs(y), x, want


def strided(build: Any, cut: bool) -> Case:
    """Windows of three, every second one, along a dynamic axis of 18, or of what remains of it when it is cut."""
    length = symbol("T")
    x = np.random.default_rng(7).standard_normal((2, 3, 18)).astype(np.float32)
    kernel = np.random.default_rng(5).standard_normal((4, 3, 3)).astype(np.float32)
    every = np.lib.stride_tricks.sliding_window_view(x, 3, axis=-1)[:, :, ::2]
    want = np.einsum("bitk,oik->bot", every, kernel)
    source = build.input("x", (2, 3, length))
    build.graph.extensions.append("tract_symbol T")
    w = build.variable("w", kernel)
    count = FloorDiv(length - 3, 2) + 1
    if cut:
        used = 2 * FloorDiv(length - 3, 2) + 3
        size = build.op("tract_core_shape_of", "sizes", [3], "i8", input=source)
        length_slice = build.op("slice", "size", [1], "i8", input=size, axes=[0], begin=[2], end=[3])
        build.op("squeeze", "T", [], "i8", input=length_slice, axes=[0])
        source = build.op("slice", "used", (2, 3, used), input=source, axes=[2], begin=[0], end=[used])
    y = build.op("conv", "y", (2, 4, count), input=source, filter=w, padding=[(0, 0)], stride=[2])
    return build.outputs(y), x, want


@case
def conv_strided_rest(build: Any) -> Case:
    return strided(build, cut=False)


@case
def conv_strided_cut(build: Any) -> Case:
    return strided(build, cut=True)


@case
def conv_ignoring(build: Any) -> Case:
    return convolution(build, np.pad(LINE, [(0, 0), (0, 0), (1, 0)]), padding=[(1, 0)], border="ignore")


@case
def conv_replicate(build: Any) -> Case:
    return convolution(build, np.pad(LINE, [(0, 0), (0, 0), (1, 0)], "edge"), padding=[(1, 0)], border="replicate")


def deconvolution(build: Any, layout: str) -> Case:
    kernel = np.random.default_rng(5).standard_normal((3, 4, 2)).astype(np.float32)
    want = np.zeros((2, 4, 6), np.float32)
    for k in range(2):
        want[..., k : k + 5] += np.einsum("bit,io->bot", LINE, kernel[..., k])
    x = build.input("x", LINE.shape)
    w = build.variable("w", kernel if layout == "khronos" else np.ascontiguousarray(kernel.swapaxes(0, 1)))
    y = build.op("deconv", "y", want.shape, input=x, filter=w, padding=[(0, 0)])
    return build.outputs(y), LINE, want


@case
def deconv_khronos_filter(build: Any) -> Case:
    return deconvolution(build, "khronos")


@case
def deconv_tract_filter(build: Any) -> Case:
    return deconvolution(build, "tract")


for _border, _mode in {"constant": "constant", "reflect": "reflect", "replicate": "edge", "ignore": "constant"}.items():
    CASES[f"pad_{_border}"] = lambda build, border=_border, mode=_mode: one(
        build,
        LINE,
        "pad",
        np.pad(LINE, [(0, 0), (0, 0), (1, 2)], mode),
        padding=[(0, 0), (0, 0), (1, 2)],
        border=border,
    )


@case
def pad_cropping(build: Any) -> Case:
    return one(build, LINE, "pad", LINE[..., 1:], padding=[(0, 0), (0, 0), (-1, 0)])


SLICES: dict[str, tuple[list[int], list[int], list[int], list[int], Any]] = {
    "plain": ([1, 2], [1, 0], [3, 4], [], np.s_[:, 1:3, 0:4]),
    "stride": ([2], [1], [5], [2], np.s_[..., 1:5:2]),
    "to_the_end": ([2], [1], [0], [], np.s_[..., 1:]),
    "negative_end": ([1, 2], [1, 1], [-1, -2], [], np.s_[:, 1:-1, 1:-2]),
    "negative_begin": ([2], [-3], [-1], [], np.s_[..., -3:-1]),
    "backwards": ([2], [4], [-6], [-1], np.s_[..., ::-1]),
    "beyond": ([2], [1], [9], [], np.s_[..., 1:9]),
}
for _name, (_axes, _begin, _end, _stride, _index) in SLICES.items():
    CASES[f"slice_{_name}"] = lambda build, a=_axes, b=_begin, e=_end, s=_stride, i=_index: one(
        build, LINE, "slice", np.ascontiguousarray(LINE[i]), axes=a, begin=b, end=e, **({"stride": s} if s else {})
    )


@case
def reshape_to_rank_0(build: Any) -> Case:
    x = np.full((1, 1), 2.5, np.float32)
    return one(build, x, "reshape", x.reshape(()), shape=[])


@case
def softplus(build: Any) -> Case:
    x = np.array([-200.0, -1.0, 0.5, 200.0], np.float32)
    return one(build, x, "softplus", np.logaddexp(x, 0).astype(np.float32), parameter="x")


@case
def round_halves(build: Any) -> Case:
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.4], np.float32)
    return one(build, x, "round", np.floor(x + np.float32(0.5)), parameter="x")


NUMBERS = np.array([3, -4, 5], np.int64)
for _dtype in ("i8", "i4", "i1"):
    CASES[f"add_integer_literal_{_dtype}"] = lambda build, d=_dtype: one(
        build, NUMBERS.astype(d), "add", (NUMBERS + 3).astype(d), parameter="x", y=3
    )


@case
def multiply_by_integer_literal(build: Any) -> Case:
    return one(build, LINE, "mul", LINE * 4, parameter="x", y=4)


@case
def multiply_by_literal(build: Any) -> Case:
    return one(build, LINE, "mul", LINE * np.float32(-4), parameter="x", y=-4.0)


BLOCK = np.random.default_rng(23).standard_normal((2, 7, 33, 65)).astype(np.float32)
_FUNCTIONS: dict[str, Callable[..., Array]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
_STRETCHED = {"behind": (2, 7, 1, 1), "in_front": (1, 1, 33, 65), "around": (1, 1, 33, 1), "between": (2, 1, 1, 65)}


def combination(build: Any, operator: str, shape: tuple[int, ...], first: bool) -> Case:
    """A block with an operand that is stretched to it, which stands first or second."""
    other = np.random.default_rng(29).uniform(0.5, 2, shape).astype(np.float32)
    x, y = build.input("x", BLOCK.shape), build.variable("w", other)
    left, right = ((y, x), (other, BLOCK)) if first else ((x, y), (BLOCK, other))
    result = build.op(operator, "y", BLOCK.shape, x=left[0], y=left[1])
    return build.outputs(result), BLOCK, _FUNCTIONS[operator](*right)


for _operator in _FUNCTIONS:
    for _where, _shape in _STRETCHED.items():
        for _first in (False, True):
            _side = "first" if _first else "second"
            CASES[f"{_operator}_{_side}_stretched_{_where}"] = lambda build, o=_operator, s=_shape, f=_first: (
                combination(build, o, s, f)
            )


@case
def and_literal(build: Any) -> Case:
    x = np.array([True, False, True])
    return one(build, x, "and", x, parameter="x", y=True)


def batched(build: Any, ours: tuple[int, ...], constant: tuple[int, ...]) -> Case:
    x = np.random.default_rng(2).standard_normal((*ours, 3, 4)).astype(np.float32)
    w = np.random.default_rng(3).standard_normal((*constant, 4, 6)).astype(np.float32)
    want = x @ w
    a, b = build.input("x", x.shape), build.variable("w", w)
    return build.outputs(build.op("matmul", "y", want.shape, A=a, B=b)), x, want


for _name, (_ours, _constant) in {
    "alike": ((2, 5), (2, 5)),
    "narrow_constant": ((2, 5), (1, 1)),
    "wide_constant": ((1, 1), (2, 5)),
    "crossed": ((1, 5), (2, 1)),
}.items():
    CASES[f"matmul_batch_{_name}"] = lambda build, o=_ours, c=_constant: batched(build, o, c)


def product(build: Any, dtype: str, acc: str = "") -> Case:
    x = np.random.default_rng(2).integers(0, 4, (2, 3)).astype(dtype)
    w = np.random.default_rng(3).integers(0, 4, (3, 4)).astype(dtype)
    a, b = build.input("x", x.shape, dtype), build.variable("w", w)
    want = x @ w
    if acc:
        want = want.astype(f"{acc[0]}{int(acc[1:]) // 8}")  # the result has the type of the accumulator
        y = build.op("tract_core_einsum", "y", (2, 4), want.dtype.str, inputs=[a, b], expr="mk,kn->mn", acc=acc)
    else:
        y = build.op("matmul", "y", (2, 4), dtype, A=a, B=b)
    return build.outputs(y), x, want


for _dtype in ("f2", "f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"):
    CASES[f"matmul_{_dtype}"] = lambda build, d=_dtype: product(build, d)
for _dtype, _acc in {"f4": "f32", "f2": "f32", "i4": "i32", "i8": "i64", "u1": "u8"}.items():
    CASES[f"einsum_{_dtype}"] = lambda build, d=_dtype, a=_acc: product(build, d, a)


@case
def upsample_constant(build: Any) -> Case:
    want = LINE.repeat(2, -1)  # never reached: refused or absent everywhere
    return one(build, LINE, "multilinear_upsample", want, factor=[2], border="constant")


@case
def upsample_replicate(build: Any) -> Case:
    padded = np.pad(LINE, [(0, 0), (0, 0), (1, 1)], "edge")
    want = np.empty((2, 3, 10), np.float32)
    want[..., ::2] = 0.25 * padded[..., :-2] + 0.75 * LINE
    want[..., 1::2] = 0.75 * LINE + 0.25 * padded[..., 2:]
    return one(build, LINE, "multilinear_upsample", want, factor=[2], method="symmetric", border="replicate")


@pytest.mark.parametrize("name", sorted(CASES))
@pytest.mark.parametrize("version", VERSIONS)
def test_refused_exactly_if_wrong(version: str, name: str, build: Any, tract_engine: Any, tmp_path: Path) -> None:
    spec = spec_for("tract", version)
    graph, x, want = CASES[name](build)
    problems = [problem.message for problem in check_graph(graph, spec)]
    operator = graph.operations[-1].name
    if operator not in set(spec.names()):
        assert any("has no operator" in problem for problem in problems)
        return
    reply = tract_engine(version).run(write_archive(graph, tmp_path / "graph", spec=spec), [[x]])
    right = False
    if reply.status == "ok":
        (got,) = reply.outputs[0]
        same_kind = got.dtype == want.dtype and got.shape == want.shape
        right = same_kind and np.allclose(got, want, rtol=2e-3 if want.dtype == np.float16 else 1e-4, atol=1e-5)
    if right:
        assert bool(problems) == (version in CAUTIOUS.get(name, ())), "refused, and right"
    else:
        assert problems, f"{version} answers {reply.status}: {reply.message[-300:]}"
