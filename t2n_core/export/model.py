"""Export a model to archives: capture, lower, check against the spec, write."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

from t2n_core.check.exported.pulsed import pulsed_path
from t2n_core.check.reference import record_time
from t2n_core.errors import (
    CaptureError,
    LowerError,
    OptionWarning,
    RangeWarning,
    RewriteError,
    RewriteWarning,
    SpecError,
    StateWarning,
)
from t2n_core.export.exportable_model import ExportableModel
from t2n_core.export.notes import (
    assertion_notes,
    operator_notes,
    option_notes,
    range_notes,
    refuse_narrower,
    rewriter_notes,
    size_notes,
    state_notes,
    warn_user,
)
from t2n_core.export.precision_search import FoundPlan, find_plan
from t2n_core.export.result import ExportResult
from t2n_core.inference_target import InferenceTarget, TractNNEF, require_target
from t2n_core.inference_target.base import PendingCheck
from t2n_core.lowering.target_lowering import TargetLowering
from t2n_core.nnef.archive import check_archive_name, remove_archive, write_archive
from t2n_core.nnef.graph import Graph
from t2n_core.rewriter.report import RewriteReport
from t2n_core.torch_graph.frontend.state.first_call import first_call_note
from t2n_core.torch_graph.frontend.training import training_note
from t2n_core.torch_graph.graph.ir import TorchModuleIRGraph
from t2n_core.torch_graph.precision.growth import notes_of_growth


class ModelExport(ExportableModel):
    """One model with example inputs, captured once and exported to any number of targets.

    Args:
        model: a module, exported in evaluation mode and never changed (bfloat16 is exported as a copy in float32, with
            a warning); an ExportedProgram; a ScriptModule; or the path of either, saved. No other thread may call a
            module while it is captured, since torch.export temporarily replaces its weights with fake ones.
        args: a tensor, a tuple of arguments, or a dict of named tensors, also as numpy arrays; arguments may be
            nested. An ExportedProgram contains its own.
        kwargs: further keyword arguments of the method.
        options: any of `ExportOptions`, by name.

    Raises:
        InputError: an unknown option, or arguments that the model does not accept.
    """

    def lower(self, target: InferenceTarget) -> Graph:
        """Return the legal NNEF graph for a target.

        Raises CaptureError, RewriteError, UnsupportedOpsError, SpecError.
        """
        return self._lower(self.lowering_for(target))[0]

    def simplified(self, target: InferenceTarget) -> TorchModuleIRGraph:
        """Return the simplified torch graph for a target. Raises CaptureError, RewriteError."""
        return self.lowering_for(target).simplified()

    def _lower(self, lowering: TargetLowering) -> tuple[Graph, RewriteReport]:
        try:
            graph = lowering.write(lowering.simplified(), self._output_names(lowering.captured))
        except (CaptureError, LowerError, SpecError) as error:
            refusal = self._refusal_of_example()
            if refusal is None:
                raise
            raise refusal from error
        refuse_narrower(graph, self.declared)
        report = lowering.report()
        self._complain(report.problem(str(lowering.target)))
        return graph, report

    def _complain(self, problem: RewriteError | None) -> None:
        if problem is not None and self.options.strict_rewrites:
            raise problem
        if problem is not None:
            warn_user(RewriteWarning(str(problem)))

    def to(
        self, target: InferenceTarget, path: str | Path, *, compression_level: int | None = None, check: bool = False
    ) -> ExportResult:
        """Write the archive for one target. Raises T2NError, and then leaves nothing under `path`.

        With `check` the archive is also checked, if the target has `check_io`. Otherwise it is checked only by a
        target's own `post_export` that calls the base class's.
        """
        require_target(target)
        check_archive_name(Path(path))  # a capture may take minutes
        self._take_axes_of(target)
        auto_plan: FoundPlan | None = None
        if isinstance(target, TractNNEF) and target.searches_precision:
            plain = target.with_precision(None)
            lowering = self.lowering_for(plain)
            auto_plan = find_plan(lowering, self._reference(lowering.captured))
            target = target.with_precision(auto_plan.plan)
        times: dict[str, float] = {}
        target.pre_trace(self.model, self._as_list(self.options.input_names), self._as_list(self.options.output_names))
        mode_note = training_note(self.model, self.source.name) if self.evaluates else None
        lowering = self.lowering_for(target)  # the capture is timed by itself
        captured = lowering.captured
        with record_time(times, "lower"):
            graph, report = self._lower(lowering)
        with record_time(times, "write"):
            archive = write_archive(graph, path, spec=target.spec, compression=compression_level)
        of_range = range_notes(graph)
        if of_range:
            warn_user(RangeWarning("; ".join(of_range)))
        options = [*option_notes(target, graph, self.source, self.options.capture), *self._growth_notes(target)]
        if options:
            warn_user(OptionWarning("; ".join(options)))
        if self._state_notes:
            warn_user(StateWarning("; ".join(self._state_notes)))
        of_plan = () if auto_plan is None else (f"precision='auto': {auto_plan.describe()}",)
        notes = (*captured.results.notes(), *of_range, *rewriter_notes(report), *options, *self._state_notes, *of_plan)
        notes += (
            *state_notes(target, graph),
            *operator_notes(graph),
            *assertion_notes(graph),
            *size_notes(target, graph),
        )
        if mode_note is not None:
            notes = (mode_note, *notes)
        all_times, reference = {**self.times, **times}, self._reference(captured)
        names = tuple(self._output_names(captured))
        result = ExportResult(
            archive, target, graph, all_times, reference, lowering, notes, self, report, declared_outputs=names
        )
        with ExitStack() as stack:
            bundle: Path | None = None
            if self.options.debug_bundle_path is not None:
                from t2n_core.export.debug_bundle import bundle_folder, write_debug_bundle

                bundle = stack.enter_context(bundle_folder(Path(self.options.debug_bundle_path)))
                write_debug_bundle(result, bundle)
            pulse = target.pulse if isinstance(target, TractNNEF) and target.pulsed_archive else None
            try:
                _run_hooks(target, result, bundle, check=check)
                if pulse is not None:
                    written = result.write_pulsed(pulsed_path(archive), pulse, compression_level=compression_level)
                    result.pulsed = written
                    result.notes += (written.describe(),)
            except BaseException:
                remove_archive(archive)
                if pulse is not None:
                    remove_archive(pulsed_path(archive))  # of an earlier export
                raise
        if auto_plan is not None:
            beside = archive.with_name(f"{archive.name}.precision.toml")
            beside.write_text(auto_plan.plan.toml([auto_plan.describe()]), encoding="utf-8")
        return result

    def _growth_notes(self, target: InferenceTarget) -> list[str]:
        """Return a line if a precision plan computes in float16 what grows beyond it within the range."""
        plan = target.writing.precision
        if plan is None or not isinstance(target, TractNNEF):
            return []
        lowering = self.lowering_for(target.with_precision(None))
        sizes, symbols = target.size_range(lowering.captured.range), lowering.captured.symbols
        return notes_of_growth(lowering.simplified(), lambda unit: plan.of(*unit) == "float16", sizes, symbols)

    @staticmethod
    def _as_list(names: Sequence[str] | None) -> list[str] | None:
        return None if names is None else list(names)

    @cached_property
    def _state_notes(self) -> list[str]:
        state = self.source.state
        if state is None:
            return []
        with self.mode():
            note = first_call_note(state, self.source.signature(), self.source.callee, self.args, self.kwargs or {})
        return [note] if note else []


def _run_hooks(target: InferenceTarget, result: ExportResult, bundle: Path | None, *, check: bool) -> None:
    """Call the hooks of a target on a written archive, and run its check unless a hook has. Raises T2NError."""
    export = result.export
    arguments = (export.model, result.graph, export.inputs.tensors, result.archive, bundle)
    target.post_write(*arguments)
    pending = PendingCheck(result.assert_parity)
    if check or type(target).post_export is not InferenceTarget.post_export:
        with pending.active():
            target.post_export(*arguments)
    if check and target.check_io and not target.checks_in_hook:
        pending.run()
