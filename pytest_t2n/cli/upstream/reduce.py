"""`t2n reduce` writes the smallest graph with the same failure. It never imports torch."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_t2n.cli.output import say
from pytest_t2n.cli.upstream.releases import add_given, given_of
from t2n_core.errors import InputError, T2NError

if TYPE_CHECKING:
    from pytest_t2n.cli.upstream.given import Given
    from t2n_core.engine.provision.resolved import ResolvedEngine
    from t2n_core.reduce.program import Program

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 150
"""Most characters of a folder's name."""


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_given(parser)
    add_engine(parser)
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help="where the reduced cases are put"
    )
    parser.add_argument(
        "--oracle", default="", metavar="VERSION", help="a release that is right, definitions or float64"
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="time for one case; default 60")
    parser.set_defaults(run=run)


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the argument for an engine."""
    parser.add_argument(
        "--engine", default="", metavar="ENGINE", help="0.21.8, khronos or path:/to/tract; default: that of the bundle"
    )


def engine_of(options: argparse.Namespace, case: Given) -> ResolvedEngine | None:
    """Return the selected engine, or the bundle's; None for the Khronos tools. Raises InputError."""
    from t2n_core.engine import resolve_engines

    engine_spec = options.engine or ("khronos" if case.target == "khronos" else case.version)
    if not engine_spec:
        raise InputError("name the engine that fails with --engine")
    if engine_spec == "khronos":
        return None
    return resolve_engines(engine_spec, offline=options.offline, cache_dir=options.cache_dir)[-1]


def folders_of(output: Path, cases: Sequence[Given]) -> list[Path]:
    """Return the folder for each case: `output` itself for a single case, otherwise a separate one in it.

    It is named after the test, or after the node id if tests share a name, with a number for several engines.
    """
    if len(cases) == 1:
        return [output]
    short = [_slug(case.name.rpartition("::")[2]) for case in cases]
    names = [_slug(case.name) if short.count(name) > 1 else name for case, name in zip(cases, short, strict=True)]
    used_names: dict[str, None] = {}
    for name in names:
        numbered = (f"{name}-{number}" if number > 1 else name for number in count(1))
        # some file systems are not case-sensitive
        used_names[next(slug for slug in numbered if slug.lower() not in map(str.lower, used_names))] = None
    return [output / name for name in used_names]


def each_case(cases: Sequence[Given], output: Path, action: Callable[[Given, Path], bool]) -> int:
    """Call `action` with each case and its folder; return 1 if it is False, or raises a T2NError, for one of them.

    A case that fails is reported, and the others continue. The error of a single case is raised.
    """
    done = []
    for case, folder in zip(cases, folders_of(output, cases), strict=True):
        try:
            done.append(action(case, folder))
        except T2NError as error:
            if len(cases) == 1:
                raise
            say(f"{case.name}: {error}")
            done.append(False)
    if len(cases) > 1 and not all(done):
        say(f"{done.count(False)} of {len(cases)} cases were not done")
    return int(not all(done))


def _slug(name: str) -> str:
    """Return a text as the name of a folder; systems allow at most 255 bytes."""
    return _UNSAFE.sub("_", name)[:_LONGEST]


def run(options: argparse.Namespace) -> int:
    """Reduce each case and print the result; return 1 if one cannot be reduced."""
    from pytest_t2n.cli.upstream.given import with_outputs
    from t2n_core.reduce.case import FailingCase, reduce_case
    from t2n_core.releases.judges import Releases

    def progress(name: str, program: Program) -> None:
        say(f"  {name}: {program.operators} operators, {program.elements} elements")

    cases = given_of(options)
    with Releases(offline=options.offline, cache_dir=options.cache_dir) as releases:

        def reduce(upstream_case: Given, folder: Path) -> bool:
            upstream_case = with_outputs(upstream_case)
            engine = engine_of(options, upstream_case)
            case = FailingCase(upstream_case.request, engine, upstream_case.origins)
            folder.parent.mkdir(parents=True, exist_ok=True)
            say(f"{upstream_case.name}: {engine.label if engine else 'khronos'}")
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
            return True

        return each_case(cases, options.output, reduce)
