"""Find fake tensors that outlive their capture in objects of the model's code."""

from __future__ import annotations

import gc
import itertools
import sys
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import CellType, FrameType, FunctionType, ModuleType
from typing import Any

import torch

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.compat.patches import swaps
from t2n_core.torch_graph.compat.private import FakeTensor, PhiloxStateTracker, pytree
from t2n_core.torch_graph.reachable import CACHE, is_foreign

_META = ("val", "eager_input_vals")
"""Entries of a program's nodes that hold fake tensors."""
_STEPS = 4
_WIDEST = 64
"""Steps from a tensor to its holders, and the most holders in one step."""


class FakeTensors:
    """The fake tensors of one capture."""

    def __init__(self) -> None:
        self._tensors: list[weakref.ref[Any]] = []
        self._graphs: list[weakref.ref[Any]] = []
        self._erased: list[weakref.ref[Any]] = []
        """Nodes that passes of PyTorch removed from their graphs: they live on for a while, with their metadata."""

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record each fake tensor created in the block, and each graph that may hold one."""
        plain: Any = FakeTensor.__new__
        init, erase = torch.fx.Graph.__init__, torch.fx.Graph.erase_node

        def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
            tensor = plain(cls, *args, **kwargs)
            self._tensors.append(weakref.ref(tensor))
            return tensor

        def new_graph(graph: Any, *args: Any, **kwargs: Any) -> None:
            init(graph, *args, **kwargs)
            self._graphs.append(weakref.ref(graph))

        def erase_node(graph: Any, node: torch.fx.Node) -> None:
            self._erased.append(weakref.ref(node))
            erase(graph, node)

        with swaps() as swap:
            swap(FakeTensor, "__new__", staticmethod(new))
            swap(torch.fx.Graph, "__init__", new_graph)
            swap(torch.fx.Graph, "erase_node", erase_node)
            yield

    def refuse_leftovers(self, program: torch.export.ExportedProgram) -> None:
        """Raise CaptureError if the model's code holds a fake tensor, and clear an `lru_cache` that does.

        All objects are scanned only if there are tensors other than the program's.
        """
        if not self._leftovers(program):
            return
        gc.collect(1)
        beside = self._leftovers(program)
        for where in _holders(beside) if beside else ():
            raise CaptureError(
                f"the model keeps a tensor that it computed while it was captured, which holds no data, in {where}",
                hint="run the model once on the example inputs before the export, so that it holds the real tensor",
            )

    def _leftovers(self, program: torch.export.ExportedProgram) -> list[Any]:
        graphs = [program.graph, *_alive(self._graphs)]
        nodes = itertools.chain(*(graph.nodes for graph in graphs), _alive(self._erased))
        of_program = set[int]()
        for node in nodes:
            for entry in map(node.meta.get, _META):
                if isinstance(entry, torch.Tensor):
                    of_program.add(id(entry))
                elif entry is not None:
                    of_program.update(id(leaf) for leaf in pytree.tree_leaves(entry))
        alive = _alive(self._tensors)
        modes = {id(t.fake_mode): t.fake_mode for t in alive}.values()
        for sizes in (mode.shape_env for mode in modes if mode.shape_env is not None):
            of_program.update(id(tracked.fake) for tracked in sizes.tracked_fakes or ())
        of_random_numbers = (
            value for state in vars(PhiloxStateTracker).values() for value in getattr(state, "__dict__", {}).values()
        )
        of_program.update(map(id, of_random_numbers))
        return [tensor for tensor in alive if id(tensor) not in of_program]


def _alive(references: Iterable[weakref.ref[Any]]) -> list[Any]:
    return [referent for reference in references if (referent := reference()) is not None]


def _holders(tensors: Sequence[Any]) -> Iterator[str]:
    """Yield a name for each of the model's objects that holds one of these tensors; clear caches."""
    step: list[Any] = list(tensors)
    ours, seen = [tensors, step], {id(t) for t in tensors}
    for _ in range(_STEPS):
        holders: list[Any] = []
        ours.append(holders)
        for holder in gc.get_referrers(*step[:_WIDEST]):
            if id(holder) in seen or isinstance(holder, FrameType) or any(holder is own_list for own_list in ours):
                continue
            seen.add(id(holder))
            if isinstance(holder, CACHE):
                holder.cache_clear()
                return
            name = _name(holder, step)
            if name:
                yield name
            holders.append(holder)
        step = holders
        ours.append(step)


def _name(holder: Any, referents: Sequence[Any]) -> str:
    """Return a user's name for a holder; "" for one of PyTorch's own objects, and for a plain container."""
    if isinstance(holder, dict):
        name = next((str(key) for key, value in holder.items() if any(value is referent for referent in referents)), "")
        module = sys.modules.get(str(holder.get("__name__")))
        if module is not None and vars(module) is holder and not is_foreign(module.__name__):
            return f"the global `{name}` of {module.__name__}"
        return ""
    if isinstance(holder, CellType):
        closures = [c for c in gc.get_referrers(holder) if isinstance(c, tuple)]
        functions = [
            f for f in gc.get_referrers(*closures) if isinstance(f, FunctionType) and not is_foreign(f.__module__)
        ]
        return f"a variable around the function `{functions[0].__qualname__}`" if functions else ""
    if isinstance(holder, torch.Tensor | ModuleType | tuple | list | set | FunctionType):
        return ""
    cls = holder if isinstance(holder, type) else type(holder)
    return "" if is_foreign(cls.__module__) else f"`{cls.__qualname__}`"
