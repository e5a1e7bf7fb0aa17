"""The run of a cell that generates: its export with state, and the check of its tokens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_t2n.collect.generating import GenerateOptions
from pytest_t2n.collect.markers import CaseOptions
from pytest_t2n.config.settings import Settings
from pytest_t2n.records.cell import Cell, SelectedEngine
from pytest_t2n.run.exports.converter import target_of
from t2n_core.export.options import ExportOptions

if TYPE_CHECKING:
    from t2n_core.export.result import ExportResult
    from t2n_core.generative import GenerativeExport, GenerativeResult
    from t2n_core.parity.generation.outcome import GenerationOutcome

    Generating = ExportResult | GenerativeResult


def model_and_prompt(returned: Any) -> tuple[Any, Any]:
    """Return the model and the prompt of a test's result; the prompt is None if there is none."""
    if isinstance(returned, tuple | list) and len(returned) == 2:
        return returned[0], returned[1]
    return returned, None


def new_generating(
    model: Any, prompt: Any, options: CaseOptions, generate: GenerateOptions, rewriters: tuple[Any, ...]
) -> GenerativeExport:
    """Return the export of a model of transformers with the options of a test. Raises T2NError."""
    from t2n_core.generative import GenerativeExport

    default, arguments = ExportOptions().arguments(), options.export.arguments()
    arguments["rewriters"] = rewriters
    more = {name: value for name, value in arguments.items() if value != default[name] and name != "dynamic_axes"}
    return GenerativeExport(
        model,
        prompt,
        batch=generate.batch,
        last_logits=generate.last_logits,
        dynamic_axes=options.export.dynamic_axes,
        **more,
    )


def to_folder(export: GenerativeExport, options: CaseOptions, engine: SelectedEngine, folder: Path) -> GenerativeResult:
    """Write the archives for an engine to a folder. Raises T2NError."""
    plain = replace(options, export=replace(options.export, dynamic_axes=None))
    return export.to(target_of(engine, plain, check_io=False), folder)


def prompts_of(prompt: Any, options: GenerateOptions) -> Any:
    """Return the prompts of the marker, or the tokens that the test returned; None to draw random ones."""
    if options.prompts is not None:
        return options.prompts
    is_tokens = getattr(prompt, "ndim", 0) == 2 and not prompt.is_floating_point()
    return prompt if is_tokens else None


def check_tokens(
    cell: Cell, settings: Settings, result: Generating, prompts: Any, steps: int, level: Any, timeout: float
) -> GenerationOutcome:
    """Return the outcome of one check, with the first wrong node if the user requested it. Raises T2NError."""
    generation = result.check_generation(prompts, steps, tolerance=level, timeout=timeout)
    outcome = replace(generation.outcome, engine=cell.engine.title)
    if settings.bisect and generation.first_different is not None and outcome.error is not None:
        outcome = outcome.with_details(_first_wrong(result, prompts, steps, level, timeout))
    return replace(generation, outcome=outcome)


def decoder_of(result: Generating) -> ExportResult:
    """Return the archive that generates."""
    untyped_result: Any = result
    return getattr(untyped_result, "decoder", untyped_result)  # type: ignore[no-any-return]


def _first_wrong(result: Generating, prompts: Any, steps: int, level: Any, timeout: float) -> str:
    from t2n_core.check.generation.first_wrong import find_first_wrong_step
    from t2n_core.errors import T2NError

    try:
        return find_first_wrong_step(
            decoder_of(result), prompts, steps, level, state=result.state, timeout=timeout
        ).describe()
    except T2NError as exc:
        return f"no first wrong node: {exc}"
