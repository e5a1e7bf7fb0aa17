"""The check of an archive in its engine, with the extras that the user requested."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_t2n.config.engines import cache_folder
from pytest_t2n.config.settings import Settings
from pytest_t2n.records.cell import Cell
from pytest_t2n.records.from_report import DTYPE_PROPERTY, OP_PROPERTY
from pytest_t2n.run.export_summary import summarise
from t2n_core.parity.stage import AUTHOR, Author

if TYPE_CHECKING:
    from pytest_t2n.run.bundles import CheckInputs
    from t2n_core.check.bisect import FirstWrongNode
    from t2n_core.export.result import ExportResult
    from t2n_core.parity.judging.judgement import Judgement
    from t2n_core.parity.outcome import Outcome
    from t2n_core.releases.judges import Releases
    from t2n_core.releases.search import Judge


def check_result(
    cell: Cell,
    settings: Settings,
    result: ExportResult,
    criteria: Judgement,
    timeout: float,
    properties: Mapping[str, object],
    index: int,
    transforms: Sequence[str] = (),
    tell: Callable[[str], object] = lambda problem: None,
) -> Outcome:
    """Return the outcome of one check, from an earlier session if the user allows that; never raises for a failure.

    `properties` are what the test has recorded so far, `index` is the check's, `transforms` are the test's.
    `tell` takes a line about a file that could not be written.
    """
    from t2n_core.parity.outcome import Outcome

    inputs = checked = None
    try:
        if settings.bundle or settings.bundle_failures or settings.reuse or settings.reduce:
            inputs = _inputs(cell, result, criteria, timeout, properties, index)
        outcome = checked = _check(settings, result, inputs, criteria, timeout, tell)
        if outcome.passed and (transforms or settings.transforms):
            from pytest_t2n.run.transforms import with_transforms

            outcome = with_transforms(outcome, cell, result, criteria, timeout, transforms, settings.transforms)
    except Exception as exc:
        outcome = Outcome.from_error(exc, "compare")
    if settings.profile is not None and outcome.passed:
        outcome = _with_profile(settings.profile, cell, result, outcome, timeout)
    outcome = replace(outcome, engine=cell.engine.title)  # with its tier and runtime, which a check does not know
    return (
        outcome
        if outcome.passed
        else _with_explanations(cell, settings, result, inputs, outcome, checked, criteria, timeout)
    )


def _check(
    settings: Settings,
    result: ExportResult,
    inputs: CheckInputs | None,
    criteria: Judgement,
    timeout: float,
    tell: Callable[[str], object],
) -> Outcome:
    """Run the check, or reuse a result; add it to the bundle, and measure its times."""
    check = partial(result.check_parity, criteria, timeout=timeout)
    if settings.bundle is not None and inputs is not None:
        from pytest_t2n.run.bundles import keep_in_bundle

        keep_in_bundle(settings.bundle, inputs, tell)
    if settings.reuse and inputs is not None and not criteria.metrics:  # a function cannot be proven to be the same
        from pytest_t2n.run.reuse import reuse_result

        outcome = reuse_result(cache_folder(settings), inputs, check, timeout)
    else:
        outcome = check()
    if settings.benchmark:
        from pytest_t2n.run.benchmark import with_times

        outcome = with_times(outcome, result, timeout, settings.benchmark_rounds)
    return outcome


def _with_profile(directory: Path, cell: Cell, result: ExportResult, outcome: Outcome, timeout: float) -> Outcome:
    """Write the profile of a passing cell; return its outcome, with a note if that failed."""
    from pytest_t2n.run.profiled import write_profile
    from t2n_core.errors import T2NError

    try:
        write_profile(directory, cell, result, timeout)
    except (T2NError, OSError) as exc:
        return replace(outcome, facts={**outcome.facts, "not_profiled": str(exc)})
    return outcome


def _with_explanations(
    cell: Cell,
    settings: Settings,
    result: ExportResult,
    inputs: CheckInputs | None,
    outcome: Outcome,
    checked: Outcome | None,
    criteria: Judgement,
    timeout: float,
) -> Outcome:
    """Return a failure with the first wrong node and a bundle, if the user requested them.

    `checked` is the outcome before any transform; None if that check did not run.
    """
    wrong_node = None
    if cell.engine.kind == "tract":
        from t2n_core.releases.loading import with_hint_on_loading

        outcome = with_hint_on_loading(outcome, result.archive, cell.engine.version, cache_folder(settings))
    if settings.bisect:
        outcome, wrong_node = _with_first_wrong_node(outcome, result, checked, criteria, timeout)
    if settings.bisect_releases:
        outcome = _with_releases(outcome, settings, result, criteria, timeout)
    if settings.reduce is not None and inputs is not None:
        from pytest_t2n.run.failures.reduced import reduce_failure
        from t2n_core.nnef.reading.origins import origins_of

        outcome = outcome.with_details(reduce_failure(settings, settings.reduce, inputs, origins_of(result.graph)))
    if settings.bundle_failures is not None and inputs is not None:
        from pytest_t2n.run.failure_bundle import write_failure_bundle
        from t2n_core.nnef.reading.origins import origins_of

        written = getattr(result, "graph", None)
        origins = {} if written is None else origins_of(written)
        words = write_failure_bundle(settings.bundle_failures, inputs, outcome, origins)
        outcome = outcome.with_details(words)
        if wrong_node is not None and wrong_node.nodes:
            from pytest_t2n.run.failures.page import page_of_failure

            outcome = outcome.with_details(page_of_failure(settings, inputs, outcome, result, wrong_node.nodes))
    return outcome


def _inputs(
    cell: Cell, result: ExportResult, criteria: Judgement, timeout: float, properties: Mapping[str, object], index: int
) -> CheckInputs | None:
    """Return the inputs of the check; None if PyTorch cannot compute the samples, which the check then reports."""
    from pytest_t2n.run.bundles import CheckInputs, Subject

    try:
        request = result.check_request(criteria, timeout)
    except Exception:
        return None
    summary = summarise(result)
    subject = Subject(
        op=str(properties.get(OP_PROPERTY, "")),
        ops=list(summary.ops),
        dtype=str(properties.get(DTYPE_PROPERTY, summary.dtype)),
        notes=list(summary.notes),
    )
    return CheckInputs(cell, request, subject, index, result.drawn)


def _with_first_wrong_node(
    outcome: Outcome, result: ExportResult, checked: Outcome | None, criteria: Judgement, timeout: float
) -> tuple[Outcome, FirstWrongNode | None]:
    """Return the outcome with the first wrong node among its details, and that node.

    An outcome without a run of the engine is unchanged.
    """
    from t2n_core.check.bisect import find_first_wrong_node
    from t2n_core.errors import T2NError
    from t2n_core.inference_target import TractNNEF

    if outcome.stage.value not in ("load", "optimise", "run", "compare"):
        return outcome, None
    if outcome.facts.get(AUTHOR) == Author.ENGINE and isinstance(result.target, TractNNEF):
        from t2n_core.engine.paths import on_path
        from t2n_core.reduce.wrong_statement import describe_wrong_statement

        request, version = result.check_request(criteria, timeout), str(result.target.version)
        engine = on_path(result.target.engine(), outcome.path, outcome.failed_sizes)
        outcome = outcome.with_details(describe_wrong_statement(engine, request, version))
    try:
        wrong_node = find_first_wrong_node(result, criteria, timeout=timeout, outcome=checked)
    except T2NError as exc:
        return outcome.with_details(f"no first wrong node: {exc}"), None
    return outcome.with_details(wrong_node.describe()), wrong_node


def _with_releases(
    outcome: Outcome, settings: Settings, result: ExportResult, criteria: Judgement, timeout: float
) -> Outcome:
    """Return the outcome with the releases between which the result changes among its details."""
    from t2n_core.inference_target import TractNNEF
    from t2n_core.releases.exports import export_judge
    from t2n_core.scratch import scratch_folder

    export, target = result.export, result.target
    if not isinstance(target, TractNNEF):
        return outcome
    with scratch_folder() as folder:

        def judge_of(releases: Releases) -> Judge:
            return export_judge(
                releases,
                lambda release, path: export.to(target.on(release), path),
                folder,
                criteria=criteria,
                timeout=timeout,
            )

        return outcome.with_details(boundaries(settings, judge_of))


def boundaries(settings: Settings, judge_of: Callable[[Releases], Judge]) -> str:
    """Return the releases between which a judge's result changes, as text, or why there is none."""
    from t2n_core.errors import T2NError
    from t2n_core.releases.judges import Releases

    try:
        with Releases(offline=settings.offline, cache_dir=cache_folder(settings)) as releases:
            return releases.search(judge_of(releases)).describe()
    except T2NError as exc:
        return f"the other releases did not run: {exc}"
