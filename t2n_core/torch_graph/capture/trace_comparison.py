"""Compare traces of one model at several sizes: where they differ, a trace is valid only for its own sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeAlias

import torch

from t2n_core.errors import FrozenDecisionWarning
from t2n_core.nnef.sizes.ranges import LEAST
from t2n_core.torch_graph.compat.private import _jit_pass_inline, pytree
from t2n_core.torch_graph.custom_ops.module_calls import MODULE_CALL, calls
from t2n_core.torch_graph.frontend.torchscript.script import origin_of
from t2n_core.torch_graph.frontend.torchscript.traces import frozen_size
from t2n_core.torch_graph.proofs.compared_numbers import Numbers, sizes_near

_SCANNED = 3
"""Sizes on both sides of the trace's that are compared where a size makes a difference."""
_NEAR_DECISIONS = 8
"""Number of further sizes, next to the integers that the model's code compares with."""


Bounds: TypeAlias = tuple[int, int | None]


@dataclass(slots=True)
class _Search:
    """The search for sizes at which a trace matches the model."""

    script: torch.jit.ScriptModule
    trace_at: Callable[[Mapping[str, int]], torch.jit.ScriptModule]
    sizes: Mapping[str, int]
    """The sizes of the trace."""
    frozen: Sequence[FrozenDecisionWarning]
    lines: dict[str, list[str]] = field(default_factory=dict)
    """Line that differs in a trace at other sizes -> the symbols that were changed."""
    alike: dict[str, dict[int, bool]] = field(default_factory=dict)
    """Symbol -> size -> whether the trace is the same with only the symbol set to it."""
    joint: set[str] = field(default_factory=set)
    """Symbols that make a difference only together."""

    def compare_at(self, others: Mapping[str, int]) -> None:
        """Trace the model at other sizes of some symbols."""
        try:
            again = self.trace_at(others)
        except Exception:  # the model does not run at these sizes
            return
        differing = differing_lines(self.script, again)
        if len(others) == 1:
            ((name, size),) = others.items()
            self.alike.setdefault(name, {})[size] = not differing
        elif differing:
            self.joint |= others.keys()
        for line in differing:
            if not any(str(warning).startswith(line.partition(" in ")[0] + ":") for warning in self.frozen if line):
                self.lines.setdefault(line, list(others))

    def limits(self) -> dict[str, Bounds]:
        """Return the range of each symbol that makes a difference: up to sizes at which the trace was compared."""
        ranges: dict[str, Bounds] = {}
        for name, size in self.sizes.items():
            differs = [n for n, is_alike in self.alike.get(name, {}).items() if not is_alike]
            if differs:
                for near in (*range(size - _SCANNED, size + _SCANNED + 1), 2, 3):
                    if near > 0 and near != size and near not in self.alike[name]:
                        self.compare_at({name: near})
                tested = self.alike[name]
                differs = [n for n, is_alike in tested.items() if not is_alike]
                below, above = max((n for n in differs if n < size), default=-1), [n for n in differs if n > size]
                right = [size, *(n for n, is_alike in tested.items() if is_alike)]
                low = min(n for n in right if n > below) if below >= 0 else 0
                ranges[name] = (low, max(n for n in right if n < min(above)) if above else None)
            elif name in self.joint:
                ranges[name] = (0, size)
        return ranges


