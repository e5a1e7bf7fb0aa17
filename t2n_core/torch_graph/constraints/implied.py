"""Find what a captured program assumes about sizes without a guard: lengths of ranges, and signs of slice bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import sympy
import torch

from t2n_core.torch_graph import naming
from t2n_core.torch_graph.arguments import bind_schema
from t2n_core.torch_graph.compat.private import OpOverload
from t2n_core.torch_graph.constraints.counts import ARANGES, decide_count
from t2n_core.torch_graph.constraints.dynamic_axes import SymbolTable
from t2n_core.torch_graph.constraints.guards import Decision
from t2n_core.torch_graph.constraints.slices import SLICES


def decide_all_counts(program: torch.export.ExportedProgram, table: SymbolTable) -> None:
    """Fix the lengths of all results of `torch.arange` in the table, for the decisions that contain them."""
    for node in program.graph.nodes:
        if isinstance(node.target, OpOverload) and naming.kind_of(node.target) in ARANGES:
            decide_count(table, bind_schema(node.target, node.args, node.kwargs), node.meta["val"].shape[0])


def implied_decisions(program: torch.export.ExportedProgram) -> Iterator[Decision]:
    """Yield a decision that the sign of each computed slice bound is the one at the captured sizes."""
    for node in program.graph.nodes:
        if node.op != "call_function" or not isinstance(node.target, OpOverload):
            continue
        kind = naming.kind_of(node.target)
        if kind not in SLICES:
            continue
        bound = bind_schema(node.target, node.args, node.kwargs)
        for name in ("start", "end"):
            argument: Any = bound[name]
            size = argument.meta.get("val") if isinstance(argument, torch.fx.Node) else argument
            if isinstance(size, torch.SymInt) and size.node.has_hint():
                expression, here, zero = size.node.expr, cast("int", size.node.hint), sympy.S.Zero
                condition = sympy.Ge(expression, zero) if here >= 0 else sympy.Lt(expression, zero)
                if condition not in (sympy.true, sympy.false):
                    yield Decision(condition, naming.origin_of(kind, node.meta), translated=True)
