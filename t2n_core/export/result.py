"""An archive, what it was made from, and its checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from t2n_core.check.judging.judgement import FLOAT16_LEVEL, Judgement
from t2n_core.check.mismatch.causes import with_causes
from t2n_core.check.mismatch.float64_recheck import recheck_in_float64
from t2n_core.check.mismatch.rounding import note_rounding
from t2n_core.check.outcome import Outcome, Stage, Status
from t2n_core.check.parity import check_parity
from t2n_core.check.reference import Reference
from t2n_core.check.request import CheckRequest
from t2n_core.check.samples import DRAWN, Sample
from t2n_core.check.state_pairs import StatePair
from t2n_core.check.tolerance import TractCheckTolerance
from t2n_core.errors import InputError
from t2n_core.export.notebook import result_html
from t2n_core.export.state import state_pairs
from t2n_core.inference_target import InferenceTarget, KhronosNNEF
from t2n_core.nnef.dependence import constant_outputs
from t2n_core.nnef.graph import Graph
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.op.stored.source import StoredWeights
from t2n_core.rewriter.report import RewriteReport
from t2n_core.torch_graph.capture.tracer import CapturedModel

if TYPE_CHECKING:
    from t2n_core.check.generation.outcome import GenerationOutcome
    from t2n_core.export.model import ModelExport

Tolerance: TypeAlias = "str | TractCheckTolerance | Mapping[str, str | TractCheckTolerance] | Judgement | None"


@dataclass(slots=True, repr=False)
class ExportResult:
    """An archive on disk, with the export and target that it came from."""

    archive: Path
    target: InferenceTarget
    export: ModelExport
    graph: Graph
    times: dict[str, float]
    """Seconds: capture, lower, write."""
    reference: Reference
    """Samples of PyTorch for the capture that the archive was made from."""
    rewrites: RewriteReport = field(default_factory=lambda: RewriteReport({}, {}))
    """The rewriters that applied, and the given ones that did not."""
    notes: tuple[str, ...] = ()
    """A line for each option that had no effect, for what an option left as it is, and for each result that is no
    tensor."""

    def __repr__(self) -> str:
        held = f", holds for {self.range}" if str(self.range) else ""
        names = f"{', '.join(self.input_names)} -> {', '.join(self.output_names)}"
        return f"<ExportResult {self.archive.name} for {self.target}: {names}{held}>"

    def _repr_html_(self) -> str:
        """Return the graph as a notebook shows it: each statement with its line of torch beside it."""
        return result_html(repr(self), self.graph, self.target.spec)

    @property
    def captured(self) -> CapturedModel:
        """Return the capture that the archive was made from."""
        return self.reference.captured

    @property
    def input_names(self) -> list[str]:
        return [v.name for v in self.graph.inputs]

    @property
    def output_names(self) -> list[str]:
        return [v.name for v in self.graph.outputs]

    @property
    def state(self) -> tuple[StatePair, ...]:
        """Return the inputs that take what the call before left, with the outputs that are their next values."""
        known = self.export.source.state
        if known is None:
            return ()
        return state_pairs(known, self.export.inputs, self.captured.results, self.input_names, self.output_names)

    @property
    def planned_level(self) -> str:
        """Return the level that the way of writing calls for: `float16` if a plan is followed, else ''."""
        return "" if self.target.writing.precision is None else FLOAT16_LEVEL

    @property
    def own_level(self) -> str:
        """Return the level of a check that asks for none."""
        return self.planned_level or self.target.check_io_tolerance.value

    @property
    def constant_outputs(self) -> frozenset[str]:
        """Return the names of the outputs that no number of an input reaches."""
        return constant_outputs(self.graph)

    @property
    def samples(self) -> list[Sample]:
        """Return inputs and the outputs of PyTorch with the weights that the archive holds. Raises InputError."""
        return self.reference.samples(self.graph.sizes if self.graph.sizes.bounds else None, self.stored)

    @property
    def range(self) -> SizeRange:
        """Return the sizes of the dynamic axes that the archive holds for."""
        return self.graph.sizes

    @property
    def outside(self) -> list[Sample]:
        """Return inputs of sizes just outside of the range, which the engine has to refuse; they expect no outputs."""
        if not self.graph.guarded:
            return []
        found = []
        for sizes in self.range.just_outside(self.captured.symbols):
            inputs = self.reference.inputs_at(sizes)
            if inputs is not None:
                found.append(Sample(inputs, (), sizes, "outside"))
        return sorted(found, key=lambda sample: any(not array.size for array in sample.inputs))

    def sample_at(self, sizes: Mapping[str, int]) -> Sample:
        """Return a sample at these sizes of all dynamic axes. Raises InputError if the model cannot run there."""
        return self.reference.sample_at(sizes, self.stored)

    @property
    def drawn(self) -> dict[str, str]:
        """Return how the random inputs of samples were drawn, by the names of the inputs."""
        return self.reference.drawn(self.stored)

    @property
    def stored(self) -> StoredWeights:
        """Return the labels of the weights that the archive holds in another form than the model, with the form."""
        return frozenset(self.graph.stored.items())

    def check_request(self, criteria: Judgement, timeout: float = 60.0) -> CheckRequest:
        """Return the check of this archive by these criteria; `timeout` is in seconds.

        Raises InputError if the model cannot compute the samples.
        """
        return CheckRequest(
            self.archive,
            self.samples,
            self.output_names,
            criteria,
            timeout,
            self.range,
            self.outside,
            self.constant_outputs,
            carries=self.target.pulse is not None,
            state=[(self.input_names.index(one.input), self.output_names.index(one.output)) for one in self.state],
            model=lambda inputs: self.reference.answer(inputs, self.stored),
        )

    def check_parity(self, tolerance: Tolerance = None, *, timeout: float = 60.0, **judged_by: Any) -> Outcome:
        """Run the archive in the target's engine on all samples. What fails is in the outcome, never raised.

        `tolerance` is a level, levels by the names of outputs, or a `Judgement`; `judged_by` are `atol`, `rtol`,
        `metric` and `bound`, as of `Judgement.of`. `timeout` is in seconds.

        Raises InputError for an unknown level, or what `Judgement.of` refuses.
        """
        __tracebackhide__ = True
        try:
            given = self.own_level if tolerance is None and not judged_by else tolerance
            criteria = Judgement.of(given, **judged_by, default=self.target.check_io_tolerance)
        except InputError as wrong:
            raise wrong.with_traceback(None) from None  # the user's call is what is wrong
        if unknown := criteria.unmatched(self.output_names):
            raise InputError(f"there is no output {', '.join(unknown)} to judge", hint=f"it has {self.output_names}")
        try:
            request, engine = self.check_request(criteria, timeout), self.target.engine()
            if criteria.in_float64:
                request = replace(request, samples=self.reference.in_float64(request.samples))
        except Exception as cause:
            return Outcome.from_error(cause, Stage.SETUP)
        found = check_parity(engine, request)
        if found.passed and self.target.pulse is not None:
            return self.check_streaming(self.target.pulse, criteria, timeout=timeout)
        if found.status is Status.MISMATCH:
            found = self._explained(found, request)
        drawn = self.drawn
        return replace(found, facts={**found.facts, DRAWN: drawn} if drawn else found.facts).with_times(self.times)

    def _explained(self, mismatch: Outcome, request: CheckRequest) -> Outcome:
        """Return a mismatch with its known causes, judged again in float64."""
        if isinstance(self.target, KhronosNNEF):
            source, inputs = self.reference.source, self.reference.inputs
            mismatch = recheck_in_float64(mismatch, self.archive, self.samples, source, inputs)
        elif not request.criteria.in_float64:
            mismatch = note_rounding(mismatch, self.target.engine(), request, self.reference)
        return with_causes(mismatch, self.reference, self.samples)

    def check_streaming(
        self,
        pulse: int,
        tolerance: str | TractCheckTolerance | Judgement | None = None,
        *,
        symbol: str | None = None,
        timeout: float = 60.0,
    ) -> Outcome:
        """Run the archive as a stream, `pulse` steps of the time axis at a time; see `t2n_core.check.streaming`.

        Raises InputError for an unknown level, a pulse below 1, or a model without one dynamic axis to stream.
        """
        from t2n_core.check.streaming import check_streaming

        criteria = Judgement.parse(self.target.check_io_tolerance if tolerance is None else tolerance)
        return check_streaming(self, pulse, criteria, symbol=symbol, timeout=timeout)

    def check_transform(
        self,
        *transforms: Any,
        tolerance: Tolerance = None,
        own: Judgement | None = None,
        timeout: float = 60.0,
        **judged_by: Any,
    ) -> Outcome:
        """Apply transforms of the engine to the archive in turn, and compare with PyTorch on all samples.

        Each is a name, or the engine's JSON with arguments, as text or mapping; `round_trip` writes the archive by the
        engine and loads that. The level is `tolerance`, with `judged_by` as of `check_parity`; without them that of an
        exact transform is `own`, by default the target's, and a lossy one has its own. A transform that leaves the
        model as it was makes a pass weak. What the engine does is in the outcome, never raised.

        Raises InputError for an unknown level or transform, and for a transform that no check can judge.
        """
        from t2n_core.check.transforms.check import check_transform

        __tracebackhide__ = True
        own = Judgement.of(self.own_level) if own is None else own
        given = tolerance is not None or judged_by
        default = self.target.check_io_tolerance
        criteria = Judgement.of(tolerance, **judged_by, default=default) if given else None
        return check_transform(self, transforms, criteria, own, timeout=timeout)

    def assert_transform(self, *transforms: Any, **options: Any) -> Outcome:
        """Run check_transform, and raise the T2NError of a failure (ParityError, EngineCrash, …)."""
        __tracebackhide__ = True
        return self.check_transform(*transforms, **options).raise_for_failure()

    def check_generation(
        self,
        prompts: Any = None,
        steps: int = 32,
        tolerance: str | TractCheckTolerance | None = None,
        *,
        model: Any = None,
        timeout: float = 60.0,
    ) -> GenerationOutcome:
        """Generate token by token in the target's engine, and compare with the model's own; see
        `t2n_core.check.generation`.

        `prompts` is a number of random ones, or a list of tokens or tensors. `model` is asked for the reference in
        place of the exported one. Raises InputError for an unknown level, or prompts that the model cannot take.
        """
        from t2n_core.check.generation.result_check import check_result

        return check_result(self, prompts, steps, tolerance, model=model, timeout=timeout)

    def assert_generation(
        self,
        prompts: Any = None,
        steps: int = 32,
        tolerance: str | TractCheckTolerance | None = None,
        *,
        model: Any = None,
        timeout: float = 60.0,
    ) -> GenerationOutcome:
        """Run check_generation, and raise the T2NError of a failure (ParityError, EngineCrash, …)."""
        return self.check_generation(prompts, steps, tolerance, model=model, timeout=timeout).raise_for_failure()

    def assert_parity(self, tolerance: Tolerance = None, *, timeout: float = 60.0, **judged_by: Any) -> Outcome:
        """Run check_parity, and raise the T2NError of a failure (ParityError, EngineCrash, …)."""
        __tracebackhide__ = True
        return self.check_parity(tolerance, timeout=timeout, **judged_by).raise_for_failure()


__all__ = ["ExportResult"]
