"""`t2n check FILE` compares the outputs of engines with expected ones. It never imports torch.

t2n check model.nnef.tgz --inputs x.npz --expected y.npz --tract all
t2n check model.onnx --tract all-minors

Without expected outputs they are computed by the definitions of an archive's operators, or by onnxruntime for an ONNX
model, and without inputs these are drawn.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from pytest_t2n.cli.arrays import read_sets
from pytest_t2n.cli.busy import busy
from pytest_t2n.cli.engine_choice import add_engine_options, engines_closed, engines_of
from pytest_t2n.cli.output import show_table
from pytest_t2n.cli.parser import LEVEL_HELP, SIZE_HELP, size_argument
from pytest_t2n.config.engines import runner_of
from t2n_core.check.file import CheckedFile, check_file, file_request, open_checked, outcome_without_samples
from t2n_core.engine.paths import on_path
from t2n_core.errors import DrawError, InputError, MeaningError, T2NError
from t2n_core.level import DEFAULT_LEVEL, TractCheckTolerance
from t2n_core.nnef.reading.file_kind import is_onnx
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.stage import PASSING, Stage, Status
from t2n_core.releases.loading import with_hint_on_loading

if TYPE_CHECKING:
    from pytest_t2n.records.cell import SelectedEngine
    from t2n_core.engine.protocol import Engine
    from t2n_core.parity.outcome import Outcome
    from t2n_core.parity.request import CheckRequest


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "archive", type=Path, metavar="FILE", help="an archive: a .tgz, a .tar or a folder; or an ONNX model"
    )
    parser.add_argument(
        "--inputs",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="arrays by the names of the inputs, or a folder of input_N.pb and output_N.pb; random ones if missing",
    )
    parser.add_argument(
        "--expected",
        type=Path,
        nargs="+",
        metavar="NPZ",
        help="the outputs for each of these, by name; if missing, those in the files of --inputs, or those by the "
        "definitions of the archive's operators, or of onnxruntime for an ONNX model",
    )
    parser.add_argument("--size", action="append", default=[], type=size_argument, metavar="NAME=N", help=SIZE_HELP)
    parser.add_argument("--tolerance", default=str(DEFAULT_LEVEL), metavar="LEVEL", help=LEVEL_HELP)
    parser.add_argument("--transforms", default="", metavar="NAMES", help="of the engine, as f32_to_f16,round_trip")
    parser.add_argument("--strict", action="store_true", help="a pass that proves little is a failure")
    parser.add_argument(
        "--bisect",
        action="store_true",
        help="name the first statement or node that tract computes otherwise than it is defined",
    )
    parser.add_argument(
        "--repair",
        action="store_true",
        help="write an ONNX model that more engines read to the file of -o, proven to have the same outputs",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the repaired model")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each engine")
    add_engine_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Return 1 if the outputs of an engine differ, or it fails. Raises T2NError for wrong arguments."""
    criteria = Judgement(TractCheckTolerance.parse(options.tolerance))
    transforms = _transforms_of(options.transforms)
    file = open_checked(options.archive, dict(options.size))
    inputs, expected = read_sets(file, options.inputs or [], options.expected or [])
    if options.repair and not is_onnx(file.path):
        raise InputError("--repair is for ONNX models", hint="export an archive again with `t2n export`")
    if options.repair != (options.output is not None):
        raise InputError("--repair writes the model to the file of -o")
    engines = engines_of(options, Console(stderr=True))
    _require(transforms, engines)
    targets = dict.fromkeys(engine.target for engine in engines)
    requests: dict[str, CheckRequest] = {}
    without: dict[str, T2NError] = {}
    for target in targets:
        try:
            requests[target] = file_request(file, inputs, expected, target, criteria, options.timeout)
        except (DrawError, MeaningError) as wrong:
            without[target] = wrong
    outcomes = []
    with engines_closed(), busy(f"checking {options.archive}") as show:
        for number, engine in enumerate(engines, 1):
            show(f"checking {options.archive} in {engine.title}, {number} of {len(engines)}")
            runner, request = runner_of(engine), requests.get(engine.target)
            if request is None:
                why = without[engine.target]
                outcome = outcome_without_samples(file, runner, engine.target, why, options.timeout)
            else:
                outcome = check_file(file, runner, engine.target, request)
            if engine.kind == "tract":
                outcome = with_hint_on_loading(outcome, file.path, engine.version, options.cache_dir)
            if request is not None and options.bisect and engine.target == "tract" and not outcome.passed:
                at = on_path(runner, outcome.path, outcome.failed_sizes)
                outcome = outcome.with_details(_wrong_part(at, request))
            ended = [(engine.title, outcome)]
            if request is not None and outcome.passed:
                ended += _after_transforms(engine, request, transforms)
            outcomes += ended
            if options.json:
                for title, result in ended:
                    print(json.dumps({**result.to_dict(), "engine": title}))
        if not options.json:
            _show(outcomes)
        if options.repair and all(outcome.passed for _, outcome in outcomes):
            print(f"nothing to repair: {options.output} is not written", file=sys.stderr)
        elif options.repair and requests:
            outcomes = _repair(file, requests, engines, outcomes, options)
    accepted = (Status.PASS,) if options.strict else PASSING
    return 0 if all(outcome.status in accepted for _, outcome in outcomes) else 1