def frozen_sizes(
    script: torch.jit.ScriptModule,
    trace_at: Callable[[Mapping[str, int]], torch.jit.ScriptModule],
    sizes: Mapping[str, int],
    bounds: Mapping[str, Bounds],
    frozen: Sequence[FrozenDecisionWarning],
    decisions: Sequence[Numbers] = (),
) -> tuple[list[FrozenDecisionWarning], dict[str, Bounds]]:
    """Return a warning for each further line that differs in a trace at other sizes, and the ranges of a valid trace.

    `sizes` are the trace's, `decisions` the integers of `compared_numbers`; `trace_at` raises if the model does not run
    at a size.
    """
    search = _Search(script, trace_at, sizes, frozen)

    def is_within(others: Mapping[str, int]) -> bool:
        limits = {name: bounds.get(name, (LEAST, None)) for name in others}
        return all(
            low <= others[name] and (high is None or others[name] <= high) for name, (low, high) in limits.items()
        )

    for name, size in sizes.items():
        ends = (limit for limit in bounds.get(name, ()) if limit)
        others_of_one = (1, size - 1, size + 1, 2 * size + 1, 8 * size + 5, 64 * size + 3, *ends)
        alone = [{name: n} for n in dict.fromkeys(others_of_one) if n != size]
        for others in filter(is_within, alone):
            search.compare_at(others)
    if len(sizes) > 1:  # a decision on one size may have an effect only if another size is large, too
        together = [{name: scale * size + more for name, size in sizes.items()} for scale, more in ((8, 5), (64, 3))]
        for others in filter(is_within, together):
            search.compare_at(others)
    changed = ({n: size for n, size in near.items() if size != sizes[n]} for near in sizes_near(decisions, sizes))
    for others in islice((candidate for candidate in changed if candidate and is_within(candidate)), _NEAR_DECISIONS):
        search.compare_at(others)
    limits = search.limits()
    warnings = [frozen_size(line, {n: sizes[n] for n in names}, limits) for line, names in search.lines.items()]
    return warnings, limits


def differing_lines(module: torch.jit.ScriptModule, other: torch.jit.ScriptModule) -> list[str]:
    """Return the lines of the model at which two traces differ in operators or constants.

    The comparison stops at the first operator that only one of them has.
    """
    return list(dict.fromkeys(_differences(*(_nodes(script) for script in (module, other)))))


def _nodes(script: torch.jit.ScriptModule) -> list[Any]:
    graph = script.graph.copy()
    _jit_pass_inline(graph)
    return [*graph.nodes(), graph.return_node()]


def _differences(nodes: Sequence[Any], other: Sequence[Any]) -> Iterator[str]:
    names: dict[str, str] = {}
    constants: dict[str, tuple[Any, Any]] = {}
    lines: dict[str, str] = {}
    for step, (a, b) in enumerate(zip(nodes, other, strict=False)):
        inputs = list(zip(a.inputs(), b.inputs(), strict=False))
        alike = a.kind() == b.kind() and a.inputsSize() == b.inputsSize() and a.outputsSize() == b.outputsSize()
        if not alike or any(names.setdefault(x.debugName(), y.debugName()) != y.debugName() for x, y in inputs):
            yield next((line for line in (origin_of(node)[1] for node in (*nodes[step:], *other[step:])) if line), "")
            return
        if a.kind() == "prim::Constant":
            constants[a.output().debugName()] = (a.output().toIValue(), b.output().toIValue())
            lines[a.output().debugName()] = origin_of(a)[1]
        elif a.kind() == "prim::GetAttr" and a.s("name") != b.s("name"):
            yield origin_of(a)[1]
        names.update(zip((x.debugName() for x in a.outputs()), (y.debugName() for y in b.outputs()), strict=True))
        for index, (x, _) in enumerate(inputs):
            is_key = a.kind() == MODULE_CALL and index == 2
            if x.debugName() in constants and not _same(*constants[x.debugName()], is_key):
                yield origin_of(a)[1] or lines[x.debugName()]  # a list has no source line


def _same(value: Any, other: Any, is_key: bool) -> bool:
    if is_key:
        value, other = calls[value].leaves, calls[other].leaves
    if isinstance(value, list | tuple) and isinstance(other, list | tuple):
        pairs = list(zip(pytree.tree_leaves(value), pytree.tree_leaves(other), strict=False))
        return len(value) == len(other) and all(_same(a, b, False) for a, b in pairs)
    if isinstance(value, torch.Tensor) and isinstance(other, torch.Tensor):
        return value.dtype == other.dtype and value.shape == other.shape and bool(torch.equal(value, other))
    return type(value) is type(other) and bool(value == other or value != value)
