"""Bundles of failures for `--t2n-bundle-failures`: check, samples, graph, and the command that reproduces it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_t2n.config.engines import runner_of
from pytest_t2n.records.cell import SelectedEngine
from pytest_t2n.records.file import encode
from pytest_t2n.records.from_outcome import outcome_record
from pytest_t2n.records.platform import this_platform
from pytest_t2n.run.bundles import CheckInputs, npz_of, write_check, write_manifest
from pytest_t2n.run.export_summary import graph_text
from t2n_core.engine.provision.resolved import CPU
from t2n_core.engine.tiers import NATIVE
from t2n_core.errors import InputError
from t2n_core.nnef.reading.origins import write_origins
from t2n_core.text import in_markdown, visible

if TYPE_CHECKING:
    from t2n_core.parity.outcome import Outcome

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_SLUG = 60


def write_failure_bundle(directory: Path, inputs: CheckInputs, outcome: Outcome, origins: Mapping[str, str]) -> str:
    """Write the bundle of a failure into a separate folder; return a line with the command that reproduces it.

    If the disk is full, only the bundle is lost.
    """
    try:
        folder = directory / folder_name(inputs.cell.nodeid)
        words = _write_failure(folder, inputs, outcome, _actual(inputs, outcome))
        write_origins(folder, origins)
        return words
    except (OSError, InputError) as exc:
        return f"no bundle of this failure: {exc}"


def folder_name(nodeid: str) -> str:
    """Return a readable, safe and unique name for the folder of a cell."""
    return f"{_UNSAFE.sub('_', nodeid.rpartition('::')[2])[:_SLUG]}-{sha256(nodeid.encode()).hexdigest()[:8]}"


def _write_failure(folder: Path, inputs: CheckInputs, outcome: Outcome, actual: Sequence[Sequence[Any]]) -> str:

    cell = inputs.cell
    write_manifest(folder, [write_check(folder, inputs)], this_platform())
    (folder / "outcome.json").write_text(encode(outcome_record(cell, outcome)) + "\n", encoding="utf-8")
    (folder / "numbers.npz").write_bytes(npz_of(inputs.request.samples, actual))
    graph = graph_text(inputs.request.archive)
    if graph:
        (folder / "graph.nnef").write_bytes(graph)
    command = f"t2n matrix run --bundle {folder} {_selection(cell.engine)}"
    where = f"{outcome.status.value} at stage {outcome.stage.value} in {cell.engine.title}"
    parts = [f"# {in_markdown(cell.nodeid)}", where, _indented(command), _indented(outcome.describe())]
    (folder / "README.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return f"reproduce: {command}"


def _indented(text: str) -> str:
    """Return a text as a block of code in Markdown, which none of its lines ends."""
    return "\n".join(f"    {line}" for line in visible(text).splitlines())


def _selection(engine: SelectedEngine) -> str:
    """Return the options of `t2n matrix run` that select an engine."""
    fields = engine.resolved
    if fields is None:
        return "--khronos"
    words = [f"--tract path:{fields['library']}" if fields["kind"] == "cli" else f"--tract {engine.version}"]
    words += [f"--cpu {fields['tier']}"] if fields["tier"] != NATIVE else []
    words += [f"--runtime {fields['runtime']}"] if fields["runtime"] != CPU else []
    words += [f"--paths {fields['paths']}"] if fields["paths"] else []
    return " ".join(words)


def _actual(inputs: CheckInputs, outcome: Outcome) -> Sequence[Sequence[Any]]:
    """Return the engine's outputs for a mismatch; an empty list for other failures."""
    if outcome.status.value != "mismatch":
        return ()
    try:
        from t2n_core.engine.paths import on_path

        request = inputs.request
        batches = [sample.inputs for sample in request.samples]
        engine = on_path(runner_of(inputs.cell.engine), outcome.path, outcome.failed_sizes)
        return list(engine.run(request.archive, batches, timeout=request.timeout).outputs)
    except Exception:
        return ()