def _repair(
    file: CheckedFile,
    requests: Mapping[str, CheckRequest],
    engines: Sequence[SelectedEngine],
    outcomes: Sequence[tuple[str, Outcome]],
    options: argparse.Namespace,
) -> list[tuple[str, Outcome]]:
    """Write a repaired ONNX model, if any engine comes further with it, and return the outcomes of all engines."""
    from tempfile import TemporaryDirectory

    from t2n_core.files import write_whole
    from t2n_core.onnx_file.repaired import search_repairs

    def check(request: CheckRequest) -> list[Outcome]:
        return [check_file(file, runner_of(engine), engine.target, request) for engine in engines]

    before = [dict(outcomes)[engine.title] for engine in engines]
    with TemporaryDirectory() as folder:
        repaired = search_repairs(requests[engines[0].target], check, before, Path(folder))
        if repaired.repairs:
            write_whole(options.output, repaired.path.read_bytes())
    ended = [
        (engine.title, _without_advice(outcome)) for engine, outcome in zip(engines, repaired.outcomes, strict=True)
    ]
    if options.json:
        for title, outcome in ended:
            print(json.dumps({**outcome.to_dict(), "engine": title, "repairs": repaired.repairs}))
    else:
        print(f"{options.output}: {', '.join(repaired.repairs)}" if repaired.repairs else "nothing was repaired")
        for name, reason in repaired.unused.items():
            print(f"  not used: {name}: {reason}")
        _show(ended)
    return ended


def _without_advice(outcome: Outcome) -> Outcome:
    """Return the outcome of a repaired model without the advice to repair it."""
    if outcome.error is None or "--repair" not in (outcome.error.hint or ""):
        return outcome
    hint = "no repair helps further: try another release, or an archive by `t2n export`"
    return replace(outcome, error=replace(outcome.error, hint=hint))


def _wrong_part(engine: Engine, request: CheckRequest) -> str:
    """Return the first statement or node that an engine computes otherwise than the reference, as text."""
    if is_onnx(request.archive):
        from t2n_core.onnx_file.wrong_node import describe_wrong_node

        return describe_wrong_node(engine, request)
    from t2n_core.reduce.wrong_statement import describe_wrong_statement

    return describe_wrong_statement(engine, request, engine.version)


def _transforms_of(text: str) -> tuple[str, ...]:
    """Return comma-separated transforms. Raises InputError for a transform that no check can judge."""
    from pytest_t2n.config.transforms import read_transforms
    from t2n_core.engine.tract.transforms.transform import split_names

    try:
        return read_transforms(split_names(text))
    except ValueError as wrong:
        raise InputError(f"--transforms: {wrong}") from None


def _require(transforms: Sequence[str], engines: Sequence[SelectedEngine]) -> None:
    """Raise InputError for a transform that no engine has."""
    from pytest_t2n.config.transforms import require_transforms

    try:
        require_transforms(transforms, engines)
    except InputError as wrong:
        raise InputError(str(wrong).replace("--t2n-", "--")) from None


def _after_transforms(
    engine: SelectedEngine, request: CheckRequest, transforms: Sequence[str]
) -> Iterator[tuple[str, Outcome]]:
    """Yield the outcome after each transform that an engine has; a transform that does not apply is an error."""
    from pytest_t2n.config.transforms import refusal
    from t2n_core.check.transforms.alone import check_transform_alone
    from t2n_core.engine.tract.engine import TractEngine
    from t2n_core.parity.outcome import Outcome

    runner = runner_of(engine)
    if not isinstance(runner, TractEngine):
        return
    for name in transforms:
        if refusal(name, engine.version) is not None:
            continue
        try:
            outcome = check_transform_alone(runner, request, [name])
        except InputError as wrong:
            outcome = Outcome.from_error(wrong, Stage.SETUP)
        yield f"{engine.title} {name}", outcome


def _show(outcomes: list[tuple[str, Outcome]]) -> None:
    rows = []
    for title, outcome in outcomes:
        message = outcome.error.message.partition("\n")[0] if outcome.error is not None else "; ".join(outcome.notes)
        worst = max((output.max_abs for output in outcome.outputs), default=None)
        level = outcome.level.value if outcome.level is not None else ""
        number = f"{worst:.3g}" if worst is not None else ""
        rows.append((title, outcome.status.value, outcome.stage.value, level, number, message))
    show_table(("engine", "status", "stage", "level", "max abs", "message"), rows)
    for _, outcome in outcomes:
        if not outcome.passed:
            print(outcome.describe())
