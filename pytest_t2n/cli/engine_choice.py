"""The engines in which a subcommand of `t2n` runs archives, and their options."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from pytest_t2n.cli.output import as_text
from pytest_t2n.cli.parser import SPEC_HELP
from pytest_t2n.config.engines import select_engines
from pytest_t2n.config.settings import Settings
from pytest_t2n.records.cell import SelectedEngine
from t2n_core.engine.processes.memory import limit_memory, parse_size, share_of_memory
from t2n_core.errors import InputError, T2NError


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that select engines and control their runs."""
    parser.add_argument("--tract", action="append", default=[], metavar="SPEC", help=SPEC_HELP)
    parser.add_argument("--cpu", default="", metavar="TIERS", help="kernels of processors: native, no-avx512, no-fma")
    parser.add_argument("--runtime", default="", metavar="NAMES", help="runtimes of tract: default, cuda, metal")
    parser.add_argument("--paths", default="", metavar="NAMES", help="declutter, optimise-only, fixed-symbols: all")
    parser.add_argument("--khronos", action="store_true", help="the reference tools of Khronos too")
    parser.add_argument("--timeout", type=_seconds, default=60.0, metavar="SECONDS", help="of one case in an engine")
    parser.add_argument("--memory", type=_size, metavar="SIZE", help="of one case in an engine, as --t2n-memory")
    parser.add_argument("--offline", action="store_true", help="use engines of the cache only")
    parser.add_argument("--allow-unlisted", action="store_true", help="as --t2n-allow-unlisted")
    parser.add_argument("--cache-dir", type=Path, help="where engines are kept")


def engines_of(options: argparse.Namespace, console: Console) -> list[SelectedEngine]:
    """Return the engines selected by the options, provisioned. Raises T2NError."""
    settings = Settings(
        tract=tuple(options.tract),
        cpu=options.cpu,
        runtime=options.runtime,
        paths=options.paths,
        khronos=options.khronos,
        offline=options.offline,
        allow_unlisted=options.allow_unlisted,
        cache_dir=options.cache_dir,
    )
    limit_memory(share_of_memory(getattr(options, "jobs", 1)) if options.memory is None else options.memory)
    if not settings.selects_engines:
        raise T2NError("name engines with --tract or --khronos")
    try:
        return select_engines(settings, lambda version, event: console.print(as_text(f"tract {version}: {event}")))
    except InputError as exc:
        raise T2NError(str(exc).replace("--t2n-", "--")) from None


@contextmanager
def engines_closed() -> Iterator[None]:
    """Close all engines at the end of a block."""
    from t2n_core.engine.khronos.engine import KhronosEngine
    from t2n_core.engine.pool import close_all
    from t2n_core.engine.processes.jobs import close_jobs

    try:
        yield
    finally:
        close_all()
        close_jobs()
        KhronosEngine.close_shared()


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except InputError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from None


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return seconds
