"""`t2n exporters list|install` manages the environments of other exporters."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_t2n.cli.busy import busy
from pytest_t2n.cli.output import say, show_table
from t2n_core.entry_points import load_entry_points
from t2n_core.exporters.registry import BUILTIN, find_exporter


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of this family."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    listing = commands.add_parser("list", help="the exporters that --t2n-exporter may name, and where they run")
    listing.set_defaults(run=_list)

    installing = commands.add_parser("install", help="make environments for exporters, in the cache")
    installing.add_argument("names", nargs="+", metavar="NAME")
    installing.add_argument(
        "--with", dest="more", action="append", default=[], metavar="REQUIREMENT", help="install this too, for pip"
    )
    installing.set_defaults(run=_install)

    for command in (listing, installing):
        command.add_argument("--cache-dir", type=Path, help="instead of T2N_CACHE_DIR or the user's cache directory")


def _list(options: argparse.Namespace) -> int:
    from t2n_core.exporters.environment import environments_folder, missing_requirements, version_of

    folder = environments_folder(options.cache_dir)
    rows = []
    for name in (*BUILTIN, *load_entry_points("t2n.exporters")):
        exporter = find_exporter(name, {})
        home = folder / name
        missing = missing_requirements(exporter)
        environment = str(home) if home.exists() else f"needs {', '.join(missing)}" if missing else "this environment"
        rows.append((name, version_of(exporter, folder), exporter.format, environment))
    show_table(("exporter", "version", "writes", "runs in"), rows)
    return 0


def _install(options: argparse.Namespace) -> int:
    from t2n_core.exporters.environment import environments_folder, make_environment, version_of

    folder = environments_folder(options.cache_dir)
    for exporter in [find_exporter(name, {}) for name in options.names]:
        with busy(f"installing {exporter.name}"):
            make_environment(exporter, folder, options.more)
        say(f"{exporter.name} {version_of(exporter, folder)}: {folder / exporter.name}")
    return 0
