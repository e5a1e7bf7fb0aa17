"""Modules that capture keeps as one node each, with declared outputs, whatever their forward does.

The replaced `forward` is set on the instance while capture runs and removed again, also after an exception.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import torch

from t2n_core.errors import CaptureError, Origin, T2NError
from t2n_core.text import first_lines, line_of_error
from t2n_core.torch_graph.compat.files import NOT_THE_USERS
from t2n_core.torch_graph.compat.private import detect_fake_mode, pytree
from t2n_core.torch_graph.custom_ops.definition import NAMESPACE, define, library


class Extractor(Protocol):
    """Methods of an extractor that capture calls; see `t2n_core.op.custom_extractors`."""

    @property
    def runs_forward(self) -> bool: ...

    @property
    def kind(self) -> str: ...

    def generate_in_torch_graph(self, call: ModuleCall, *args: Any, **kwargs: Any) -> Any: ...

    def declare_outputs(self, module: Any, *args: Any, **kwargs: Any) -> Any: ...

    @property
    def convert_to_nnef(self) -> Callable[..., Any]: ...

    def write_node(self, g: Any, call: ModuleCall, node: WholeCall, inputs: Any, params: Any, given: Any) -> Any: ...


class Writer(Protocol):
    """Interface of the object that writes a node in NNEF and computes its results."""

    @property
    def kind(self) -> str:
        """Return the kind of the node: `MODULE_CALL`, with an extractor's name as the overload."""

    @property
    def function(self) -> Callable[..., Any]:
        """Return the user's function that writes the node."""

    def write(self, g: Any, node: WholeCall, inputs: Any, params: Any, given: Any) -> Any: ...

    def compute(self, *args: Any, **kwargs: Any) -> Any: ...


@dataclass(frozen=True, slots=True, eq=False)
class WholeCall:
    """One call that becomes one node: its writer, and its arguments other than tensors."""

    writer: Writer
    leaves: tuple[Any, ...]
    """Flattened arguments, with None for each tensor."""
    places: tuple[int, ...]
    """Indices of the tensors among the leaves."""
    structure: pytree.TreeSpec

    def arguments_with(self, tensors: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return (args, kwargs) with these tensors instead of the recorded ones."""
        leaves = list(self.leaves)
        for index, tensor in zip(self.places, tensors, strict=True):
            leaves[index] = tensor
        return pytree.tree_unflatten(leaves, self.structure)  # type: ignore[no-any-return]

    def compute(self, tensors: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], pytree.TreeSpec]:
        """Run the call on these tensors; return its flattened result, and the structure of that result."""
        args, kwargs = self.arguments_with(tensors)
        return pytree.tree_flatten(self.writer.compute(*args, **kwargs))


@dataclass(frozen=True, slots=True, eq=False)
class ModuleCall:
    """One module that an extractor turns into one node."""

    module: torch.nn.Module
    extractor: Extractor
    forward: Callable[..., Any]
    """The module's own forward."""
    seen: list[tuple[Any, Any]] = field(default_factory=list)
    """The shapes of the arguments and the results of each call in a run of the example."""

    @property
    def kind(self) -> str:
        return self.extractor.kind

    @property
    def function(self) -> Callable[..., Any]:
        return self.extractor.convert_to_nnef

    @property
    def parameter_names(self) -> list[str]:
        """Return the names of its parameters and buffers, in the order in which the node gets them."""
        return [n for n, _ in [*self.module.named_parameters(), *self.module.named_buffers()]]

    def as_one_node(self, *args: Any, **kwargs: Any) -> Any:
        """Write the node, and return tensors in the structure of the declared outputs."""
        params = [t for _, t in [*self.module.named_parameters(), *self.module.named_buffers()]]
        return write_node(
            self, params, self._declare, args, kwargs, f"`declare_outputs` of {type(self.extractor).__name__}"
        )

    def _declare(self, *args: Any, **kwargs: Any) -> Any:
        """Return the declared outputs, or the example's if forward reads values and the sizes are the example's."""
        try:
            return self.extractor.declare_outputs(self.module, *args, **kwargs)
        except T2NError:
            raise
        except Exception:
            for shapes, results in self.seen:
                if shapes == _static_shapes((args, kwargs)):
                    return pytree.tree_map_only(torch.Tensor, lambda t: torch.empty(t.shape, dtype=t.dtype), results)
            raise

    def note(self, module: torch.nn.Module, args: Any, kwargs: Any, results: Any) -> None:
        """Record the shapes of a call, as a forward hook."""
        empty = pytree.tree_map_only(torch.Tensor, lambda t: torch.empty_like(t, device="meta"), results)
        self.seen.append((_static_shapes((args, kwargs)), empty))

    def compute(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def write(self, g: Any, node: WholeCall, inputs: Any, params: Any, given: Any) -> Any:
        by_name = dict(zip(self.parameter_names, params, strict=True))
        return self.extractor.write_node(g, self, node, inputs, by_name, given)


def write_node(
    writer: Writer,
    params: Sequence[torch.Tensor],
    declare: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    declared_by: str,
) -> Any:
    """Write one node for a call, with results of the shapes and dtypes that `declare(*args, **kwargs)` returns.

    `declared_by` is the method that a user overrides to declare them, for error messages. Raises CaptureError if
    `declare` needs the values in the tensors.
    """
    leaves, structure = pytree.tree_flatten((args, kwargs))
    places = tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor))
    other_leaves = tuple(None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves)
    node = WholeCall(writer, other_leaves, places, structure)
    declared: list[Any] = []

    def run(tensors: Sequence[torch.Tensor], fake: bool) -> list[torch.Tensor]:
        if fake:
            new_args, new_kwargs = node.arguments_with(tensors)
            results, form = pytree.tree_flatten(
                _without_data(partial(declare, *new_args, **new_kwargs), tensors, declared_by)
            )
        else:
            results, form = node.compute(tensors)
        declared.append(form)
        # an operator must not return its argument, whatever the declaration does
        return [r.clone() if any(r is g for g in tensors) else r for r in results]

    key = next(_keys)
    _runs[key], calls[key] = run, node
    results = torch.ops.t2n_capture.module_call([leaves[i] for i in places], list(params), key)
    return pytree.tree_unflatten(results, declared[-1])


