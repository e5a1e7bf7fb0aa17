"""One check of an archive in its engine, with what the user wants kept of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_t2n.collect.cells import Cell
from pytest_t2n.config.engines import cache_folder
from pytest_t2n.config.settings import Settings

if TYPE_CHECKING:
    from pytest_t2n.run.bundles import Material
    from t2n_core.check.outcome import Outcome
    from t2n_core.export import ExportResult

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_SLUG = 60


def check_result(cell: Cell, settings: Settings, result: ExportResult, required: Any, timeout: float) -> Outcome:
    """The outcome of one check, from an earlier session if the user wants that; never raises for a failing cell."""
    from t2n_core.check.outcome import Outcome

    material = None
    try:
        if settings.bundle or settings.bundle_failures or settings.reuse:
            material = _material(cell, result, required)
        if material is not None and settings.bundle is not None:
            from pytest_t2n.run.bundles import add_to_bundle

            add_to_bundle(settings.bundle, material)
        with _turn(settings, material, timeout):
            outcome = _reused(settings, material)
            if outcome is None:
                outcome = result.check_parity(required, timeout=timeout)
                _keep(settings, material, outcome)
                outcome = _measured(settings, result, outcome, timeout)
    except Exception as exc:
        outcome = Outcome.from_error(exc, "compare")
    if not outcome.engine:
        outcome = replace(outcome, engine=cell.engine.title)
    if settings.bisect and not outcome.passed:
        outcome = _with_first_wrong_node(outcome, result, required, timeout)
    if material is not None and settings.bundle_failures is not None and not outcome.passed:
        outcome = _with_bundle(settings.bundle_failures, material, outcome, result, timeout)
    return outcome


def _material(cell: Cell, result: ExportResult, required: Any) -> Material | None:
    from pytest_t2n.run.bundles import Material
    from t2n_core.check.level import TractCheckTolerance

    try:
        samples = result.samples
    except Exception:
        return None  # the check says why PyTorch cannot compute them
    level = TractCheckTolerance.parse(required).value
    return Material(cell, result.archive, samples, list(result.output_names), level)


def _reused(settings: Settings, material: Material | None) -> Outcome | None:
    if material is None or not settings.reuse:
        return None
    from pytest_t2n.run.reuse import find_result

    return find_result(cache_folder(settings), material)


def _turn(settings: Settings, material: Material | None, timeout: float) -> AbstractContextManager[None]:
    if material is None or not settings.reuse:
        return nullcontext()
    from pytest_t2n.run.reuse import turn

    return turn(cache_folder(settings), material, timeout)


def _measured(settings: Settings, result: ExportResult, outcome: Outcome, timeout: float) -> Outcome:
    if not settings.benchmark or not outcome.passed:
        return outcome
    from pytest_t2n.run.benchmark import FACT, measure

    found = measure(result, outcome, timeout, settings.benchmark_rounds)
    return outcome if found is None else replace(outcome, facts={**outcome.facts, FACT: found})


def _keep(settings: Settings, material: Material | None, outcome: Outcome) -> None:
    if material is not None and settings.reuse:
        from pytest_t2n.run.reuse import keep_result

        keep_result(cache_folder(settings), material, outcome)


def _with_first_wrong_node(outcome: Outcome, result: ExportResult, required: Any, timeout: float) -> Outcome:
    """The outcome, whose details name the node; of no use to one that did not reach the engine."""
    from t2n_core.bisect import find_first_wrong_node
    from t2n_core.errors import T2NError

    if outcome.stage.value not in ("load", "optimise", "run", "compare"):
        return outcome
    try:
        words = find_first_wrong_node(result, required, timeout=timeout).describe()
    except T2NError as exc:
        words = f"no first wrong node: {exc}"
    return _with_details(outcome, words)


def _with_details(outcome: Outcome, words: str) -> Outcome:
    from t2n_core.check.outcome import ErrorInfo

    error = outcome.error or ErrorInfo.of(outcome.stage, "Failure", outcome.status.value)
    return replace(outcome, error=replace(error, details=f"{error.details}\n{words}".strip()))


def _with_bundle(
    directory: Path, material: Material, outcome: Outcome, result: ExportResult, timeout: float
) -> Outcome:
    """The outcome, whose details say where the bundle is; a full disk costs the bundle only."""
    nodeid = material.cell.nodeid
    slug = f"{_UNSAFE.sub('_', nodeid.rpartition('::')[2])[:_SLUG]}-{sha256(nodeid.encode()).hexdigest()[:8]}"
    try:
        words = _write_failure(directory / slug, material, outcome, _actual(material, outcome, result, timeout))
    except OSError as exc:
        words = f"no bundle of this failure: {exc}"
    return _with_details(outcome, words)


def _write_failure(folder: Path, material: Material, outcome: Outcome, actual: Sequence[Sequence[Any]]) -> str:
    from pytest_t2n.control.ledger import package_versions
    from pytest_t2n.records.from_report import outcome_record
    from pytest_t2n.records.schema import encode
    from pytest_t2n.run.bundles import npz_of, write_check, write_manifest
    from pytest_t2n.run.export_summary import graph_text

    cell = material.cell
    write_manifest(folder, [write_check(folder, material)], package_versions())
    (folder / "outcome.json").write_text(encode(outcome_record(cell, outcome)) + "\n", encoding="utf-8")
    (folder / "numbers.npz").write_bytes(npz_of(material.samples, actual))
    graph = graph_text(material.archive)
    if graph:
        (folder / "graph.nnef").write_bytes(graph)
    binary = bool(cell.engine.resolved) and cell.engine.resolved is not None and cell.engine.resolved["kind"] == "cli"
    selected = f"path:{cell.engine.resolved['library']}" if binary and cell.engine.resolved else cell.engine.version
    select = "--khronos" if cell.engine.target == "khronos" else f"--tract {selected}"
    command = f"t2n matrix run --bundle {folder} {select}"
    text = f"# {cell.nodeid}\n\n{outcome.status.value} at stage {outcome.stage.value} in {cell.engine.title}\n"
    (folder / "README.md").write_text(f"{text}\n    {command}\n\n```\n{outcome.describe()}\n```\n", encoding="utf-8")
    return f"reproduce: {command}"


def _actual(material: Material, outcome: Outcome, result: ExportResult, timeout: float) -> Sequence[Sequence[Any]]:
    """What the engine computed: of a mismatch only, whose engine answers."""
    if outcome.status.value != "mismatch":
        return ()
    try:
        batches = [sample.inputs for sample in material.samples]
        return result.target.engine().run(material.archive, batches, timeout=timeout).outputs
    except Exception:
        return ()


__all__ = ["check_result"]
