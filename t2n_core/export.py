"""The whole pipeline: capture, lower, check against the spec, write, run, compare. The only module that knows them all.

export_model_to_nnef(model, (x,), "model.nnef.tgz", TractNNEF("0.21"))
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from t2n_core.check.outcome import Outcome, Stage, Status
from t2n_core.check.parity import check_parity
from t2n_core.check.samples import Array, Sample
from t2n_core.check.table import sizes_text
from t2n_core.check.tolerance import TractCheckTolerance
from t2n_core.drawn import draw_inputs, is_strategy
from t2n_core.errors import CaptureError, InputError, LowerError, RewriteError, UnsupportedOpsError
from t2n_core.inference_target import InferenceTarget, KhronosNNEF
from t2n_core.nnef.archive import write_archive
from t2n_core.nnef.graph import Graph
from t2n_core.nnef.legality import check_graph
from t2n_core.nnef.ranges import SizeRange
from t2n_core.op.compression import DequantisedSource, Q40Weight, compressible
from t2n_core.op.custom_extractors import ModuleInfoExtractor
from t2n_core.op.lower import has_rule, lower
from t2n_core.op.registry import Registry, load_default
from t2n_core.reference import Runnable, reference_samples, resized_inputs, resized_sample
from t2n_core.rewriter.activation import rewriting
from t2n_core.rewriter.builtin import builtin_rewriters
from t2n_core.rewriter.captures import Capture, Captures
from t2n_core.rewriter.context import CAPTURE_LOCK, Session, Target, as_it_is
from t2n_core.rewriter.functions import RulesOfAnExport, operator_bodies
from t2n_core.rewriter.modules import inputs_of_replacement, restore_labels
from t2n_core.rewriter.report import RewriteReport, RewriteWarning
from t2n_core.rewriter.selection import Selection, select
from t2n_core.rewriter.specs import Rewriter
from t2n_core.rounding import compared_in_double
from t2n_core.torch_graph.bfloat16 import without_bfloat16
from t2n_core.torch_graph.declared_axes import normalise
from t2n_core.torch_graph.inputs import ModelInputs, bind_inputs
from t2n_core.torch_graph.ir import TorchModuleIRGraph, TorchOp
from t2n_core.torch_graph.naming import NAMING_SCHEMES, NamingScheme
from t2n_core.torch_graph.norms import fold_norms
from t2n_core.torch_graph.passes import simplify
from t2n_core.torch_graph.sources import CAPTURE_WAYS, CaptureWay, Model, Source, source_of
from t2n_core.torch_graph.tracer import CapturedModel, TorchModuleTracer


@dataclass(slots=True)
class ModelExport:
    """One model with example inputs, captured once and exported to any number of targets.

    Args:
        model: a module in evaluation mode, which is never changed (bfloat16 is exported as a copy in float32,
            with a warning); an ExportedProgram; a ScriptModule; or the path of
            a saved one of the last two.
        args: a tensor, a tuple of arguments, or a dict of named tensors; arguments may be nested. An ExportedProgram
            brings its own.
        kwargs: further keyword arguments of the method.
        input_names, output_names: of the archive; taken from `forward` and numbered if not given.
        dynamic_axes: {input name: {axis: symbol}} or {input name: [axes]}; in place of a symbol a `torch.export.Dim`
            with bounds, or a multiple of one.
        extra_inputs: further arguments like `args`, checked on the same archive; or a strategy of hypothesis that
            gives such arguments (arrays of NumPy become tensors), of which ten are drawn.
        rules: the operators' rules, if not the default ones.
        rewriters: of functions, modules and rules; see `t2n_core.rewriter`.
        strict_rewrites: a rewriter that fits the target and never applies is an error, not a warning.
        builtin_rewriters: also use those of this package for known libraries.
        fn_name: the method of a module that is exported.
        capture: "export" (torch.export), or "trace" (torch.jit.trace) for what that refuses: decisions that the model
            takes in Python on tensors' numbers are frozen then, with a FrozenDecision warning for each line.
        nnef_variable_naming_scheme: of the tensors in the archive's text: "natural" (module path and operator), "raw"
            (as in the torch graph) or "numeric" (v0, v1, …). Inputs, outputs and the weights' labels stay the same.
    """

    model: Any
    args: Any = None
    kwargs: Mapping[str, Any] | None = None
    input_names: Sequence[str] | None = None
    output_names: Sequence[str] | None = None
    dynamic_axes: Any = None
    extra_inputs: Any = ()
    rules: Registry | None = None
    rewriters: Sequence[Rewriter] = ()
    strict_rewrites: bool = False
    builtin_rewriters: bool = True
    fn_name: str = "forward"
    capture: CaptureWay = "export"
    nnef_variable_naming_scheme: NamingScheme = "natural"
    times: dict[str, float] = field(default_factory=dict)
    """Seconds of the stages that are shared by all targets."""
    source: Source = field(init=False, repr=False)
    inputs: ModelInputs = field(init=False, repr=False)
    _captures: Captures = field(default_factory=Captures, init=False, repr=False)
    _samples: dict[tuple[str, frozenset[str]], list[Sample]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.capture not in CAPTURE_WAYS:
            raise InputError(f"capture={self.capture!r} is none of {', '.join(CAPTURE_WAYS)}")
        if self.nnef_variable_naming_scheme not in NAMING_SCHEMES:
            wanted = self.nnef_variable_naming_scheme
            raise InputError(f"nnef_variable_naming_scheme={wanted!r} is none of {', '.join(NAMING_SCHEMES)}")
        if is_strategy(self.extra_inputs):
            self.extra_inputs = draw_inputs(self.extra_inputs)
        self.source = source_of(self.model, self.fn_name)
        self.model = self.source.module
        if self.source.program is None:
            calls = [self.args, self.kwargs, list(self.extra_inputs)]
            self.model, (self.args, self.kwargs, self.extra_inputs) = without_bfloat16(self.model, calls)
            self.source = replace(self.source, module=self.model)
        self.inputs = bind_inputs(self.source, self.args, self.kwargs, self.input_names)

    @property
    def captured(self) -> CapturedModel:
        """The latest capture, else one for no target in particular. Raises CaptureError, InputError, RewriteError."""
        latest = self._captures.latest
        return self.captured_for(None) if latest is None else latest

    def captured_for(self, target: InferenceTarget | None) -> CapturedModel:
        """Shared by all targets for which the same rewriters act on the model. Raises like `captured`."""
        return self._capture(target, self._selection(target)).model

    @property
    def samples(self) -> list[Sample]:
        """What PyTorch computes, at the traced sizes and at others. Raises InputError."""
        return self.samples_with(frozenset())

    def samples_with(self, compressed: frozenset[str], held: SizeRange | None = None) -> list[Sample]:
        """What PyTorch computes with these weights as they come out of their blocks, at sizes within a range: of the
        capture, if none is given. Raises InputError."""
        held = self.captured.range if held is None else held
        key = (str(held), compressed)
        if key not in self._samples:
            model = DequantisedSource(self.source, compressed) if compressed else self.source
            self._samples[key] = self._sampled(model, held)
        return self._samples[key]

    def sample_at(self, sizes: Mapping[str, int], compressed: frozenset[str] = frozenset()) -> Sample:
        """Random inputs with these sizes of all dynamic axes, and what PyTorch computes of them.

        Raises InputError if the model cannot run at these sizes.
        """
        model = DequantisedSource(self.source, compressed) if compressed else self.source
        shapes = [v.shape for v in self.captured.graph.inputs]
        with as_it_is():
            return resized_sample(model, self.inputs, shapes, dict(sizes))

    def inputs_at(self, sizes: Mapping[str, int]) -> tuple[Array, ...] | None:
        """Random inputs with these sizes of all dynamic axes; None where there are none, or they are huge."""
        shapes = [v.shape for v in self.captured.graph.inputs]
        return resized_inputs(self.inputs, shapes, dict(sizes))

    def _sampled(self, model: Runnable, held: SizeRange) -> list[Sample]:
        captured = self.captured
        extra = [bind_inputs(self.source, more, self.kwargs, self.inputs.names) for more in self.extra_inputs]
        shapes = [v.shape for v in captured.graph.inputs]
        dims = [*(d for v in captured.graph.data_nodes for d in v.shape), *captured.graph.bounds()]
        with as_it_is(), _timed(self.times, "reference"):
            return reference_samples(model, self.inputs, shapes, captured.symbols, extra, held, dims)

    def lower(self, target: InferenceTarget) -> Graph:
        """The NNEF graph for a target, legal there.

        Raises CaptureError, RewriteError, UnsupportedOpsError, SpecError.
        """
        return self._lower(target)[0]

    def _selection(self, target: InferenceTarget | None) -> Selection:
        builtin = builtin_rewriters() if self.builtin_rewriters else ()
        return select([*self.rewriters, *builtin], target)

    def _session(self, target: InferenceTarget | None) -> Session:
        names = ("input_names", "output_names", "dynamic_axes", "fn_name", "capture", "strict_rewrites")
        return Session(Target(target), MappingProxyType({name: getattr(self, name) for name in names}))

    def _capture(self, target: InferenceTarget | None, selection: Selection) -> Capture:
        known = self._captures.find(selection, target)
        if known is not None:
            return known
        refusal = self._captures.find_refusal(selection)
        if refusal is not None:
            raise refusal
        session = self._session(target)
        try:
            with _timed(self.times, "capture"), rewriting(self.model, selection, session) as rewritten:
                captured = TorchModuleTracer(
                    replace(self.source, module=rewritten.model),
                    inputs_of_replacement(self.source, rewritten.model, self.inputs),
                    self.dynamic_axes,
                    ModuleInfoExtractor.get_by_module,
                    rewritten.modes,
                    self.capture,
                ).trace()
        except CaptureError as error:
            self._captures.keep_refusal(error, selection, session)
            raise
        if selection.modules:
            restore_labels(captured.graph, self.model)
        return self._captures.keep(captured, selection, session)

    def simplified(self, target: InferenceTarget) -> TorchModuleIRGraph:
        """The torch graph as its operators are written for a target. Raises CaptureError, RewriteError."""
        return self._simplified(target, self._selection(target), self._session(target))

    def write_graph(self, simple: TorchModuleIRGraph, names: Sequence[str], target: InferenceTarget) -> Graph:
        """A simplified torch graph, with these output names, in NNEF. Raises UnsupportedOpsError, SpecError."""
        return self._written(simple, names, target, self._selection(target), self._session(target))

    def _rules(self, selection: Selection, session: Session) -> Registry:
        rules = self.rules or load_default()
        return RulesOfAnExport(rules, selection, session.hits) if selection.rules else rules

    def _simplified(self, target: InferenceTarget, selection: Selection, session: Session) -> TorchModuleIRGraph:
        traced = self._capture(target, selection).model.graph.copy()  # a hook's changes must not reach other targets
        target.post_trace(traced)
        traced.compressible = compressible(traced, target.writing)
        rules, ours = self._rules(selection, session), load_default()
        has_form = has_rule(rules, target.spec, target.writing)
        with CAPTURE_LOCK:  # decompositions are traced like models
            simple = simplify(traced, has_form, operator_bodies(selection, session))

        def is_plain(op: TorchOp) -> bool:
            wanted = (op.kind, target.spec, target.writing)
            return rules.find(*wanted) is ours.find(*wanted)

        return fold_norms(simple, is_plain)

    def _lower(self, target: InferenceTarget) -> tuple[Graph, RewriteReport]:
        selection, session = self._selection(target), self._session(target)
        capture = self._capture(target, selection)
        simple = self._simplified(target, selection, session)
        graph = self._written(simple, self._output_names(capture.model), target, selection, session)
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
        options, fragments, scheme = target.writing, target.custom_fragments, self.nnef_variable_naming_scheme
        captured = self._capture(target, selection).model
        sizes = target.size_range(captured.range)
        if not sizes.holds(captured.symbols):
            raise InputError(f"the example's sizes {sizes_text([captured.symbols])} are outside of the range {sizes}")
        graph = lower(simple, target.spec, rules, list(names), options, fragments, scheme, sizes)
        example = self._capture(target, selection).model.symbols
        if graph.sizes.bounds and not graph.sizes.holds(example):
            raise LowerError(
                f"the archive would hold for {graph.sizes} alone, without the sizes of the example",
                target=str(target),
                hint="this release fails on a tensor without elements that the model has there: give a larger example",
            )
        for fragment in target.specific_fragments(graph):
            graph.fragments.setdefault(fragment.name, fragment)
        target.post_export(graph)
        problems = check_graph(graph, target.spec)
        if problems:
            raise problems[0] if len(problems) == 1 else UnsupportedOpsError(problems, target=str(target))
        return graph

    def _complain(self, problem: RewriteError | None) -> None:
        if problem is not None and self.strict_rewrites:
            raise problem
        if problem is not None:
            warnings.warn(RewriteWarning(str(problem)), stacklevel=_frames_of_this_package())

    def to(self, target: InferenceTarget, path: str | Path, *, compression_level: int | None = None) -> ExportResult:
        """Writes the archive for one target. Raises T2NError; nothing is left under `path` then."""
        self._take_axes_of(target)
        times: dict[str, float] = {}
        target.pre_trace(self.model, self.inputs.tensors)
        _ = self.captured_for(target)  # timed by itself
        with _timed(times, "lower"):
            graph, report = self._lower(target)
        with _timed(times, "write"):
            archive = write_archive(graph, path, spec=target.spec, compression=compression_level)
        return ExportResult(archive, target, self, graph, {**self.times, **times}, report)

    def _take_axes_of(self, target: InferenceTarget) -> None:
        """Raises InputError for axes that differ from those that this export has or was captured with."""
        if not target.dynamic_axes:
            return
        if self.dynamic_axes is None and self._captures.latest is None:
            self.dynamic_axes = target.dynamic_axes
        tensors = zip(self.inputs.names, self.inputs.tensors, strict=True)
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors}
        if normalise(target.dynamic_axes, shapes) != normalise(self.dynamic_axes, shapes):
            raise InputError(
                "the target's dynamic_axes differ from those of this export",
                hint="one capture has one set of dynamic axes: make a ModelExport for each",
            )

    def _output_names(self, captured: CapturedModel) -> list[str]:
        count = len(captured.graph.outputs)
        if self.output_names is None:
            names = list(captured.result_names)
            if len(set(names)) != count:
                names = [f"output_{i}" for i in range(count)]
            return [f"{n}_of_model" if n in self.inputs.names else n for n in names]
        if len(self.output_names) != count:
            raise InputError(f"{len(self.output_names)} output names for {count} outputs")
        if len({*self.output_names, *self.inputs.names}) != count + len(self.inputs.names):
            raise InputError("input and output names must all differ")
        return list(self.output_names)


@dataclass(slots=True)
class ExportResult:
    """An archive on disk and what it came from."""

    archive: Path
    target: InferenceTarget
    export: ModelExport
    graph: Graph
    times: dict[str, float]
    """Seconds: capture, lower, write."""
    rewrites: RewriteReport = field(default_factory=lambda: RewriteReport({}, {}))
    """Which rewriters applied, and which were given and did not."""

    @property
    def input_names(self) -> list[str]:
        return [v.name for v in self.graph.inputs]

    @property
    def output_names(self) -> list[str]:
        return [v.name for v in self.graph.outputs]

    @property
    def samples(self) -> list[Sample]:
        """What PyTorch computes with the weights that the archive holds. Raises InputError."""
        return self.export.samples_with(self._compressed, self.graph.sizes if self.graph.sizes.bounds else None)

    @property
    def range(self) -> SizeRange:
        """The sizes of the dynamic axes that the archive holds for."""
        return self.graph.sizes

    @property
    def outside(self) -> list[Sample]:
        """Inputs of sizes just outside of the range, which the engine has to refuse; nothing is expected of them."""
        if not self.graph.guarded:
            return []
        found = []
        for sizes in self.range.just_outside(self.export.captured.symbols):
            inputs = self.export.inputs_at(sizes)
            if inputs is not None:
                found.append(Sample(inputs, (), sizes, "outside"))
        return sorted(found, key=lambda sample: any(not array.size for array in sample.inputs))

    def sample_at(self, sizes: Mapping[str, int]) -> Sample:
        """As `samples`, at these sizes of all dynamic axes. Raises InputError if the model cannot run there."""
        return self.export.sample_at(sizes, self._compressed)

    @property
    def _compressed(self) -> frozenset[str]:
        variables = self.graph.variables()
        return frozenset(op.arguments["label"] for op, v in variables if isinstance(v.weight, Q40Weight))

    def check_parity(self, tolerance: str | TractCheckTolerance | None = None, *, timeout: float = 60.0) -> Outcome:
        """Runs the archive in the target's engine on all samples. What fails is in the outcome, never raised.

        Raises InputError for an unknown level.
        """
        level = TractCheckTolerance.parse(tolerance if tolerance is not None else self.target.check_io_tolerance)
        try:
            samples, outside, engine = self.samples, self.outside, self.target.engine()
        except Exception as cause:
            return Outcome.from_error(cause, Stage.SETUP)
        found = check_parity(
            engine,
            self.archive,
            samples,
            tolerance=level,
            output_names=self.output_names,
            timeout=timeout,
            held=self.range,
            outside=outside,
        )
        if found.passed and self.target.pulse is not None:
            return self.check_streaming(self.target.pulse, level, timeout=timeout)
        return self._explained(found).with_times(self.times)

    def _explained(self, outcome: Outcome) -> Outcome:
        """With the lines of the model that were decided for the traced size, where it fails at others."""
        if outcome.status is Status.MISMATCH and isinstance(self.target, KhronosNNEF):
            return compared_in_double(
                outcome, self.archive, self.samples[0].inputs, self.export.source, self.export.inputs
            )
        return outcome

    def check_streaming(
        self,
        pulse: int,
        tolerance: str | TractCheckTolerance | None = None,
        *,
        symbol: str | None = None,
        timeout: float = 60.0,
    ) -> Outcome:
        """Runs the archive as a stream, `pulse` steps of the time axis at a time; see `t2n_core.streaming`.

        Raises InputError for an unknown level, a pulse below 1, or a model without one dynamic axis to stream.
        """
        from t2n_core.streaming import check_streaming

        return check_streaming(self, pulse, tolerance, symbol=symbol, timeout=timeout)

    def assert_parity(self, tolerance: str | TractCheckTolerance | None = None, *, timeout: float = 60.0) -> Outcome:
        """Like check_parity, but raises the T2NError of a failure (ParityError, EngineCrash, …)."""
        return self.check_parity(tolerance, timeout=timeout).raise_for_failure()


def export_model_to_nnef(
    model: Model,
    args: Any,
    file_path_export: str | Path,
    inference_target: InferenceTarget,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    compression_level: int | None = None,
    extra_inputs: Any = (),
    rules: Registry | None = None,
    rewriters: Sequence[Rewriter] = (),
    strict_rewrites: bool = False,
    builtin_rewriters: bool = True,
    fn_name: str = "forward",
    capture: CaptureWay = "export",
    nnef_variable_naming_scheme: NamingScheme = "natural",
) -> ExportResult:
    """Exports a model, and unless the target says otherwise proves the archive in the target's engine.

    Args:
        model, args: see `ModelExport`; a module is never changed.
        file_path_export: a folder, `.tar`, `.tgz` or `.tar.gz`.
        inference_target: `TractNNEF("0.21")`, `KhronosNNEF()`.
        input_names, output_names: names in the archive.
        compression_level: of `.tgz`: 0 to 3.
        rewriters, strict_rewrites, builtin_rewriters, fn_name, capture,
            nnef_variable_naming_scheme: see `ModelExport`.

    Raises:
        InputError, RewriteError, CaptureError, UnsupportedOpsError, SpecError, WriteError: nothing is written then.
        EngineError, ParityError: the check failed; the archive is removed.
    """
    axes = inference_target.dynamic_axes or None
    export = ModelExport(
        model,
        args,
        kwargs,
        input_names,
        output_names,
        axes,
        extra_inputs,
        rules,
        rewriters,
        strict_rewrites,
        builtin_rewriters,
        fn_name,
        capture,
        nnef_variable_naming_scheme,
    )
    result = export.to(inference_target, file_path_export, compression_level=compression_level)
    if inference_target.check_io:
        try:
            result.assert_parity()
        except Exception:
            _remove(result.archive)
            raise
    return result


def _frames_of_this_package() -> int:
    """For warnings, which shall show the user's line."""
    frame, count = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("t2n_core."):
        frame, count = frame.f_back, count + 1
    return count


def _remove(archive: Path) -> None:
    if archive.is_dir():
        for file in archive.iterdir():
            file.unlink()
        archive.rmdir()
    else:
        archive.unlink(missing_ok=True)


@contextmanager
def _timed(times: dict[str, float], stage: str) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    finally:
        times[stage] = time.perf_counter() - start
