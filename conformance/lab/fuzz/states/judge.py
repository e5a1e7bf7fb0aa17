"""Feeds engines with their own outputs, and compares with a program's loop over the model itself."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from conformance.lab.fuzz.judge import (
    ENGINE_SECONDS,
    EXPORT_SECONDS,
    STATUS_OF_REPLY,
    Finding,
    TooLongError,
    checked_paths,
    place_of,
    summed_up,
    time_limit,
)
from conformance.lab.fuzz.states.program import StateProgram
from conformance.lab.fuzz.verdict import EXCEPTION, HANG, RED, REFUSED, RIGHT, WRONG, Verdict, cause_of
from t2n_core.engine import engine_for
from t2n_core.engine.paths import EnginePath, OnPath
from t2n_core.errors import T2NError, UnsupportedOpsError
from t2n_core.export.model import ModelExport
from t2n_core.export.result import ExportResult
from t2n_core.inference_target import TractNNEF
from t2n_core.parity.comparison import compare_outputs

CALLS = 5


def judge_states(program: StateProgram, targets: Sequence[TractNNEF]) -> list[Verdict]:
    """Return one verdict per target. The model is captured once."""
    definition = program.load()
    example = definition.tree(program.example())
    try:
        export = ModelExport(definition.model, {"x": torch.randn(1, 2), "state": example}, state=program.state)
    except Exception as error:
        return [_raised(target, error) for target in targets]
    return [_judge_one(program, export, target) for target in targets]


def _judge_one(program: StateProgram, export: ModelExport, target: TractNNEF) -> Verdict:
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="t2n-fuzz-") as folder:
        try:
            with time_limit(EXPORT_SECONDS):
                result = export.to(target, Path(folder, "m.tar"))
        except Exception as error:
            return _raised(target, error)
        paths = [path for path in checked_paths(target) if path is not EnginePath.FIXED_SYMBOLS]
        findings = [_loop_on_path(program, result, path) for path in paths]
        outcome = result.check_parity()
        if all(finding.status == RIGHT for finding in findings) and not outcome.passed:
            findings.append(Finding({}, RED, outcome.describe()))
    return summed_up(str(target), findings, time.monotonic() - start)


def _raised(target: TractNNEF, error: Exception) -> Verdict:
    """Return the verdict of an export that has raised an error."""
    if isinstance(error, TooLongError):
        return Verdict(str(target), HANG, "export takes too long", "export takes too long")
    if isinstance(error, T2NError):
        first = error.problems[0] if isinstance(error, UnsupportedOpsError) else error
        return Verdict(str(target), REFUSED, str(error), cause_of(f"{type(first).__name__}: {first.message}"))
    text = f"{type(error).__name__}: {error} {place_of(error)}"
    return Verdict(str(target), EXCEPTION, text, cause_of(text))


def _loop_on_path(program: StateProgram, result: ExportResult, path: EnginePath) -> Finding:
    """Compare calls in a row, each of which takes the state that the one before has left.

    Only names connect the two loops: the inputs' names of the documentation, and the pairs of the result.
    """
    engine: Any = engine_for(result.target.resolved)
    if path is not EnginePath.DECLUTTER:
        engine = OnPath(engine, path, {})
    definition, start = program.load(), program.start()
    state = definition.tree([tensor.clone() for tensor in start])
    fed = {name: tensor.numpy() for name, tensor in zip(program.names, start, strict=True)}
    torch.manual_seed(program.seed + 2)
    for call in range(1, CALLS + 1):
        x = torch.randn(1, 2)
        fed["x"] = x.numpy()
        reply = engine.run(result.archive, [[fed[name] for name in result.input_names]], timeout=ENGINE_SECONDS)
        if reply.status != "ok":
            return Finding({}, STATUS_OF_REPLY[reply.status], f"call {call} at stage {reply.stage}: {reply.message}")
        actual = dict(zip(result.output_names, reply.outputs[0], strict=True))
        for pair in result.state:
            fed[pair.input] = actual.pop(pair.output)
        with torch.no_grad():
            outputs, state = definition.after(definition.model(x, state), state)
        tensors: list[Tensor] = list(outputs)
        if len(actual) != len(tensors):
            return Finding({}, WRONG, f"call {call} on the path {path}: the outputs are {', '.join(actual) or 'none'}")
        expected = tuple(tensor.numpy() for tensor in tensors)
        bad = [
            comparison
            for comparison in compare_outputs(expected, tuple(actual.values()), names=list(actual))
            if not comparison.passed
        ]
        if bad:
            words = [
                f"{output.name}: {output.problem or output.worst_actual} in place of {output.worst_expected}"
                for output in bad
            ]
            return Finding({}, WRONG, f"call {call} on the path {path}: {'; '.join(words)}")
    return Finding({}, RIGHT)
