"""From a model to its graph: torch.export, non-strict, with recurrent calls kept whole and sizes symbolic."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch.export.graph_signature import OutputKind, TensorArgument
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from t2n_core.errors import CaptureError, InputError
from t2n_core.nnef.ranges import SizeRange
from t2n_core.torch_graph import dynamic_axes as axes_of
from t2n_core.torch_graph.as_eager import masks_unread, padded_encoders, roots_of_sizes
from t2n_core.torch_graph.calls import FlatCall
from t2n_core.torch_graph.capture_mode import CaptureMode
from t2n_core.torch_graph.capture_sizes import resized
from t2n_core.torch_graph.containers import containers_kept
from t2n_core.torch_graph.decisions import Decisions
from t2n_core.torch_graph.dynamic_axes import DynamicAxes, SymbolTable
from t2n_core.torch_graph.from_export import build_graph
from t2n_core.torch_graph.implied import implied_decisions
from t2n_core.torch_graph.inputs import ModelInputs, bind_inputs, result_names
from t2n_core.torch_graph.ir import TorchModuleIRGraph
from t2n_core.torch_graph.module_calls import Extractor, whole_modules
from t2n_core.torch_graph.narrowing import RangeWarning, SizeDecision, named, narrowed
from t2n_core.torch_graph.numbers_as_indices import numbers_as_indices
from t2n_core.torch_graph.quiet import quiet
from t2n_core.torch_graph.refusals import fixed_axis, located, refusal, refusal_to_trace
from t2n_core.torch_graph.replay import agree, replay
from t2n_core.torch_graph.script import ScriptCall
from t2n_core.torch_graph.sources import CAPTURE_WAYS, CaptureWay, Source, source_of
from t2n_core.torch_graph.stack_traces import short_stack_traces
from t2n_core.torch_graph.structure import Path, leaves_with_path
from t2n_core.torch_graph.traces import FrozenDecision, traced


@dataclass(slots=True)
class CapturedModel:
    """What capture gives: the graph, and how its symbols are bounded."""

    graph: TorchModuleIRGraph
    symbols: dict[str, int] = field(default_factory=dict)
    """Symbol -> traced size."""
    result_names: tuple[str, ...] = ()
    """Of the outputs: what the model calls them, else numbered."""
    range: SizeRange = field(default_factory=SizeRange)
    """The sizes that the graph holds for."""
    decisions: tuple[SizeDecision, ...] = ()
    """What made the range smaller than declared."""


@dataclass(slots=True)
class TorchModuleTracer:
    """Captures one model. Nothing of the model is changed, also when capture fails.

    `model` is a module, an exported program, TorchScript, the path of one of the two, or a Source of these.
    """

    model: Any
    inputs: ModelInputs
    dynamic_axes: DynamicAxes | None = None
    find_extractor: Callable[[torch.nn.Module], Extractor | None] = field(default=lambda _: None)
    """Which modules stay whole, and by what."""
    modes: Sequence[TorchFunctionMode] = ()
    """Of the caller: they see the model's calls before those of capture."""
    capture: CaptureWay = "export"
    """`trace` freezes what the model decides in Python, where torch.export refuses it."""
    source: Source = field(init=False)
    _decisions: Decisions = field(default_factory=Decisions, init=False, repr=False)

    def __post_init__(self) -> None:
        self.source = self.model if isinstance(self.model, Source) else source_of(self.model)
        if self.capture not in CAPTURE_WAYS:
            raise InputError(f"capture={self.capture!r} is none of {', '.join(CAPTURE_WAYS)}")

    def trace(self) -> CapturedModel:
        """Raises InputError for axes that do not exist, CaptureError for what torch.export refuses."""
        tensors = self.inputs.tensors
        shapes = {n: tuple(t.shape) for n, t in zip(self.inputs.names, tensors, strict=True)}
        axes = axes_of.normalise(self.dynamic_axes, shapes)
        if self.source.program is not None:
            with quiet():
                captured = self._read(_functional(self.source.program), axes, _paths_of(self.source.program), None)
            _warn_of_range(captured)
            return captured
        call = FlatCall(self.source, self.inputs)
        decisions: list[FrozenDecision] = []
        with ExitStack() as stack:
            stack.enter_context(quiet())
            stack.enter_context(torch.no_grad())
            stack.enter_context(containers_kept(self.source.module))
            if self.source.is_script:
                script: Any = self.source.module
                scripted = ScriptCall(script, self.source.fn_name, lambda given: self.inputs.replaced(given)[0])
                captured = self._read(self._export(scripted, axes, ()), axes, scripted.results.paths, scripted)
            elif self.capture == "trace":
                # until the trace is read: its nodes for whole modules are known by then
                stack.enter_context(whole_modules(self.source.module, self.find_extractor))
                script, decisions = self._traced(call)
                captured = self._read(self._export(ScriptCall(script), axes, ()), axes, call.results.paths, call)
            else:
                stack.enter_context(whole_modules(self.source.module, self.find_extractor))
                captured = self._read(self._export(call, axes, self.modes), axes, call.results.paths, call)
        for decision in decisions:
            warnings.warn(decision, stacklevel=2)
        _warn_of_range(captured)
        return captured

    def _traced(self, call: FlatCall) -> tuple[torch.jit.ScriptModule, list[FrozenDecision]]:
        try:
            return traced(call, self.inputs.tensors, self.modes)
        except Exception as cause:
            raise refusal_to_trace(cause, self.source.name) from cause

    def _read(
        self,
        program: torch.export.ExportedProgram,
        axes: Mapping[str, Mapping[int, str]],
        paths: Sequence[Path],
        call: torch.nn.Module | None,
    ) -> CapturedModel:
        fakes = _user_fakes(program)
        if len(fakes) != len(self.inputs.tensors):
            raise InputError(
                f"{self.source.name} has {len(fakes)} input tensors, the example has {len(self.inputs.tensors)}"
            )
        sizes = SizeRange.of({symbol for places in axes.values() for symbol in places.values()})
        table, traced_sizes = self._table(sizes, fakes, axes)
        sizes = SizeRange.of(traced_sizes)
        table.range = sizes
        decisions = named([*self._decisions.all(), *implied_decisions(program)], table)

        def agrees(at: Mapping[str, int]) -> bool:
            tensors = resized(axes, self.inputs.names, self.inputs.tensors, at)
            return call is not None and _computes(program, call, tensors)

        sizes, causes = narrowed(sizes, decisions, traced_sizes, agrees)
        for name, (low, high) in sizes.bounds.items():
            if low == high:
                raise fixed_axis(name, low, causes)
        table, _ = self._table(sizes, fakes, axes)
        graph = build_graph(program, self.inputs.names, table)
        return CapturedModel(graph, dict(sorted(traced_sizes.items())), result_names(paths), sizes, tuple(causes))

    def _table(
        self, sizes: SizeRange, fakes: Sequence[torch.Tensor], axes: Mapping[str, Mapping[int, str]]
    ) -> tuple[SymbolTable, dict[str, int]]:
        """The sizes of the inputs by name, and what they are in the example."""
        table, traced_sizes = SymbolTable(sizes), {}
        table.fake_mode = detect_fake_mode(fakes)
        for name, example, fake in zip(self.inputs.names, self.inputs.tensors, fakes, strict=True):
            for axis, symbol in {**_free_axes(name, fake, self.source), **axes.get(name, {})}.items():
                known = table.name_of(fake.shape[axis])
                if known is not None and axis not in axes.get(name, {}):
                    continue  # free in a program that was made elsewhere, and named by another input
                table.learn(fake.shape[axis], symbol)
                traced_sizes[symbol] = int(example.shape[axis])
        return table, traced_sizes

    def _export(
        self,
        captured: torch.nn.Module,
        axes: Mapping[str, Mapping[int, str]],
        modes: Sequence[TorchFunctionMode],
    ) -> torch.export.ExportedProgram:
        from torch.fx.experimental import _config as symbolic_config

        # sizes are then never assumed to differ from 0 and 1, so that one graph serves them all
        with symbolic_config.patch(backed_size_oblivious=True):  # type: ignore[attr-defined]
            try:
                with ExitStack() as while_capturing:
                    while_capturing.enter_context(short_stack_traces())
                    while_capturing.enter_context(self._decisions.recording())
                    while_capturing.enter_context(masks_unread())
                    while_capturing.enter_context(roots_of_sizes())
                    while_capturing.enter_context(numbers_as_indices())
                    while_capturing.enter_context(padded_encoders(self.source.module))
                    for mode in (CaptureMode(), *modes):
                        while_capturing.enter_context(mode)
                    program = torch.export.export(
                        captured,
                        tuple(self.inputs.tensors),
                        dynamic_shapes=self._dynamic_shapes(axes),
                        strict=False,
                        prefer_deferred_runtime_asserts_over_guards=True,
                    )
                return _functional(program)
            except CaptureError as refused:
                raise located(refused) from refused.__cause__
            except Exception as cause:
                can_trace = self.capture == "export" and not self.source.is_script
                fixing = self._decisions.fixing()
                raise refusal(cause, self.source.name, self.inputs.names, fixing, can_trace) from cause

    def _dynamic_shapes(self, axes: Mapping[str, Mapping[int, str]]) -> dict[str, Any] | None:
        if not any(axes.values()):
            return None
        free = torch.export.Dim.DYNAMIC
        return {"tensors": tuple(dict.fromkeys(axes.get(name, {}), free) or None for name in self.inputs.names)}


