"""The console command `t2n`. Each family of subcommands is a module, loaded only when it is named."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

from t2n_core import __version__
from t2n_core.errors import T2NError
from t2n_core.extras import importing
from t2n_core.text import visible


class Family(NamedTuple):
    """A family of subcommands.

    `module` has `add_commands(parser)`, which sets a default `run: (Namespace) -> int` for every subcommand.
    """

    module: str
    help: str


FAMILIES: Mapping[str, Family] = {
    "bisect": Family("pytest_t2n.cli.bisect", "run tests, and name the first wrong node of each cell that fails"),
    "bundle": Family("pytest_t2n.cli.upstream.bundle", "write a failing case as its engine's repository keeps them"),
    "check": Family(
        "pytest_t2n.cli.check", "compare an archive's outputs in engines with expected ones; needs no torch"
    ),
    "doctor": Family("pytest_t2n.cli.doctor", "what is installed, what is missing, and whether an engine runs here"),
    "bisect-releases": Family(
        "pytest_t2n.cli.upstream.releases", "name the releases of tract between which a case ends differently"
    ),
    "engines": Family("pytest_t2n.cli.engines", "the tract engines on this machine: list, fetch, clean"),
    "export": Family("pytest_t2n.cli.exports.export", "write the archive of a model, and prove it"),
    "export-llm": Family(
        "pytest_t2n.cli.exports.export_llm", "write the archives of a language model in a folder, and prove its tokens"
    ),
    "export-tensors": Family(
        "pytest_t2n.cli.exports.export_tensors", "write tensors of a model without a graph, or an archive with them"
    ),
    "history": Family("pytest_t2n.cli.history", "runs over time: add, html"),
    "profile": Family("pytest_t2n.cli.upstream.profile", "where the time of an archive goes"),
    "reduce": Family("pytest_t2n.cli.upstream.reduce", "the smallest graph and tensors that still fail alike"),
    "matrix": Family(
        "pytest_t2n.cli.matrix",
        "files of results: merge, diff, html, md, csv, ctrf, badge, annotate, query, accept, export, run",
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0 for success, 1 for an error, which is on stderr, 2 for wrong usage."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="t2n", description="Exports, checks, engines and matrices of pytest-t2n.")
    parser.add_argument("--version", action="version", version=f"t2n {__version__}")
    families = parser.add_subparsers(dest="family", required=True, metavar="FAMILY")
    for name, family in FAMILIES.items():
        family_parser = families.add_parser(name, help=family.help, description=family.help)
        if given[:1] == [name]:
            import_module(family.module).add_commands(family_parser)
    options = parser.parse_args(given)
    try:
        with importing(f"t2n {options.family}"):
            status: int = options.run(options)
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has closed it: `t2n doctor | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # discards buffered output
        return 1
    except (T2NError, OSError) as error:  # of the system: a full disk, a folder that cannot be written
        print(f"error: {visible(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return status
