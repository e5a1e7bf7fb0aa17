"""`t2n releases scan` reports what a release of tract changes, asked of its library."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from pytest_t2n.cli.busy import busy
from pytest_t2n.cli.output import say
from pytest_t2n.cli.upstream.releases import version_given
from t2n_core.errors import InputError, T2NError

if TYPE_CHECKING:
    from t2n_core.engine import ResolvedEngine
    from t2n_core.releases.scan.changes import Changes, Release


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the subcommand."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    scan = commands.add_parser("scan", help="what a release changes: operators, arguments, transforms, functions")
    scan.add_argument("release", metavar="VERSION", help="a release, also one that this package does not know")
    scan.add_argument("--against", metavar="VERSION", help="the release before; default: the newest older one known")
    scan.add_argument(
        "--source",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="the sdist of a release, tract-VERSION.tar.gz, which states signatures; may be given twice",
    )
    scan.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the note in Markdown there")
    scan.add_argument(
        "--checkout",
        type=Path,
        metavar="DIR",
        help="a checkout of this package: its errata, definitions and suites too; results in DIR/build/tract-VERSION",
    )
    scan.add_argument("--quick", action="store_true", help="with --checkout, only what takes minutes")
    scan.add_argument("--json", action="store_true", help="print one JSON object")
    scan.add_argument("--write", action="store_true", help="with --checkout, add the release to its tables")
    scan.add_argument("--offline", action="store_true", help="use engines of the cache only")
    scan.add_argument("--cache-dir", type=Path, help="where engines are kept")
    scan.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the note, and write the tables if that is asked for; return 0. Raises InputError."""
    from t2n_core.releases.scan.changes import find_changes
    from t2n_core.releases.scan.note import note
    from t2n_core.releases.scan.sources import source_of
    from t2n_core.releases.scan.table import SpecSources, installed_rows

    if options.write and options.checkout is None:
        raise InputError("--write needs the checkout whose tables it changes", hint="pass --checkout DIR")
    sources = None if options.checkout is None else SpecSources(options.checkout)
    against, engine = _engines(options)
    unused = set(options.source) - {source_of(side.version, options.source) for side in (against, engine)}
    if unused:
        raise InputError(
            f"{min(unused)} is the source of neither release",
            hint=f"pass tract-{engine.version}.tar.gz or tract-{against.version}.tar.gz, or the folder of one",
        )
    rows = installed_rows(against.version) if sources is None else sources.rows(against.version)
    names = {row["operator"] for row in rows}
    with busy(f"asking tract {against.version} and {engine.version}", seconds=10.0) as show:
        before, now = (_release(side, options.source, names, show) for side in (against, engine))
    changes = find_changes(before, now, rows)
    text = note(changes) + _report(options, changes)
    if options.output is not None:
        options.output.write_text(text, "utf-8")
    if sources is not None and options.write:
        sources.write(changes.rows, changes.release)
    if options.json:
        print(json.dumps(asdict(changes)))
    else:
        say(text.rstrip("\n"))
    return 0


def _report(options: argparse.Namespace, changes: Changes) -> str:
    """Return what the errata, definitions and suites of a checkout find; empty without one."""
    if options.checkout is None:
        return ""
    folder = options.checkout / "build" / f"tract-{changes.release}"
    words = [changes.release, "--against", changes.against, "--folder", str(folder.absolute())]
    command = [sys.executable, "-m", "conformance.lab.release", *words, *(["--quick"] if options.quick else [])]
    done = subprocess.run(command, cwd=options.checkout, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise T2NError(f"the report of {options.checkout} ended with exit status {done.returncode}")
    return done.stdout


def _engines(options: argparse.Namespace) -> tuple[ResolvedEngine, ResolvedEngine]:
    """Return the engines to compare, the older one first. Raises EngineResolveError."""
    from t2n_core.engine.provision.known import known_wheels
    from t2n_core.engine.provision.resolution import resolve_engines

    version = version_given(options.release)
    against = (
        version_given(options.against)
        if options.against
        else max((candidate for candidate in map(Version, known_wheels()) if candidate < version), default=None)
    )
    if against is None or against >= version:
        raise InputError(
            f"there is no release before {version} to compare it with", hint="pass an older one with --against"
        )
    settings = {"offline": options.offline, "cache_dir": options.cache_dir, "allow_unlisted": True}
    (first,), (second,) = (resolve_engines(str(release), **settings) for release in (against, version))
    return first, second


def _release(
    engine: ResolvedEngine, sources: Sequence[Path], names: Collection[str], show: Callable[[str], None]
) -> Release:
    """Return what a release holds, with what its sdist declares if it is among the sources."""
    from t2n_core.engine.tract.transforms.table import KNOWN
    from t2n_core.releases.scan.changes import Release
    from t2n_core.releases.scan.contents import read_contents
    from t2n_core.releases.scan.sources import read_declarations, source_of

    source = source_of(engine.version, sources)
    declared = {} if source is None else read_declarations(source)
    contents = read_contents(
        engine.version,
        engine.library,
        operators={*names, *declared},
        transforms=KNOWN,
        show=lambda text: show(f"tract {engine.version}: {text}"),
    )
    return Release(contents, declared)
