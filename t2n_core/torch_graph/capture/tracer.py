"""Capture the graph of a model: torch.export, non-strict, with recurrent calls as single nodes and symbolic sizes."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from t2n_core.errors import CaptureError, DataDependentError, FrozenDecisionWarning, InputError
from t2n_core.torch_graph.capture.constants import Constants
from t2n_core.torch_graph.capture.containers import preserve_containers
from t2n_core.torch_graph.capture.errors import refusal, refuse_smaller_trace, with_source_line
from t2n_core.torch_graph.capture.leftovers import FakeTensors
from t2n_core.torch_graph.capture.modes import CaptureMode
from t2n_core.torch_graph.capture.own_run import run_unchanged
from t2n_core.torch_graph.capture.patches import capturing
from t2n_core.torch_graph.capture.reading import ProgramReader
from t2n_core.torch_graph.capture.size_keys import UNHASHABLE, SizeKeyedDicts, of_table
from t2n_core.torch_graph.capture.trace_comparison import Bounds
from t2n_core.torch_graph.capture.tracing import Tracing
from t2n_core.torch_graph.choices import CAPTURE_WAYS, CaptureWay
from t2n_core.torch_graph.compat.private import symbolic_config
from t2n_core.torch_graph.compat.quiet import quiet
from t2n_core.torch_graph.compat.releases import warn_if_untested
from t2n_core.torch_graph.constraints.capture_sizes import (
    Axes,
    capture_sizes,
    dynamic_shapes,
    example_sizes,
    fit_example,
    freeing_sizes,
    resize_example,
)
from t2n_core.torch_graph.constraints.declared_axes import DeclaredAxes, DynamicAxes, normalise
from t2n_core.torch_graph.constraints.guards import Decisions
from t2n_core.torch_graph.constraints.implied import implied_decisions
from t2n_core.torch_graph.constraints.narrowing import SizeDecision, warn_of_range
from t2n_core.torch_graph.constraints.replay import computes_alike
from t2n_core.torch_graph.custom_ops.module_calls import Extractor, registered_extractor, whole_modules
from t2n_core.torch_graph.frontend.calls import FlatCall
from t2n_core.torch_graph.frontend.inputs import ModelInputs, bind_inputs
from t2n_core.torch_graph.frontend.sources import Source, source_of
from t2n_core.torch_graph.frontend.torchscript.script import ScriptCall
from t2n_core.torch_graph.graph.captured import CapturedModel
from t2n_core.torch_graph.graph.evaluate import evaluate_graph
from t2n_core.torch_graph.graph.from_export import user_fakes
from t2n_core.torch_graph.graph.ir import TorchModuleIRGraph
from t2n_core.torch_graph.graph.programs import functional, results_of
from t2n_core.torch_graph.proofs.regions import Recaptured

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One capture, at the example's sizes or at others."""

    captured: CapturedModel
    frozen: Sequence[FrozenDecisionWarning] = ()
    fits: bool = True
    """True if the captured program agrees with the model on the example."""


