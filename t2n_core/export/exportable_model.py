"""A model with example inputs, and its captures: each is shared by the targets for which it is right."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from t2n_core.check.exported.archive import ExportedArchive
from t2n_core.check.reference import Reference, record_time
from t2n_core.check.sampling.hypothesis_inputs import draw_inputs, is_strategy
from t2n_core.errors import CaptureError, DroppedResultWarning, InputError
from t2n_core.export.notes import warn_user
from t2n_core.export.options import ExportOptions
from t2n_core.inference_target import InferenceTarget
from t2n_core.lowering.target_lowering import TargetLowering
from t2n_core.op.custom_extractors import ModuleInfoExtractor
from t2n_core.op.registry import load_default
from t2n_core.op.stored.choice import Rounded
from t2n_core.parity.samples import Sample
from t2n_core.rewriter.activation import rewriting
from t2n_core.rewriter.builtin import builtin_rewriters
from t2n_core.rewriter.captures import Capture, Captures
from t2n_core.rewriter.context import Session, Target, without_rewrites
from t2n_core.rewriter.functions import RulesOfAnExport
from t2n_core.rewriter.modules import inputs_of_replacement, restore_labels
from t2n_core.rewriter.registries import registered_rewriters
from t2n_core.rewriter.selection import Selection, select
from t2n_core.torch_graph.capture.hidden_state import refusal_of_hidden_state
from t2n_core.torch_graph.capture.own_run import refusal_of_example, refusal_of_training
from t2n_core.torch_graph.capture.tracer import CapturedModel, TorchModuleTracer
from t2n_core.torch_graph.constraints.declared_axes import (
    DeclaredAxes,
    DynamicAxes,
    check_declared,
    example_sizes,
    from_zero,
    normalise,
)
from t2n_core.torch_graph.constraints.output_axes import check_output_axes, of_inputs
from t2n_core.torch_graph.constraints.state_axes import with_state_axes
from t2n_core.torch_graph.frontend.bfloat16 import without_bfloat16
from t2n_core.torch_graph.frontend.inputs import ModelInputs, bind_inputs
from t2n_core.torch_graph.frontend.sources import Source, source_of, with_state
from t2n_core.torch_graph.frontend.training import evaluating


class ExportableModel(ABC):
    """One model with example inputs, captured once for all targets with the same rewriters."""

    def __init__(self, model: Any, args: Any = None, kwargs: Mapping[str, Any] | None = None, **options: Any) -> None:
        self.options = ExportOptions.of(options)
        self.dynamic_axes = self.options.dynamic_axes
        """Dynamic axes of the options, otherwise of the first target that has some."""
        self._from_zero: frozenset[str] = frozenset()
        """The symbols that a target before the capture allows to be 0."""
        self.extra_inputs = self.options.extra_inputs
        self.input_function = (
            None if is_strategy(self.extra_inputs) or not callable(self.extra_inputs) else self.extra_inputs
        )
        """The function of `extra_inputs` that returns inputs for sizes."""
        if self.input_function is not None:
            self.extra_inputs = ()
        if is_strategy(self.extra_inputs):
            self.extra_inputs = draw_inputs(self.extra_inputs)
        self.times: dict[str, float] = {}
        """Seconds of the stages shared by all targets."""
        self.source: Source = source_of(model, self.options.fn_name)
        self.model = self.source.module
        if self.source.program is None:
            calls = [args, kwargs, list(self.extra_inputs)]
            self.model, (args, kwargs, self.extra_inputs) = without_bfloat16(self.model, calls)
            self.source = replace(self.source, module=self.model)
        if self.options.state is not None:
            with self.mode():
                self.source = with_state(self.source, args, kwargs or {}, self.options.state)
        self.source = replace(self.source, running=self.mode)
        self.args, self.kwargs = args, kwargs
        self.inputs: ModelInputs = bind_inputs(self.source, args, kwargs, self.options.input_names)
        self._registered = registered_rewriters() if self.options.registered_rewriters else ()
        self._captures = Captures()
        self._rounded: Rounded = {}
        self._references: list[Reference] = []
        self._has_run = False
        self._refusal: InputError | None = None

    def __repr__(self) -> str:
        return f"<ModelExport of {self.source.name}: {', '.join(self.inputs.names)}>"

    @abstractmethod
    def to(self, target: InferenceTarget, path: str | Path, *, compression_level: int | None = None) -> ExportedArchive:
        """Write the archive for one target. Raises T2NError, and then leaves nothing under `path`."""

    @property
    def captured(self) -> CapturedModel:
        """Return the latest capture, or one for no target if there is none.

        Raises CaptureError, InputError, RewriteError.
        """
        latest = self._captures.latest
        return self.captured_for(None) if latest is None else latest

    def mode(self) -> AbstractContextManager[None]:
        """Return the context in which the model runs and is captured: in evaluation mode, unless that is refused."""
        return evaluating(self.model) if self.evaluates else nullcontext()

    @property
    def evaluates(self) -> bool:
        """Return whether a model in training mode is exported in evaluation mode. An exported program has no mode."""
        return self.options.training == "evaluate" and self.source.program is None

    def captured_for(self, target: InferenceTarget | None) -> CapturedModel:
        """Return the capture for a target, shared by all targets with the same rewriters. Raises like `captured`."""
        return self._capture(target, self._selection(target)).model

    @property
    def samples(self) -> list[Sample]:
        """Return PyTorch's samples for the latest capture, at the traced sizes and at others. Raises InputError."""
        return self._reference(self.captured).samples()

    def reference_for(self, target: InferenceTarget) -> Reference:
        """Return the reference for the capture for a target. Raises like `captured`."""
        return self._reference(self.captured_for(target))

    def _reference(self, captured: CapturedModel) -> Reference:
        """Return the reference for a capture, created once."""
        reference = next((candidate for candidate in self._references if candidate.captured is captured), None)
        if reference is None:
            reference = Reference(
                self.source,
                self.inputs,
                captured,
                lambda: self.extra_inputs,
                self.kwargs,
                self.times,
                self.input_function,
                (...,) if self.options.sizes is None else self.options.sizes,
            )
            self._references.append(reference)
        return reference

    def lowering_for(self, target: InferenceTarget) -> TargetLowering:
        """Return the lowering of the capture for a target. Raises like `captured`."""
        selection, session = self._selection(target), self._session(target)
        capture = self._capture(target, selection)
        rules = RulesOfAnExport(self.options.rules or load_default(), selection, session)
        naming = self.options.nnef_variable_naming_scheme
        return TargetLowering(target, self.source, capture, selection, session, rules, naming, self._rounded)

    @property
    def _axes(self) -> DynamicAxes | None:
        return self._axes_of_inputs(self.dynamic_axes)

    def _axes_of_inputs(self, declared: Any) -> DynamicAxes | None:
        """Return the dynamic axes of inputs and of the state. Axes of outputs are checked after capture."""
        check_declared(declared)
        of_arguments = from_zero(of_inputs(declared, self._argument_names), self._from_zero)
        return with_state_axes(of_arguments, self.source.state)

    @property
    def _argument_names(self) -> list[str]:
        """Return the names of inputs, and of the arguments that are state."""
        return [*self.inputs.names, *(self.source.state.examples if self.source.state is not None else ())]

    def _selection(self, target: InferenceTarget | None) -> Selection:
        builtin = builtin_rewriters() if self.options.builtin_rewriters else ()
        return select([*self.options.rewriters, *self._registered, *builtin], target)

    def _session(self, target: InferenceTarget | None) -> Session:
        names = (
            "input_names",
            "output_names",
            "dynamic_axes",
            "fn_name",
            "capture",
            "strict_rewrites",
            "deploy_config",
        )
        return Session(Target(target), MappingProxyType({name: self._setting(name) for name in names}))

    def _setting(self, name: str) -> Any:
        return self.dynamic_axes if name == "dynamic_axes" else getattr(self.options, name)

    def _capture(self, target: InferenceTarget | None, selection: Selection) -> Capture:
        cached = self._captures.find(selection, target)
        if cached is not None:
            return cached
        refusal = self._captures.find_refusal(selection)
        if refusal is not None:
            raise refusal
        session = self._session(target)
        try:
            with (
                record_time(self.times, "capture"),
                self.mode(),
                rewriting(self.model, selection, session, builtin=self.options.builtin_rewriters) as rewritten,
            ):
                captured = TorchModuleTracer(
                    replace(self.source, module=rewritten.model, running=rewritten.running),
                    args=inputs_of_replacement(self.source, rewritten.model, self.inputs),
                    dynamic_axes=self._axes,
                    find_extractor=ModuleInfoExtractor.get_by_module,
                    modes=rewritten.modes,
                    capture=self.options.capture,
                ).trace()
        except CaptureError as error:
            refusal = self._refusal_of_example() or error
            self._captures.keep_refusal(refusal, selection, session)
            raise refusal from refusal.__cause__
        with without_rewrites():
            of_training = self.options.training == "refuse"
            refusal = refusal_of_training(self.source, self.inputs) if of_training else None
            refusal = refusal or refusal_of_hidden_state(self.source, self.inputs)
        if refusal is not None:
            raise refusal
        named_outputs = zip(self._output_names(captured), captured.graph.outputs, strict=True)
        shapes = {name: value.shape for name, value in named_outputs}
        check_output_axes(self.dynamic_axes, self._argument_names, shapes, captured.symbols)
        if selection.modules or rewritten.labels:
            restore_labels(captured.graph, self.model if selection.modules else None, rewritten.labels)
        for note in captured.results.notes():
            warn_user(DroppedResultWarning(note))
        return self._captures.keep(captured, selection, session)

    def _refusal_of_example(self) -> InputError | None:
        """Return PyTorch's refusal of the example; None if the model runs. Rewriters are not active, as for samples.

        The model runs once for this, if an export fails and no samples have shown that it runs.
        """
        if not self._has_run and not any(reference.has_samples for reference in self._references):
            with without_rewrites():
                self._refusal = refusal_of_example(self.source, self.inputs)
            self._has_run = True
        return self._refusal

    def _take_axes_of(self, target: InferenceTarget) -> None:
        """Use the axes of a target. Raises InputError if this export has others, or was captured with others."""
        if self._captures.latest is None:
            self._from_zero |= target.sizes_from_zero
            self.dynamic_axes = target.dynamic_axes or None if self.dynamic_axes is None else self.dynamic_axes
        if not target.dynamic_axes:
            return
        if normalise(self._axes_of_inputs(target.dynamic_axes), self._shapes) != self.declared:
            raise InputError(
                "the target's dynamic_axes differ from those of this export",
                hint="one capture has one set of dynamic axes: make a ModelExport for each",
            )

    @property
    def declared(self) -> DeclaredAxes:
        """Return the dynamic axes of inputs, with the sizes that they may have. Raises InputError."""
        return normalise(self._axes, self._shapes)

    @property
    def example_sizes(self) -> dict[str, int]:
        """Return the sizes of the example by the symbols of its dynamic axes. Raises InputError."""
        return example_sizes(self._axes, self._shapes)

    @property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: tuple(tensor.shape) for name, tensor in zip(self.inputs.names, self.inputs.tensors, strict=True)}

    def _output_names(self, captured: CapturedModel) -> list[str]:
        names = captured.results.names(self._given_output_names(captured))
        if self.options.output_names is None:
            return [f"{n}_of_model" if n in self.inputs.names else n for n in names]
        if len({*names, *self.inputs.names}) != len(names) + len(self.inputs.names):
            raise InputError("input and output names must all differ")
        return names

    def _given_output_names(self, captured: CapturedModel) -> Sequence[str] | None:
        """Return the user's output names; state outputs are added if only the others are named."""
        output_names, state = self.options.output_names, self.source.state
        if output_names is None or state is None:
            return output_names
        of_state = [path[0] for path in captured.results.paths if path[0] in state.outputs]
        return (
            [*output_names, *of_state]
            if len(output_names) == len(captured.results.paths) - len(of_state)
            else output_names
        )
