"""A model on its way to archives: capture, lower, check against the spec, write."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from t2n_core.check.reference import Reference, timed
from t2n_core.check.samples import Sample
from t2n_core.check.sampling.hypothesis_inputs import draw_inputs, is_strategy
from t2n_core.check.table import sizes_text
from t2n_core.errors import CaptureError, InputError, LowerError, RewriteError, SpecError, UnsupportedOpsError
from t2n_core.export.debug_bundle import write_debug_bundle
from t2n_core.export.notes import OptionWarning, option_notes, rewriter_notes, state_notes
from t2n_core.export.options import ExportOptions
from t2n_core.export.precision_search import FoundPlan, find_plan
from t2n_core.export.result import ExportResult
from t2n_core.inference_target import InferenceTarget, TractNNEF, require_target
from t2n_core.nnef.archive import remove_archive, write_archive
from t2n_core.nnef.graph import Graph
from t2n_core.nnef.legality import check_graph
from t2n_core.nnef.tract import stored_forms
from t2n_core.nnef.tract.traits import traits_of
from t2n_core.op.custom_extractors import ModuleInfoExtractor
from t2n_core.op.lower import has_rule, lower
from t2n_core.op.registry import Registry, load_default
from t2n_core.op.stored.choice import Rounded, with_stored
from t2n_core.rewriter.activation import rewriting
from t2n_core.rewriter.builtin import builtin_rewriters
from t2n_core.rewriter.captures import Capture, Captures
from t2n_core.rewriter.context import CAPTURE_LOCK, Session, Target, without_rewrites
from t2n_core.rewriter.functions import RulesOfAnExport, operator_bodies
from t2n_core.rewriter.modules import inputs_of_replacement, restore_labels
from t2n_core.rewriter.report import RewriteReport, RewriteWarning
from t2n_core.rewriter.selection import Selection, select
from t2n_core.torch_graph.capture.own_run import refusal_of_example, refusal_of_training
from t2n_core.torch_graph.capture.tracer import CapturedModel, TorchModuleTracer
from t2n_core.torch_graph.graph.ir import TorchModuleIRGraph, TorchOp
from t2n_core.torch_graph.precision.apply import in_precision
from t2n_core.torch_graph.simplify.norms import fold_norms
from t2n_core.torch_graph.simplify.open_masks import open_masks
from t2n_core.torch_graph.simplify.passes import simplify
from t2n_core.torch_graph.sizes.declared_axes import DynamicAxes, normalise
from t2n_core.torch_graph.sizes.output_axes import check_output_axes, of_inputs
from t2n_core.torch_graph.sizes.state_axes import with_state_axes
from t2n_core.torch_graph.ways_in.bfloat16 import without_bfloat16
from t2n_core.torch_graph.ways_in.first_call import StateWarning, first_call_note
from t2n_core.torch_graph.ways_in.inputs import ModelInputs, bind_inputs
from t2n_core.torch_graph.ways_in.results import DroppedResultWarning
from t2n_core.torch_graph.ways_in.sources import Source, source_of, with_state


class ModelExport:
    """One model with example inputs, captured once and exported to any number of targets.

    Args:
        model: a module in evaluation mode, which is never changed (bfloat16 is exported as a copy in float32,
            with a warning); an ExportedProgram; a ScriptModule; or the path of
            a saved one of the last two. No other thread may call a module while it is captured: torch.export puts
            fake weights in until it is done.
        args: a tensor, a tuple of arguments, or a dict of named tensors, also as numpy arrays; arguments may be
            nested. An ExportedProgram brings its own.
        kwargs: further keyword arguments of the method.
        options: those of `ExportOptions`, by name.

    Raises:
        InputError: an unknown option, or arguments that the model does not take.
    """

    def __init__(self, model: Any, args: Any = None, kwargs: Mapping[str, Any] | None = None, **options: Any) -> None:
        self.options = ExportOptions.of(options)
        self.dynamic_axes = self.options.dynamic_axes
        """Dynamic axes of the options, else of the first target that has some."""
        self.extra_inputs = self.options.extra_inputs
        self.input_function = (
            None if is_strategy(self.extra_inputs) or not callable(self.extra_inputs) else self.extra_inputs
        )
        """The function of `extra_inputs` that makes inputs for given sizes."""
        if self.input_function is not None:
            self.extra_inputs = ()
        if is_strategy(self.extra_inputs):
            self.extra_inputs = draw_inputs(self.extra_inputs)
        self.times: dict[str, float] = {}
        """Seconds of the stages that are shared by all targets."""
        self.source: Source = source_of(model, self.options.fn_name)
        self.model = self.source.module
        if self.source.program is None:
            calls = [args, kwargs, list(self.extra_inputs)]
            self.model, (args, kwargs, self.extra_inputs) = without_bfloat16(self.model, calls)
            self.source = replace(self.source, module=self.model)
        if self.options.state is not None:
            self.source = with_state(self.source, args, kwargs or {}, self.options.state)
        self.args, self.kwargs = args, kwargs
        self.inputs: ModelInputs = bind_inputs(self.source, args, kwargs, self.options.input_names)
        self._captures = Captures()
        self._rounded: Rounded = {}
        self._references: list[Reference] = []
        self._has_run = False
        self._refusal: InputError | None = None

    def __repr__(self) -> str:
        return f"<ModelExport of {self.source.name}: {', '.join(self.inputs.names)}>"

    @property
    def _axes(self) -> DynamicAxes | None:
        return self._of_inputs(self.dynamic_axes)

    def _of_inputs(self, declared: Any) -> DynamicAxes | None:
        """Return the dynamic axes of inputs and of the state; those of outputs are checked after the capture."""
        return with_state_axes(of_inputs(declared, self._input_words), self.source.state)

    @property
    def _input_words(self) -> list[str]:
        """Return the names of inputs, and of the arguments that are state."""
        return [*self.inputs.names, *(self.source.state.examples if self.source.state is not None else ())]

    @property
    def captured(self) -> CapturedModel:
        """Return the latest capture, else one for no target. Raises CaptureError, InputError, RewriteError."""
        latest = self._captures.latest
        return self.captured_for(None) if latest is None else latest

    def captured_for(self, target: InferenceTarget | None) -> CapturedModel:
        """Return the capture for a target, shared by all for which the same rewriters act. Raises like `captured`."""
        return self._capture(target, self._selection(target)).model

    @property
    def samples(self) -> list[Sample]:
        """Return PyTorch's samples for the latest capture, at the traced sizes and at others. Raises InputError."""
        return self._reference(self.captured).samples()

    def reference_for(self, target: InferenceTarget) -> Reference:
        """Return what PyTorch computes for the capture for a target. Raises like `captured`."""
        return self._reference(self.captured_for(target))

    def _reference(self, captured: CapturedModel) -> Reference:
        """Return what PyTorch computes for a capture, one value for each."""
        known = next((one for one in self._references if one.captured is captured), None)
        if known is None:
            known = Reference(
                self.source,
                self.inputs,
                captured,
                lambda: self.extra_inputs,
                self.kwargs,
                self.times,
                self.input_function,
                (...,) if self.options.sizes is None else self.options.sizes,
            )
            self._references.append(known)
        return known

    def lower(self, target: InferenceTarget) -> Graph:
        """Return the NNEF graph for a target, legal there.

        Raises CaptureError, RewriteError, UnsupportedOpsError, SpecError.
        """
        return self._lower(target)[0]

    def _selection(self, target: InferenceTarget | None) -> Selection:
        builtin = builtin_rewriters() if self.options.builtin_rewriters else ()
        return select([*self.options.rewriters, *builtin], target)

    def _session(self, target: InferenceTarget | None) -> Session:
        names = ("input_names", "output_names", "dynamic_axes", "fn_name", "capture", "strict_rewrites")
        return Session(Target(target), MappingProxyType({name: self._setting(name) for name in names}))

    def _setting(self, name: str) -> Any:
        return self.dynamic_axes if name == "dynamic_axes" else getattr(self.options, name)

    def _capture(self, target: InferenceTarget | None, selection: Selection) -> Capture:
        known = self._captures.find(selection, target)
        if known is not None:
            return known
        refusal = self._captures.find_refusal(selection)
        if refusal is not None:
            raise refusal
        session = self._session(target)
        try:
            with (
                timed(self.times, "capture"),
                rewriting(self.model, selection, session, builtin=self.options.builtin_rewriters) as rewritten,
            ):
                captured = TorchModuleTracer(
                    replace(self.source, module=rewritten.model, running=rewritten.running),
                    inputs_of_replacement(self.source, rewritten.model, self.inputs),
                    self._axes,
                    ModuleInfoExtractor.get_by_module,
                    rewritten.modes,
                    self.options.capture,
                ).trace()
        except CaptureError as error:
            refusal = self._refusal_of_example() or error
            self._captures.keep_refusal(refusal, selection, session)
            raise refusal from refusal.__cause__
        with without_rewrites():
            if (refusal := refusal_of_training(self.source, self.inputs)) is not None:
                raise refusal
        named = zip(self._output_names(captured), captured.graph.outputs, strict=True)
        shapes = {name: value.shape for name, value in named}
        check_output_axes(self.dynamic_axes, self._input_words, shapes, captured.symbols)
        if selection.modules or rewritten.labels:
            restore_labels(captured.graph, self.model if selection.modules else None, rewritten.labels)
        for told in captured.results.notes():
            warnings.warn(DroppedResultWarning(told), stacklevel=_frames_of_this_package())
        return self._captures.keep(captured, selection, session)

    def _refusal_of_example(self) -> InputError | None:
        """Return PyTorch's refusal of the example; None if the model runs, without any rewriters, as for its reference.

        It runs for this once, where an export fails and no samples have shown that it does.
        """
        if not self._has_run and not any(reference.has_samples for reference in self._references):
            with without_rewrites():
                self._refusal = refusal_of_example(self.source, self.inputs)
            self._has_run = True
        return self._refusal

    def simplified(self, target: InferenceTarget) -> TorchModuleIRGraph:
        """Return the torch graph as its operators are written for a target. Raises CaptureError, RewriteError."""
        return self._simplified(target, self._selection(target), self._session(target))

    def write_graph(self, simple: TorchModuleIRGraph, names: Sequence[str], target: InferenceTarget) -> Graph:
        """Return a simplified torch graph in NNEF, with these output names. Raises UnsupportedOpsError, SpecError."""
        return self._written(simple, names, target, self._selection(target), self._session(target))

    def _rules(self, selection: Selection, session: Session) -> Registry:
        rules = self.options.rules or load_default()
        return RulesOfAnExport(rules, selection, session.hits) if selection.rules else rules

    def _simplified(self, target: InferenceTarget, selection: Selection, session: Session) -> TorchModuleIRGraph:
        traced = self._capture(target, selection).model.graph.copy()  # a hook's changes must not reach other targets
        target.post_capture(traced)
        choice = target.writing.weights
        if choice:
            refuses = partial(stored_forms.refusal, traits_of(target.spec.version))
            traced = with_stored(traced, choice, refuses, self.source.weights, self._rounded)
        rules, ours = self._rules(selection, session), load_default()
        has_form = has_rule(rules, target.spec, target.writing)
        with CAPTURE_LOCK:  # decompositions are traced like models
            simple = simplify(traced, has_form, operator_bodies(selection, session))

        def is_plain(op: TorchOp) -> bool:
            wanted = (op.kind, target.spec, target.writing)
            return rules.find(*wanted) is ours.find(*wanted)

        simple = fold_norms(simple, is_plain, target.folds_norm)
        plan = target.writing.precision
        if plan is not None:
            simple = in_precision(simple, lambda unit: plan.of(*unit) == "float16")
        return replace(simple, open_masks=open_masks(simple))

    def _lower(self, target: InferenceTarget) -> tuple[Graph, RewriteReport]:
        selection, session = self._selection(target), self._session(target)
        capture = self._capture(target, selection)
        try:
            simple = self._simplified(target, selection, session)
            graph = self._written(simple, self._output_names(capture.model), target, selection, session)
        except (CaptureError, LowerError, SpecError) as error:
            refusal = self._refusal_of_example()
            if refusal is None:
                raise
            raise refusal from error
        report = RewriteReport.of(selection, capture.hits + session.hits)
        self._complain(report.problem(str(target)))
        return graph, report

    def _written(
        self,
        simple: TorchModuleIRGraph,
        names: Sequence[str],
        target: InferenceTarget,
        selection: Selection,
        session: Session,
    ) -> Graph:
        rules = self._rules(selection, session)
        options, fragments, scheme = target.writing, target.custom_fragments, self.options.nnef_variable_naming_scheme
        captured = self._capture(target, selection).model
        sizes = target.size_range(captured.range)
        if not sizes.holds(captured.symbols):
            raise InputError(f"the example's sizes {sizes_text([captured.symbols])} are outside of the range {sizes}")
        graph = lower(simple, target.spec, rules, list(names), options, fragments, scheme, sizes)
        if graph.sizes.bounds and not graph.sizes.holds(captured.symbols):
            raise LowerError(
                f"the archive would hold for {graph.sizes} alone, without the sizes of the example",
                target=str(target),
                hint="this release fails on a tensor without elements that the model has there: give a larger example",
            )
        for fragment in target.specific_fragments(self.model):
            graph.fragments.setdefault(fragment.name, fragment)
        target.post_trace(graph, graph.extensions)
        problems = check_graph(graph, target.spec)
        if problems:
            raise problems[0] if len(problems) == 1 else UnsupportedOpsError(problems, target=str(target))
        return graph

    def _complain(self, problem: RewriteError | None) -> None:
        if problem is not None and self.options.strict_rewrites:
            raise problem
        if problem is not None:
            warnings.warn(RewriteWarning(str(problem)), stacklevel=_frames_of_this_package())

    def to(self, target: InferenceTarget, path: str | Path, *, compression_level: int | None = None) -> ExportResult:
        """Write the archive for one target. Raises T2NError; nothing is left under `path` then."""
        require_target(target)
        self._take_axes_of(target)
        found: FoundPlan | None = None
        if isinstance(target, TractNNEF) and target.searches_precision:
            found = find_plan(self, target)
            target = target.with_precision(found.plan)
        times: dict[str, float] = {}
        target.pre_trace(self.model, self.inputs.names, tuple(self.options.output_names or ()))
        captured = self.captured_for(target)  # timed by itself
        with timed(times, "lower"):
            graph, report = self._lower(target)
        with timed(times, "write"):
            archive = write_archive(graph, path, spec=target.spec, compression=compression_level)
        told = option_notes(target, graph, self.source, self.options.capture)
        if told:
            warnings.warn(OptionWarning("; ".join(told)), stacklevel=_frames_of_this_package())
        if self._state_notes:
            warnings.warn(StateWarning("; ".join(self._state_notes)), stacklevel=_frames_of_this_package())
        of_plan = () if found is None else (f"precision='auto': {found.describe()}",)
        notes = (*captured.results.notes(), *rewriter_notes(report), *told, *self._state_notes, *of_plan)
        notes += tuple(state_notes(target, graph))
        reference = self._reference(captured)
        result = ExportResult(archive, target, self, graph, {**self.times, **times}, reference, report, notes)
        bundle = None if self.options.debug_bundle_path is None else Path(self.options.debug_bundle_path)
        if bundle is not None:
            write_debug_bundle(result, bundle)
        try:
            target.post_export(self.model, graph, self.inputs.tensors, archive, bundle)
        except BaseException:
            remove_archive(archive)
            raise
        if found is not None:
            beside = archive.with_name(f"{archive.name}.precision.toml")
            beside.write_text(found.plan.toml([found.describe()]), encoding="utf-8")
        return result

    @cached_property
    def _state_notes(self) -> list[str]:
        state = self.source.state
        if state is None:
            return []
        note = first_call_note(state, self.source.signature(), self.source.callee, self.args, self.kwargs or {})
        return [note] if note else []

    def _take_axes_of(self, target: InferenceTarget) -> None:
        """Take the axes of a target. Raises InputError if this export has others, or was captured with others."""
        if not target.dynamic_axes:
            return
        if self.dynamic_axes is None and self._captures.latest is None:
            self.dynamic_axes = target.dynamic_axes
        tensors = zip(self.inputs.names, self.inputs.tensors, strict=True)
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors}
        if normalise(self._of_inputs(target.dynamic_axes), shapes) != normalise(self._axes, shapes):
            raise InputError(
                "the target's dynamic_axes differ from those of this export",
                hint="one capture has one set of dynamic axes: make a ModelExport for each",
            )

    def _output_names(self, captured: CapturedModel) -> list[str]:
        names = captured.results.names(self._given_output_names(captured))
        if self.options.output_names is None:
            return [f"{n}_of_model" if n in self.inputs.names else n for n in names]
        if len({*names, *self.inputs.names}) != len(names) + len(self.inputs.names):
            raise InputError("input and output names must all differ")
        return names

    def _given_output_names(self, captured: CapturedModel) -> Sequence[str] | None:
        """Return the user's names of outputs; those of the state are added where only the others are named."""
        given, state = self.options.output_names, self.source.state
        if given is None or state is None:
            return given
        of_state = [path[0] for path in captured.results.paths if path[0] in state.outputs]
        return [*given, *of_state] if len(given) == len(captured.results.paths) - len(of_state) else given


def _frames_of_this_package() -> int:
    """Return the number of stack frames inside this package, so that a warning shows the user's line."""
    frame, count = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("t2n_core."):
        frame, count = frame.f_back, count + 1
    return count


__all__ = ["ModelExport"]