class TorchModuleTracer:
    """Captures one model, which stays unchanged even if capture fails.

    >>> graph = TorchModuleTracer(torch.nn.Tanh(), args=(torch.ones(2, 3),)).trace().graph
    >>> [op.kind for op in graph.op_nodes]
    ['aten::tanh']
    """

    def __init__(
        self,
        module: Any,
        traced_module: torch.jit.ScriptModule | None = None,
        fn_name: str = "forward",
        args: Any = None,
        *,
        dynamic_axes: DynamicAxes | None = None,
        find_extractor: Callable[[torch.nn.Module], Extractor | None] = registered_extractor,
        modes: Sequence[TorchFunctionMode] = (),
        capture: CaptureWay = "export",
    ) -> None:
        """Bind the example to the model. Raises InputError.

        Args:
            module: A module, an exported program, TorchScript, the path of one of the latter two, or a Source of these.
            traced_module: A trace or script of the module, which is captured in its place.
            fn_name: The method to capture.
            args: The example: a tensor, a tuple, a dict of named tensors, or the result of `bind_inputs`.
            dynamic_axes: The axes of the inputs that stay free; other axes keep the example's size.
            find_extractor: Returns the extractor that turns a module into one node, by default the registered one; None
                for a module that is traced.
            modes: Modes of the caller: they see the model's calls before the modes of capture do.
            capture: `trace` freezes data-dependent Python control flow, which torch.export refuses.
        """
        if traced_module is not None and not isinstance(traced_module, torch.jit.ScriptModule):
            type_name = type(traced_module).__name__
            raise InputError(f"traced_module is TorchScript, not {type_name}", hint="the example inputs are args=...")
        if capture not in CAPTURE_WAYS:
            raise InputError(f"capture={capture!r} is not one of {', '.join(CAPTURE_WAYS)}")
        self.module, self._traced = module, traced_module
        model = module if traced_module is None else traced_module
        self.source: Source = model if isinstance(model, Source) else source_of(model, fn_name)
        self.inputs: ModelInputs = args if isinstance(args, ModelInputs) else bind_inputs(self.source, args)
        self.dynamic_axes, self.find_extractor = dynamic_axes, find_extractor
        self.modes, self.capture = modes, capture
        self._constants: Constants | None = None
        """Elements of constants, for the model's Python code to read; None while it reads none."""
        self._dicts: SizeKeyedDicts | None = None
        """The model's dicts, if it looks up sizes in one."""
        self._declared: DeclaredAxes
        self._reader: ProgramReader

    @property
    def traced_module(self) -> torch.jit.ScriptModule:
        """Return the trace of the model, a function of the example's tensors in order; the first read traces it.

        Raises CaptureError, which has the name T2NErrorTorchJitTraceFailed too.
        """
        if self._traced is None:
            script: Any = self.source.module
            tracing = Tracing(self.source, self.inputs, self.modes, {})
            self._traced = script if self.source.is_script else tracing.trace(self.inputs.tensors)[0]
        return self._traced

    @property
    def torch_graph(self) -> Any:
        """Return PyTorch's own graph, a torch.Graph, of the traced module's method. Raises CaptureError."""
        traced: Any = self.traced_module
        return getattr(traced, self.source.fn_name if self.source.is_script else "forward").graph

    def graph_of_example(self) -> TorchModuleIRGraph:
        """Capture the model, and return its graph with the values that tensors have in a run of the example."""
        captured = self.trace()
        value = evaluate_graph(captured.graph, self.inputs.tensors, captured.symbols)
        for variable in captured.graph.data_nodes:
            variable._traced_data = value(variable)
        return captured.graph

    def trace(self) -> CapturedModel:
        """Capture the model. Raises InputError for unknown axes, CaptureError for what torch.export refuses."""
        warn_if_untested(torch.__version__)
        tensors = self.inputs.tensors
        shapes = {n: tuple(t.shape) for n, t in zip(self.inputs.names, tensors, strict=True)}
        self._declared = normalise(self.dynamic_axes, shapes)
        self._reader = ProgramReader(self.source, self.inputs, self._declared)
        axes = self._declared.axes
        with quiet(), torch.no_grad():
            if self.source.program is not None:
                program = functional(self.source.program)
                read = self._reader.read(program, axes, results_of(self.source.program), None, tensors, Decisions())
                attempt = _Attempt(read)
            else:
                attempt = self._attempt(axes)
        for decision in attempt.frozen:
            warnings.warn(decision, stacklevel=2)
        warn_of_range(attempt.captured.range, attempt.captured.decisions)
        return attempt.captured

    def _attempt(self, axes: Axes) -> _Attempt:
        """Return a capture; if the model's Python code reads elements, one in which constants can be read."""

        def capture() -> _Attempt:
            try:
                plain = self._at_free_sizes(axes) or self._capture_at(axes, self.inputs.tensors)
            except CaptureError as refused:
                if self._dicts is not None or UNHASHABLE not in refused.message:
                    raise
                self._dicts = SizeKeyedDicts(self.source.module)
                return capture()
            return self._at_larger_sizes(axes, plain)

        def with_constants() -> _Attempt | None:
            if self.capture == "export" and not self.source.is_script and self.source.state is None:
                self._constants = Constants(self.source.module)
                with suppress(CaptureError):
                    return capture()
            return None

        try:
            first = capture()
        except DataDependentError:
            other = with_constants()
            if other is None:
                raise
            return other
        return (with_constants() or first) if first.captured.graph.reads_elements else first

    def _at_free_sizes(self, axes: Axes) -> _Attempt | None:
        """Return a capture without dynamic sizes of 0 or 1; None if the example has neither, or if no others fit."""
        names, tensors = self.inputs.names, self.inputs.tensors
        example = example_sizes(axes, names, tensors)
        failures, wrong = 0, list[SizeDecision]()
        for sizes in capture_sizes(axes, names, tensors, self._declared.range.bounds):
            others = resize_example(axes, names, tensors, sizes)
            if any(d.holds({**example, **sizes}) for d in wrong) or (failures and not self._runs(others)):
                continue
            try:
                attempt = self._capture_at(axes, others)
            except CaptureError:
                failures += 1
                if failures > _FAILURES:
                    break
                continue
            if attempt.fits:
                return attempt
            beside = [d for d in attempt.captured.decisions if not d.holds(attempt.captured.symbols)]
            if not beside:
                break
            wrong += beside
        return None

    def _at_larger_sizes(self, axes: Axes, attempt: _Attempt) -> _Attempt:
        """Return the same capture, or one at larger sizes if a size derived from the inputs' sizes is 0 or 1."""
        captured = attempt.captured
        extents = {extent for node in captured.graph.data_nodes for extent in node.shape if not isinstance(extent, int)}
        tensors = self.inputs.tensors
        used_sizes = {int(size) for tensor in tensors for size in tensor.shape}
        sizes = freeing_sizes(extents, captured.captured_at, used_sizes, captured.range)
        if sizes is None:
            return attempt
        others = resize_example(axes, self.inputs.names, tensors, sizes)
        try:
            other = self._capture_at(axes, others) if self._runs(others) else attempt
        except CaptureError:
            return attempt
        return other if other.fits and len(other.captured.decisions) <= len(captured.decisions) else attempt

    def _runs(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Return whether the model itself runs on these tensors; it stays as it is."""
        try:
            with ExitStack() as stack:
                for mode in self.modes:
                    stack.enter_context(mode)
                run_unchanged(self.source, self.inputs, tensors)
        except Exception:
            return False
        return True

    def _capture_at(self, axes: Axes, tensors: Sequence[torch.Tensor]) -> _Attempt:
        """Return a capture with these tensors instead of the example's. Raises CaptureError."""
        call = FlatCall(self.source, self.inputs)
        reference: torch.nn.Module = call  # the model itself, to compare with
        frozen: Sequence[FrozenDecisionWarning] = ()
        decisions, modes, results = Decisions(), self.modes, call.results
        fakes = FakeTensors()
        with ExitStack() as stack:
            module: torch.nn.Module = call
            if self.source.is_script:
                script: Any = self.source.module
                module = ScriptCall(script, self.source.fn_name, lambda values: self.inputs.arguments_with(values)[0])
                reference, modes, results = module, (), module.results
            else:
                # until the program is read: by then its nodes for modules are resolved
                run = partial(run_unchanged, self.source, self.inputs, tensors)
                stack.enter_context(whole_modules(self.source.module, self.find_extractor, run))
            tracing: Tracing | None = None
            limits: dict[str, Bounds] = {}
            if not self.source.is_script and self.capture == "trace":
                tracing = Tracing(self.source, self.inputs, self.modes, axes)
                script, frozen, limits = tracing.trace_and_compare(tensors, call, self._declared.range)
                refuse_smaller_trace(self._declared, limits, frozen)
                module, modes = ScriptCall(script), ()
            with fakes.recording():
                program, assertions = self._export(module, axes, modes, tensors, decisions)

            def again(at: Mapping[str, int], static: frozenset[str]) -> Recaptured | None:
                others = fit_example(axes, self.inputs.names, self.inputs.tensors, at, self._runs)
                if sum(tensor.numel() for tensor in others) > _LARGEST:
                    return None
                with suppress(CaptureError), preserve_containers(self.source.module):
                    there = module if tracing is None else ScriptCall(tracing.trace(others, call)[0])
                    other = self._recapture(there, axes, modes, others, static)
                    # in a capture, empty tensors may have another shape than in the model
                    return other if computes_alike(other.program, reference, others, as_captured=True) else None
                return None

            captured = self._reader.read(program, axes, results, again, tensors, decisions, limits)
            captured = replace(captured, graph=replace(captured.graph, assertions=assertions))
            for at in () if self._dicts is None else self._dicts.sizes(captured):
                others = resize_example(axes, self.inputs.names, tensors, at)
                with preserve_containers(self.source.module):
                    if self._runs(others) and not computes_alike(program, reference, others):
                        raise of_table(at)
            fits = captured.range.holds(captured.symbols)
            if fits and frozen and captured.captured_at != captured.symbols:
                with preserve_containers(self.source.module):
                    fits = computes_alike(program, reference, self.inputs.tensors)
        fakes.refuse_leftovers(program)
        return _Attempt(captured, frozen, fits)

    def _recapture(
        self,
        module: torch.nn.Module,
        axes: Axes,
        modes: Sequence[TorchFunctionMode],
        tensors: Sequence[torch.Tensor],
        static: frozenset[str],
    ) -> Recaptured:
        """Return a program captured with other tensors and some of the dynamic axes static. Raises CaptureError."""
        free = {
            name: {axis: size for axis, size in of_input.items() if size.name not in static}
            for name, of_input in axes.items()
        }
        decisions = Decisions()
        program, _ = self._export(module, free, modes, tensors, decisions)
        fakes = dict(zip(self.inputs.names, user_fakes(program), strict=True))
        sizes = [(fakes[name].shape[axis], size) for name, of in axes.items() for axis, size in of.items()]
        return Recaptured(program, sizes, [*decisions.all(), *implied_decisions(program)])

    def _export(
        self,
        captured: torch.nn.Module,
        axes: Axes,
        modes: Sequence[TorchFunctionMode],
        tensors: Sequence[torch.Tensor],
        decisions: Decisions,
    ) -> tuple[torch.export.ExportedProgram, tuple[str, ...]]:
        """Return the program, and the lines of the model with assertions that it leaves out. Raises CaptureError."""
        _LOG.debug("capture of %s at %s", self.source.name, [tuple(tensor.shape) for tensor in tensors])
        # sizes are then never assumed to differ from 0 and 1, so that one graph serves them all
        with symbolic_config.patch(backed_size_oblivious=True):
            try:
                capture_mode = CaptureMode(self._constants)
                modes = (capture_mode, *modes)
                dicts = nullcontext() if self._dicts is None else self._dicts.taking_sizes()
                with capturing(self.source.module, decisions, modes, is_dynamic=any(axes.values())), dicts:
                    program = torch.export.export(
                        captured,
                        tuple(tensors),
                        dynamic_shapes=dynamic_shapes(axes, self.inputs.names),
                        strict=False,
                        prefer_deferred_runtime_asserts_over_guards=True,
                    )
                return functional(program), (*capture_mode.assertions.lines,)
            except CaptureError as refused:
                raise with_source_line(refused) from refused.__cause__
            except Exception as cause:
                can_trace = self.capture == "export" and not self.source.is_script
                raise refusal(cause, self.source.name, self.inputs.names, decisions.fixing(), can_trace) from cause


_LARGEST = 1 << 22
"""Most elements of the inputs of a capture for a proof."""
_FAILURES = 1
"""Failed captures after which other sizes are still tried, if the model runs at them."""

__all__ = ["CapturedModel", "ModelInputs", "TorchModuleTracer", "bind_inputs"]