def _warn_of_range(captured: CapturedModel) -> None:
    decided = [str(decision) for decision in captured.decisions if not decision.required]
    if decided:
        warnings.warn(
            f"the archive holds only for {captured.range}: {'; '.join(decided[:3])}", RangeWarning, stacklevel=3
        )


def _computes(program: torch.export.ExportedProgram, call: torch.nn.Module, tensors: Sequence[torch.Tensor]) -> bool:
    """Return whether a captured program computes of these tensors what the model does; also where the model fails."""
    try:
        with torch.no_grad():
            expected = call(*(t.detach().clone() for t in tensors))
    except Exception:
        return True
    found = replay(program, tensors)
    return found is not None and agree(list(expected), found)


def _functional(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    return program.run_decompositions({}) if _mutates(program) else program


def _free_axes(name: str, fake: torch.Tensor, source: Source) -> dict[int, str]:
    """The axes that an exported program leaves free, named as if they were declared without a name."""
    if source.program is None:
        return {}
    free = [axis for axis, size in enumerate(fake.shape) if isinstance(size, torch.SymInt)]
    return {axis: f"{name}_dim{axis}" for axis in free}


def _paths_of(program: torch.export.ExportedProgram) -> list[Path]:
    """Where the program's tensors are in what it returns."""
    form = program.call_spec.out_spec
    if form is None:
        return []
    specs = [s for s in program.graph_signature.output_specs if s.kind is OutputKind.USER_OUTPUT]
    results = pytree.tree_unflatten(list(range(form.num_leaves)), form)
    paths = [path for path, _ in leaves_with_path(results)]
    return [path for path, spec in zip(paths, specs, strict=False) if isinstance(spec.arg, TensorArgument)]


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


__all__ = ["CapturedModel", "ModelInputs", "TorchModuleTracer", "bind_inputs"]
