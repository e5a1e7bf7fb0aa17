"""Statements that releases compute wrongly, refuse or die of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from conformance.lab.plant.faults.graphs import Draft, Shape

FLOAT64 = "float64"


@dataclass(frozen=True, slots=True)
class Plant:
    """One kind of statement in one release."""

    name: str
    make: Callable[[Draft], str]
    release: str
    oracle: str
    """A release that is right, or `float64`."""
    elements: int = 64
    """Elements that are enough to show it: the bad kernel may need more than others."""

    @property
    def operator(self) -> str:
        return self.name.partition(" ")[0]


def _wide(draft: Draft) -> tuple[str, Shape]:
    x = draft.pick(lambda shape: len(shape) == 3 and min(shape) > 1 and shape[-1] >= 34) or draft.start
    return x, draft.shapes[x]


def _ones(shape: Shape, *axes: int) -> list[int]:
    return [1 if axis in axes else extent for axis, extent in enumerate(shape)]


def _positive(draft: Draft, x: str) -> str:
    shape = draft.shapes[x]
    return draft.call("exp", shape, x=draft.call("tanh", shape, x=x))


def _sub(draft: Draft) -> str:
    x, shape = _wide(draft)
    return draft.call("sub", shape, x=draft.call("mean_reduce", _ones(shape, 2), input=x, axes=[2]), y=x)


def _mixed(operator: str) -> Callable[[Draft], str]:
    def make(draft: Draft) -> str:
        x, shape = _wide(draft)
        mean = draft.call("mean_reduce", _ones(shape, 0, 2), input=x, axes=[0, 2])
        return draft.call(operator, shape, x=x, y=draft.call("exp", draft.shapes[mean], x=mean))

    return make


def _slice_beyond(draft: Draft) -> str:
    x, shape = _wide(draft)
    cut = [shape[0], shape[1] - 1, shape[2]]
    return draft.call("slice", cut, input=x, axes=[1], begin=[1], end=[shape[1] + 5], stride=[1])


def _slice_negative(draft: Draft) -> str:
    x, shape = _wide(draft)
    return draft.call("slice", [*shape[:2], 2], input=x, axes=[2], begin=[-2], end=[0], stride=[1])


def _windows(operator: str, border: str, pads: int, **more: bool) -> Callable[[Draft], str]:
    def make(draft: Draft) -> str:
        x, shape = _wide(draft)
        size = 3 if pads else 2
        length = shape[2] + 2 * pads - size + 1
        geometry = {"size": [1, 1, size], "padding": [(0, 0), (0, 0), (pads, pads)]}
        steps = {"stride": [1, 1, 1], "dilation": [1, 1, 1]}
        source = _positive(draft, x)
        return draft.call(operator, [*shape[:2], length], input=source, border=border, **geometry, **steps, **more)

    return make


def _softplus(draft: Draft) -> str:
    x, shape = _wide(draft)
    near = draft.call("add", shape, x=draft.call("tanh", shape, x=x), y=150.0)
    return draft.call("softplus", shape, x=near)


def _round(draft: Draft) -> str:
    x, shape = _wide(draft)
    half = draft.call("sub", shape, x=draft.call("floor", shape, x=x), y=1.5)
    return draft.call("round", shape, x=half)


def _empty_sum(draft: Draft) -> str:
    x, shape = _wide(draft)
    none = draft.call("slice", [shape[0], 0, shape[2]], input=x, axes=[1], begin=[1], end=[1], stride=[1])
    return draft.call("sum_reduce", _ones(shape, 1), input=none, axes=[1])


def _batched(draft: Draft) -> str:
    x, shape = _wide(draft)
    mean = draft.call("mean_reduce", _ones(shape, 0), input=x, axes=[0])
    w = draft.weight((shape[0], 5, shape[1]))
    return draft.call("matmul", [shape[0], 5, shape[2]], A=w, B=mean, transposeA=False, transposeB=False)


def _integers(draft: Draft) -> str:
    x, shape = _wide(draft)
    integers = draft.call("tract_core_cast", shape, input=x, to="i64")
    square = [shape[0], shape[1], shape[1]]
    product = draft.call("matmul", square, A=integers, B=integers, transposeA=False, transposeB=True)
    return draft.call("tract_core_cast", square, input=product, to="f32")


_RIGHT = "0.21.13"
PLANTS: tuple[Plant, ...] = (
    Plant("sub of fewer elements", _sub, "0.21.8", _RIGHT),
    Plant("sub of fewer elements", _sub, "0.21.10", _RIGHT),
    Plant("mul stretched between", _mixed("mul"), "0.21.6", _RIGHT, 160),
    Plant("div stretched between", _mixed("div"), "0.21.6", _RIGHT, 160),
    Plant("slice beyond its axis", _slice_beyond, "0.21.5", _RIGHT),
    Plant("slice beyond its axis", _slice_beyond, "0.23.9", "0.22.4"),
    Plant("slice from a negative place", _slice_negative, "0.23.9", "0.22.4"),
    Plant("avg_pool over zeros", _windows("avg_pool", "constant", 1), "0.22.4", "0.23.9"),
    Plant("avg_pool over zeros", _windows("avg_pool", "constant", 1), "0.20.22", "0.23.9"),
    Plant("box that sums", _windows("box", "constant", 0, normalize=False), "0.22.4", "0.23.9"),
    Plant("max_pool over copies", _windows("max_pool", "replicate", 1), "0.23.9", FLOAT64),
    Plant("max_pool over copies", _windows("max_pool", "replicate", 1), "0.21.19", FLOAT64),
    Plant("softplus of large numbers", _softplus, "0.23.9", FLOAT64),
    Plant("round of halves", _round, "0.23.9", FLOAT64),
    Plant("sum_reduce of nothing", _empty_sum, "0.21.5", _RIGHT),
    Plant("sum_reduce of nothing", _empty_sum, "0.19.15", _RIGHT),
    Plant("matmul of a constant batch", _batched, "0.19.15", _RIGHT),
    Plant("matmul of integers", _integers, "0.23.9", FLOAT64),
)