def _without_data(declare: Callable[[], Any], tensors: Sequence[torch.Tensor], declared_by: str) -> Any:
    """Return the result of a declaration for fake tensors. The values that it reads must not decide shapes."""
    from t2n_core.torch_graph.compat.private import free_unbacked_symbols

    mode = detect_fake_mode(tensors)
    sizes = None if mode is None else mode.shape_env
    hint = f"{declared_by} can return empty tensors of the right shapes and dtypes without reading values"
    try:
        with nullcontext() if sizes is None else sizes.ignore_fresh_unbacked_symbols():
            declared = declare()
    except T2NError:
        raise
    except Exception as cause:
        line = line_of_error(cause, NOT_THE_USERS)
        raise CaptureError(
            f"the shapes of the results cannot be found without data: {type(cause).__name__}: {first_lines(cause, 1)}",
            origin=Origin(type(cause).__name__, "", line) if line else None,
            hint=hint,
        ) from cause
    before = free_unbacked_symbols([t.shape for t in tensors])
    for result in pytree.tree_leaves(declared):
        if isinstance(result, torch.Tensor) and free_unbacked_symbols(result.shape) - before:
            raise CaptureError(f"the shape of a result depends on values in a tensor: {tuple(result.shape)}", hint=hint)
    return declared


_keys = itertools.count()
_runs: dict[int, Callable[[Sequence[torch.Tensor], bool], list[torch.Tensor]]] = {}
calls: dict[int, WholeCall] = {}
"""Node key -> call, while a capture runs; the graph keeps the call itself."""


def _declare(inputs: Sequence[torch.Tensor], params: Sequence[torch.Tensor], key: int) -> list[torch.Tensor]:
    return _runs[key](inputs, True)


def _compute(inputs: Sequence[torch.Tensor], params: Sequence[torch.Tensor], key: int) -> list[torch.Tensor]:
    """Compute the results of a node in a trace, which runs on real tensors."""
    return _runs[key](inputs, False)


define(library, "module_call(Tensor[] inputs, Tensor[] params, int key) -> Tensor[]", _declare, _compute)
MODULE_CALL = f"{NAMESPACE}::module_call"
extractors: dict[type[torch.nn.Module], Extractor] = {}
"""Class of modules -> its registered extractor."""


def is_module_call(kind: str) -> bool:
    """Return whether nodes of a kind are made from a module or an autograd function."""
    return kind.partition(".")[0] == MODULE_CALL


def registered_extractor(module: torch.nn.Module) -> Extractor | None:
    """Return the extractor of the nearest registered base of the module's class.

    None if there is none, or if a class between the two has its own forward: that one must be captured.
    """
    for base in type(module).__mro__:
        if base in extractors:
            return extractors[base] if type(module).forward is base.forward else None
    return None


@contextmanager
def whole_modules(
    model: torch.nn.Module, find: Callable[[torch.nn.Module], Extractor | None], run: Callable[[], object]
) -> Iterator[list[ModuleCall]]:
    """While active, modules with an extractor go through it; of nested ones, the outermost counts.

    `run` runs the model on the example, for the results of modules whose forward reads values.
    """
    replaced: list[ModuleCall] = []
    first = next(_keys)
    try:
        for module in model.modules():
            extractor = find(module)
            if extractor is not None and "forward" not in vars(module):
                replaced.append(ModuleCall(module, extractor, module.forward))
        _note_results([call for call in replaced if call.extractor.runs_forward], run)
        for call in replaced:
            vars(call.module)["forward"] = _entry(call)
        yield replaced
    finally:
        for call in replaced:
            vars(call.module).pop("forward", None)
        for key in [k for k in calls if k >= first]:
            del _runs[key], calls[key]


def _note_results(noted: Sequence[ModuleCall], run: Callable[[], object]) -> None:
    """Run the example once, and record the calls of these modules up to its end or its first error."""
    if not noted:
        return
    hooks = [call.module.register_forward_hook(call.note, with_kwargs=True) for call in noted]
    try:
        with torch.no_grad(), suppress(Exception):
            run()
    finally:
        for hook in hooks:
            hook.remove()


def _static_shapes(arguments: Any) -> list[Any] | None:
    """Return the shape of each tensor among arguments; None if a size is symbolic."""
    shapes = [tuple(leaf.shape) for leaf in pytree.tree_leaves(arguments) if isinstance(leaf, torch.Tensor)]
    return shapes if all(type(size) is int for shape in shapes for size in shape) else None


def _entry(call: ModuleCall) -> Callable[..., Any]:
    @functools.wraps(call.forward)  # torch.export reads the signature
    def forward(*args: Any, **kwargs: Any) -> Any:
        return call.extractor.generate_in_torch_graph(call, *args, **kwargs)

    return forward
