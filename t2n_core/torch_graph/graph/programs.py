"""Exported programs: the paths of their results, and how to make them functional."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.export.graph_signature import ConstantArgument, OutputKind

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.compat.operators import operator
from t2n_core.torch_graph.compat.private import OpOverload, pytree
from t2n_core.torch_graph.frontend.pytree.structure import leaves_with_path
from t2n_core.torch_graph.frontend.results import Results

DETACH_IN_PLACE = operator("aten::detach_.default")
"""Marked as an in-place operator, although it changes no element."""
_GRADIENTS = "wrap_with_set_grad_enabled"
_REGIONS = ("wrap_with_autocast", _GRADIENTS, "_add_batch_dim", "_vmap_increment_nesting")
"""Names of the higher-order operators that run a subgraph under another mode, and of the calls that `vmap` leaves."""


def functional(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Return a program without operators that write into their arguments, and without regions of a mode or of vmap.

    Raises CaptureError for a program that holds a tensor of a function transform.
    """
    _refuse_wrapped(program)
    if not _mutates(program) and not _has_regions(program):
        return program
    with _without_gradients(program):
        rewritten: torch.export.ExportedProgram = program.run_decompositions({})
    return rewritten


def results_of(program: torch.export.ExportedProgram) -> Results:
    """Return the paths of the outputs, and of other constants, in the nested result of a program."""
    results, form = Results(), program.call_spec.out_spec
    if form is None:
        return results
    specs = [s for s in program.graph_signature.output_specs if s.kind is OutputKind.USER_OUTPUT]
    places = pytree.tree_unflatten(list(range(form.num_leaves)), form)
    values = [s.arg.value if isinstance(s.arg, ConstantArgument) else torch.empty(0) for s in specs]
    results.note((path, values[index]) for path, index in leaves_with_path(places))
    return results


@contextmanager
def _without_gradients(program: torch.export.ExportedProgram) -> Iterator[None]:
    """While active, no region of a program enables gradients: values are the same, and PyTorch inlines the region."""
    graphs = (module.graph for module in program.graph_module.modules() if isinstance(module, torch.fx.GraphModule))
    regions = [node for graph in graphs for node in graph.nodes if getattr(node.target, "__name__", "") == _GRADIENTS]
    before = [node.args for node in regions]
    for node in regions:
        node.args = (False, *node.args[1:])
    try:
        yield
    finally:
        for node, args in zip(regions, before, strict=True):
            node.args = args


def _mutates(program: torch.export.ExportedProgram) -> bool:
    """Return whether an operator writes into its argument: only then is a second trace worth its time."""
    called = (n.target for n in program.graph.nodes if isinstance(n.target, OpOverload))
    return any(op._schema.is_mutable and op is not DETACH_IN_PLACE for op in called)


def _refuse_wrapped(program: torch.export.ExportedProgram) -> None:
    """Raise CaptureError for a constant wrapped by a function transform, which has no elements."""
    try:
        for constant in program.constants.values():
            if isinstance(constant, torch.Tensor):
                constant.untyped_storage()
    except NotImplementedError as cause:
        raise CaptureError(
            "torch.export leaves a tensor of a function transform, such as torch.func.grad, in the program",
            hint="write the derivative as a formula",
        ) from cause


def _has_regions(program: torch.export.ExportedProgram) -> bool:
    """Return whether a part of a program runs under another mode of autocast or of gradients, or under vmap."""
    return any(getattr(node.target, "__name__", "") in _REGIONS for node in program.graph.nodes)
