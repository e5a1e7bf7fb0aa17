"""One line adds a case: a function of PyTorch, its inputs, and what is special about it.

    CASES = [
        case("hardshrink", F.hardshrink, randn(2, 3), lambd=0.3),
        case("last step", lambda x: x[:, -1], randn(2, 5, 3)).dynamic({0: {1: "T"}}),
        case("conv", build(nn.Conv2d, 3, 4, 3), randn(1, 3, 7, 8)),
        case("no complex", torch.view_as_complex, randn(3, 2)).refused("complex"),
    ]

Inputs are made when the case runs, from a seed that is the hash of its name. `randn(...)` and its like are inputs of
the model, also inside lists; `weight(randn(...))` is a constant of it; anything else is passed as it stands.
"""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from t2n_core import ModelExport
from t2n_core.torch_graph.compat.operators import find_packet

Axes = Mapping[int, Mapping[int, str]]


@dataclass(frozen=True, eq=False)
class Lazy:
    """A tensor (or module) that is made later, from a seed."""

    make: Callable[[], Any]
    constant: bool = False


def randn(*shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> Lazy:
    """Normal numbers, signed."""
    return Lazy(lambda: (torch.randn(shape) * scale).to(dtype))


def uniform(low: float, high: float, *shape: int, dtype: torch.dtype = torch.float32) -> Lazy:
    return Lazy(lambda: (torch.rand(shape) * (high - low) + low).to(dtype))


def randint(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> Lazy:
    """Integers from `low` to below `high`."""
    return Lazy(lambda: torch.randint(low, high, shape).to(dtype))


def bools(*shape: int) -> Lazy:
    return Lazy(lambda: torch.rand(shape) < 0.5)


def tensor(data: Any, dtype: torch.dtype | None = None) -> Lazy:
    """Just these numbers."""
    return Lazy(lambda: torch.tensor(data, dtype=dtype))


def corners(dtype: torch.dtype = torch.float32) -> Lazy:
    """Zeros of both signs, halves, large and small numbers, infinities and NaN."""
    positive = [0.0, 0.5, 1.0, 1.5, 2.5, 1e-4, 88.0, 104.0, 3e4, float("inf")]
    return Lazy(lambda: torch.tensor([*positive, *(-x for x in positive), float("nan")], dtype=dtype))


def weight(value: Lazy) -> Lazy:
    """A tensor that belongs to the model."""
    return replace(value, constant=True)


def build(module: Callable[..., torch.nn.Module], *args: Any, **kwargs: Any) -> Lazy:
    """A module in evaluation mode, built when the case runs."""
    return Lazy(lambda: module(*args, **kwargs).eval(), constant=True)


@dataclass(frozen=True, eq=False)
class Case:
    """One call of PyTorch to export and to compare."""

    name: str
    function: Any
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    axes: Axes = field(default_factory=dict)
    level: str = "approximate"
    refusal: str = ""
    """Part of the message of the error that the export must end with."""
    operator: str = ""
    """The operator of PyTorch that the case is about, where some supported releases lack it."""
    keep_nan: bool = False
    """An option of the target."""
    refused_before: str = ""
    """The first version that can do it; older ones must refuse. Empty: all refuse, if there is a `refusal`."""

    def dynamic(self, axes: Axes) -> Case:
        """{number of the input: {axis: symbol}}: checked at further sizes of each symbol."""
        return replace(self, axes=axes)

    def about(self, operator: str) -> Case:
        """Run only with a PyTorch that has this operator."""
        return replace(self, operator=operator)

    def at(self, level: str) -> Case:
        """The level that must hold."""
        return replace(self, level=level)

    def refused(self, message: str, before: str = "") -> Case:
        """The export must fail with this in its message (on versions before `before`)."""
        return replace(self, refusal=message, refused_before=before)

    def keeping_nan(self) -> Case:
        """Run with the option `keep_nan`."""
        return replace(self, keep_nan=True)

    def export(self) -> ModelExport:
        """The model of this case with its inputs, ready to be exported to any target."""
        seed = int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:6], "little")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = _Call(self.function, self.args, self.kwargs)
            inputs = tuple(lazy.make() for lazy in model.lazies)
        names = [f"x{i}" for i in range(len(inputs))]
        axes = {names[i]: dict(of) for i, of in self.axes.items()}
        return ModelExport(model.eval(), inputs, input_names=names, dynamic_axes=axes or None)


def case(name: str, function: Any, *args: Any, **kwargs: Any) -> Case:
    return Case(name, function, args, kwargs)


@dataclass(frozen=True)
class _Slot:
    """Where an input goes."""

    index: int


class _Call(torch.nn.Module):
    """Calls the function of a case with the inputs in their places."""

    def __init__(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        super().__init__()
        self.lazies: list[Lazy] = []
        self.function = function.make() if isinstance(function, Lazy) else function
        leaves, self.spec = pytree.tree_flatten((list(args), dict(kwargs)))
        self.leaves = [self._leaf(leaf, index) for index, leaf in enumerate(leaves)]

    def _leaf(self, leaf: Any, index: int) -> Any:
        if not isinstance(leaf, Lazy):
            return leaf
        if leaf.constant:
            made = leaf.make()
            if isinstance(made, Tensor):
                self.register_buffer(f"weight_{index}", made)
            return made
        self.lazies.append(leaf)
        return _Slot(len(self.lazies) - 1)

    def forward(self, *inputs: Tensor) -> Any:
        leaves = [inputs[leaf.index] if isinstance(leaf, _Slot) else leaf for leaf in self.leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return self.function(*args, **kwargs)


def all_cases() -> list[Case]:
    """The cases of all files in this folder, named `family/name`. Raises ValueError for a name that is used twice."""
    cases: dict[str, Case] = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        for case in importlib.import_module(f"{__name__}.{module.name}").CASES:
            name = f"{module.name}/{case.name}"
            if name in cases:
                raise ValueError(f"two cases are called {name}")
            cases[name] = replace(case, name=name)
    return [case for case in cases.values() if not case.operator or find_packet(case.operator) is not None]
