"""From a model to its graph: torch.export, non-strict, with recurrent calls kept whole and sizes symbolic."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from t2n_core.errors import CaptureError, InputError
from t2n_core.torch_graph import dynamic_axes as axes_of
from t2n_core.torch_graph.capture_mode import OpaqueRecurrent
from t2n_core.torch_graph.dynamic_axes import DynamicAxes, SymbolTable
from t2n_core.torch_graph.from_export import build_graph
from t2n_core.torch_graph.ir import TorchModuleIRGraph
from t2n_core.torch_graph.module_calls import Extractor, whole_modules
from t2n_core.torch_graph.pool_1d import DynamicMaxPool1d
from t2n_core.torch_graph.quiet import quiet


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """The example call of a model: positional and keyword arguments, and the tensors in them, named."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    names: tuple[str, ...]
    """One per tensor, in the order of the flattened arguments."""

    @property
    def tensors(self) -> list[torch.Tensor]:
        return [leaf for leaf in pytree.tree_leaves((self.args, self.kwargs)) if isinstance(leaf, torch.Tensor)]

    def replaced(self, tensors: Sequence[torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """(args, kwargs) with these tensors in place of the example's."""
        supply = iter(tensors)
        return pytree.tree_map_only(torch.Tensor, lambda _: next(supply), (self.args, self.kwargs))  # type: ignore[no-any-return]


@dataclass(slots=True)
class CapturedModel:
    """What capture gives: the graph, and how its symbols are bounded."""

    graph: TorchModuleIRGraph
    symbols: dict[str, int] = field(default_factory=dict)
    """Symbol -> traced size."""


@dataclass(slots=True)
class TorchModuleTracer:
    """Captures one model. Nothing of the model is changed, also when capture fails."""

    model: torch.nn.Module
    inputs: ModelInputs
    dynamic_axes: DynamicAxes | None = None
    find_extractor: Callable[[torch.nn.Module], Extractor | None] = field(default=lambda _: None)
    """Which modules stay whole, and by what."""
    modes: Sequence[TorchFunctionMode] = ()
    """Of the caller: they see the model's calls before those of capture."""

    def trace(self) -> CapturedModel:
        """Raises InputError for axes that do not exist, CaptureError for what torch.export refuses."""
        tensors = self.inputs.tensors
        shapes = {n: tuple(t.shape) for n, t in zip(self.inputs.names, tensors, strict=True)}
        axes = axes_of.normalise(self.dynamic_axes, shapes)
        with whole_modules(self.model, self.find_extractor):
            return self._read(self._export(axes), axes)

    def _read(self, program: torch.export.ExportedProgram, axes: Mapping[str, Mapping[int, str]]) -> CapturedModel:
        tensors = self.inputs.tensors
        table, traced = SymbolTable(), {}
        fakes = _user_fakes(program)
        table.fake_mode = detect_fake_mode(fakes)
        for name, example, fake in zip(self.inputs.names, tensors, fakes, strict=True):
            for axis, symbol in axes.get(name, {}).items():
                table.learn(fake.shape[axis], symbol)
                traced[symbol] = int(example.shape[axis])
        graph = build_graph(program, self.inputs.names, table)
        return CapturedModel(graph, dict(sorted(traced.items())))

    def _export(self, axes: Mapping[str, Mapping[int, str]]) -> torch.export.ExportedProgram:
        from torch.fx.experimental import _config as symbolic_config

        with ExitStack() as stack:
            stack.enter_context(quiet())
            stack.enter_context(torch.no_grad())
            # sizes are then never assumed to differ from 0 and 1, so that one graph serves them all
            stack.enter_context(symbolic_config.patch(backed_size_oblivious=True))  # type: ignore[attr-defined]
            try:
                with ExitStack() as while_capturing:
                    for mode in (OpaqueRecurrent(), DynamicMaxPool1d(), *self.modes):
                        while_capturing.enter_context(mode)
                    program = torch.export.export(
                        self.model,
                        self.inputs.args,
                        self.inputs.kwargs,
                        dynamic_shapes=self._dynamic_shapes(axes),
                        strict=False,
                        prefer_deferred_runtime_asserts_over_guards=True,
                    )
                if _mutates(program):
                    program = program.run_decompositions({})
                return program
            except Exception as cause:
                raise CaptureError(
                    f"torch.export cannot capture {type(self.model).__name__}: {_first_lines(cause)}",
                    hint="the model must run on the example inputs and have no data-dependent Python control flow",
                ) from cause

    def _dynamic_shapes(self, axes: Mapping[str, Mapping[int, str]]) -> dict[str, Any] | None:
        if not any(axes.values()):
            return None
        names = iter(self.inputs.names)
        args, kwargs = pytree.tree_map(
            lambda leaf: (
                dict.fromkeys(axes.get(next(names), {}), torch.export.Dim.DYNAMIC) or None
                if isinstance(leaf, torch.Tensor)
                else None
            ),
            (self.inputs.args, self.inputs.kwargs),
        )
        bound = inspect.signature(self.model.forward).bind(*args, **kwargs)
        return dict(bound.arguments)


def bind_inputs(
    model: torch.nn.Module,
    args: Any,
    kwargs: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
) -> ModelInputs:
    """The call that `args` means: a tensor, a sequence of arguments, or a dict of named tensors.

    A dict whose keys are parameters of `forward` is passed by keyword, any other dict in its order, its keys being the
    names of the inputs. Raises InputError for what forward cannot take.
    """
    keywords = dict(kwargs or {})
    given_names: list[str] | None = None
    if isinstance(args, torch.Tensor):
        positional: tuple[Any, ...] = (args,)
    elif isinstance(args, Mapping):
        given_names = [str(k) for k in args]
        parameters = inspect.signature(model.forward).parameters
        if all(k in parameters for k in given_names):
            positional, keywords = (), {**args, **keywords}
        else:
            positional = tuple(args.values())
    else:
        positional = tuple(args)
    try:
        bound = inspect.signature(model.forward).bind(*positional, **keywords)
    except TypeError as wrong:
        raise InputError(f"{type(model).__name__}.forward cannot take these arguments: {wrong}") from wrong
    leaves = pytree.tree_leaves_with_path((positional, keywords))
    tensors = [path for path, leaf in leaves if isinstance(leaf, torch.Tensor)]
    if not tensors:
        raise InputError("the example inputs hold no tensor", hint="pass at least one tensor")
    names = list(input_names) if input_names is not None else None
    if names is None and given_names is not None and len(given_names) == len(tensors):
        names = given_names
    if names is None:
        by_position = _parameter_names(bound, len(positional))
        names = [_leaf_name(path, by_position) for path in tensors]
    if len(names) != len(tensors):
        raise InputError(f"{len(names)} input names for {len(tensors)} input tensors: {', '.join(names)}")
    if len(set(names)) != len(names):
        raise InputError(f"input names are not unique: {', '.join(names)}")
    return ModelInputs(positional, keywords, tuple(names))


def _parameter_names(bound: inspect.BoundArguments, count: int) -> list[str]:
    names: list[str] = []
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{name}_{i}" for i in range(len(bound.arguments.get(name, ())))]
        else:
            names.append(name)
    return names[:count]


def _leaf_name(path: tuple[Any, ...], by_position: Sequence[str]) -> str:
    keys: list[Any] = [getattr(k, "idx", getattr(k, "key", getattr(k, "name", None))) for k in path]
    first = by_position[keys[1]] if keys[0] == 0 else str(keys[1])
    return "_".join([first, *(str(k) for k in keys[2:])])


def _user_fakes(program: torch.export.ExportedProgram) -> list[torch.Tensor]:
    wanted = set(program.graph_signature.user_inputs)
    return [
        n.meta["val"]
        for n in program.graph.nodes
        if n.op == "placeholder" and n.name in wanted and isinstance(n.meta.get("val"), torch.Tensor)
    ]


def _mutates(program: torch.export.ExportedProgram) -> bool:
    """True if some operator writes into its argument: only then is functionalisation worth a second trace."""
    return any(
        isinstance(n.target, torch._ops.OpOverload) and n.target._schema.is_mutable
        for n in program.graph.nodes
        if n.op == "call_function"
    )


def _first_lines(cause: BaseException, most: int = 6) -> str:
    lines = [line for line in str(cause).strip().splitlines() if line.strip()]
    return "\n".join(lines[:most]) or type(cause).__name__
