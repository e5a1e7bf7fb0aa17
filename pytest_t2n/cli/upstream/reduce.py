"""`t2n reduce` writes the smallest graph that still fails alike. It never imports torch."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_t2n.cli.output import say
from pytest_t2n.cli.upstream.releases import add_given, given_of
from t2n_core.errors import InputError

if TYPE_CHECKING:
    from pytest_t2n.cli.upstream.given import Given
    from t2n_core.engine.provision.resolved import ResolvedEngine
    from t2n_core.reduce.program import Program

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_given(parser)
    add_engine(parser)
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help="where the reduced cases are put"
    )
    parser.add_argument("--oracle", default="", metavar="VERSION", help="a release that is right, or float64")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for one case; default 60")
    parser.set_defaults(run=run)


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names an engine."""
    parser.add_argument(
        "--engine", default="", metavar="ENGINE", help="0.21.8, khronos or path:/to/tract; default: that of the bundle"
    )


def engine_of(options: argparse.Namespace, given: Given) -> ResolvedEngine | None:
    """Return the engine that is named, else that of the bundle; None for the Khronos tools. Raises InputError."""
    from t2n_core.engine import resolve_engines

    named = options.engine or ("khronos" if given.target == "khronos" else given.version)
    if not named:
        raise InputError("name the engine that fails with --engine")
    if named == "khronos":
        return None
    return resolve_engines(named, offline=options.offline, cache_dir=options.cache_dir)[-1]


def folder_of(output: Path, given: Given, count: int) -> Path:
    """Return the folder for a case: `output` itself for the only one, else one of its own in there."""
    return output if count == 1 else output / _UNSAFE.sub("_", given.name.rpartition("::")[2])


def run(options: argparse.Namespace) -> int:
    """Reduce each case; print what is left."""
    from t2n_core.reduce.case import FailingCase, reduce_case
    from t2n_core.releases.judges import Releases

    def progress(name: str, program: Program) -> None:
        say(f"  {name}: {program.operators} operators, {program.elements} elements")

    found = given_of(options)
    with Releases(offline=options.offline, cache_dir=options.cache_dir) as releases:
        for given in found:
            engine = engine_of(options, given)
            case = FailingCase(
                given.archive, given.samples, engine, tuple(given.output_names), given.tolerance, given.origins
            )
            folder = folder_of(options.output, given, len(found))
            folder.parent.mkdir(parents=True, exist_ok=True)
            say(f"{given.name}: {engine.label if engine else 'khronos'}")
            result = reduce_case(
                case,
                folder,
                releases,
                oracle=options.oracle,
                seconds=options.seconds,
                timeout=min(options.timeout, options.seconds),
                progress=progress,
            )
            say(result.describe())
    return 0


__all__ = ["add_commands", "add_engine", "engine_of", "folder_of", "run"]
