"""The result of an export: an archive, its sources, and its checks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2n_core.check.exported.archive import ExportedArchive
from t2n_core.check.exported.manifest import manifest_of, write_manifest
from t2n_core.check.exported.parity import Tolerance, check_exported, criteria_for
from t2n_core.check.exported.pulsed import PulsedArchive, write_pulsed
from t2n_core.export.exportable_model import ExportableModel
from t2n_core.export.notebook import result_html
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.tolerance import TractCheckTolerance
from t2n_core.rewriter.report import RewriteReport

if TYPE_CHECKING:
    from t2n_core.parity.generation.outcome import GenerationOutcome


@dataclass(slots=True, repr=False)
class ExportResult(ExportedArchive):
    """An archive on disk, with its export and target."""

    export: ExportableModel
    """The `ModelExport` that wrote the archive."""
    rewrites: RewriteReport
    """The rewriters that applied, and the user's rewriters that did not."""
    pulsed: PulsedArchive | None = None
    """The stream as a separate archive, if the target has `pulsed_archive`."""

    def __repr__(self) -> str:
        valid = f", holds for {self.range}" if str(self.range) else ""
        names = f"{', '.join(self.input_names)} -> {', '.join(self.output_names)}"
        return f"<ExportResult {self.archive.name} for {self.target}: {names}{valid}>"

    def __fspath__(self) -> str:
        """Return the path of the archive, so that a result is taken where a path is."""
        return str(self.archive)

    def _repr_html_(self) -> str:
        """Return the graph as HTML for a notebook: each operation beside its line of the model."""
        return result_html(repr(self), self.graph, self.target.spec)

    def manifest(self) -> dict[str, Any]:
        """Return what a program that runs the archive has to know, as JSON has it: inputs, outputs, state, stream."""
        return manifest_of(self, self.pulsed)

    def write_manifest(self) -> Path:
        """Write `manifest()` beside the archive, and return its path: `model.manifest.json` of `model.nnef.tgz`."""
        return write_manifest(self, self.pulsed)

    def check_parity(self, tolerance: Tolerance = None, *, timeout: float = 60.0, **judged_by: Any) -> Outcome:
        """Run the archive in the target's engine on all samples. Failures are outcomes, never raised.

        `tolerance` is a level, levels by the names of outputs, or a `Judgement`; `judged_by` are `atol`, `rtol`,
        `metric`, `bound` and `reference`, as of `Judgement.of`. `timeout` is in seconds.

        Raises InputError for an unknown level, or other arguments that `Judgement.of` refuses.
        """
        __tracebackhide__ = True
        return check_exported(self, criteria_for(self, tolerance, **judged_by), timeout=timeout)

    def check_streaming(
        self,
        pulse: int,
        tolerance: str | TractCheckTolerance | Judgement | None = None,
        *,
        symbol: str | None = None,
        timeout: float = 60.0,
    ) -> Outcome:
        """Run the archive as a stream, `pulse` steps of the time axis at a time; see `check.exported.streaming`.

        Raises InputError for an unknown level, a pulse below 1, or a model without one dynamic axis to stream.
        """
        from t2n_core.check.exported.streaming import check_streaming

        criteria = Judgement.parse(self.target.check_io_tolerance if tolerance is None else tolerance)
        return check_streaming(self, pulse, criteria, symbol=symbol, timeout=timeout)

    def write_pulsed(
        self,
        path: str | Path,
        pulse: int,
        tolerance: str | TractCheckTolerance | Judgement | None = None,
        *,
        symbol: str | None = None,
        timeout: float = 60.0,
        compression_level: int | None = None,
    ) -> PulsedArchive:
        """Write the engine's pulsed model as an archive, and prove that; see `check.exported.pulsed`.

        Raises InputError as check_streaming does, WriteError, EngineError, ParityError; nothing is written then.
        """
        criteria = Judgement.parse(self.target.check_io_tolerance if tolerance is None else tolerance)
        return write_pulsed(
            self, Path(path), pulse, criteria, symbol=symbol, timeout=timeout, compression=compression_level
        )

    def check_transform(
        self,
        *transforms: Any,
        tolerance: Tolerance = None,
        own: Judgement | None = None,
        timeout: float = 60.0,
        **judged_by: Any,
    ) -> Outcome:
        """Apply transforms of the engine to the archive in turn, and compare with PyTorch on all samples.

        Each is a name, or the engine's JSON with arguments, as text or mapping; `round_trip` lets the engine write the
        archive and loads that. The level is `tolerance`, with `judged_by` as for `check_parity`; by default an exact
        transform's is `own`, or the target's, and a lossy one has its own. A transform that does not change the model
        makes a pass weak. Failures of the engine are outcomes, never raised.

        Raises InputError for an unknown level or transform, and for a transform that no check can judge.
        """
        from t2n_core.check.transforms.check import check_transform

        __tracebackhide__ = True
        own = Judgement.of(self.own_level) if own is None else own
        has_criteria = tolerance is not None or judged_by
        default = self.target.check_io_tolerance
        criteria = Judgement.of(tolerance, **judged_by, default=default) if has_criteria else None
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
        """Generate token by token in the target's engine, and compare with the model's own tokens.

        See `t2n_core.parity.generation`.

        `prompts` is a number of random prompts, or a list of tokens or tensors. `model` computes the reference instead
        of the exported model. Raises InputError for an unknown level, or prompts that the model cannot take.
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
