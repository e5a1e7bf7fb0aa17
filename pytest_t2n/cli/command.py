"""The console command `t2n`. Each family of subcommands is a module, loaded only when it is named."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

from pytest_t2n.cli.parser import Parser
from t2n_core import __version__
from t2n_core.errors import EngineIndexWarning, T2NError, T2NWarning
from t2n_core.extras import importing
from t2n_core.text import reason_of, visible


class Family(NamedTuple):
    """A family of subcommands.

    `module` has `add_commands(parser)`, which sets a default `run: (Namespace) -> int` for every subcommand.
    """

    group: str
    module: str
    help: str


_WRITE, _FAIL, _RESULTS, _MACHINE = "Write and prove archives", "Explain a failure", "Use results", "This machine"

FAMILIES: Mapping[str, Family] = {
    "export": Family(_WRITE, "pytest_t2n.cli.exports.export", "write the archive of a model, and prove it"),
    "export-llm": Family(
        _WRITE,
        "pytest_t2n.cli.exports.export_llm",
        "write the archives of a language model in a folder, and prove its tokens",
    ),
    "export-tensors": Family(
        _WRITE,
        "pytest_t2n.cli.exports.export_tensors",
        "write tensors of a model without a graph, or an archive with them",
    ),
    "check": Family(
        _WRITE,
        "pytest_t2n.cli.check.command",
        "compare the outputs of an archive or ONNX model in engines with expected ones; needs no torch",
    ),
    "convert": Family(
        _WRITE, "pytest_t2n.cli.exports.convert", "write an ONNX model as an NNEF archive, and prove it; needs no torch"
    ),
    "migrate": Family(
        _WRITE, "pytest_t2n.cli.migrate.command", "report what files use of torch-to-nnef, and what to write instead"
    ),
    "profile": Family(_WRITE, "pytest_t2n.cli.upstream.profile", "report where the time of a file goes"),
    "bisect": Family(
        _FAIL, "pytest_t2n.cli.bisect", "run tests, and name the first wrong node of each cell that fails"
    ),
    "bisect-releases": Family(
        _FAIL, "pytest_t2n.cli.upstream.releases", "name the releases of tract between which a case ends differently"
    ),
    "reduce": Family(
        _FAIL, "pytest_t2n.cli.upstream.reduce", "find the smallest graph and tensors that still fail alike"
    ),
    "bundle": Family(
        _FAIL,
        "pytest_t2n.cli.upstream.bundle",
        "write a failing case as its engine's repository keeps them, or archives to judge",
    ),
    "matrix": Family(
        _RESULTS,
        "pytest_t2n.cli.matrix",
        "files of results: merge, diff, html, md, csv, ctrf, badge, annotate, query, accept, export, run",
    ),
    "history": Family(_RESULTS, "pytest_t2n.cli.history", "runs over time: add, html"),
    "doctor": Family(
        _MACHINE, "pytest_t2n.cli.doctor", "report what is installed, what is missing, and whether an engine runs here"
    ),
    "releases": Family(
        _MACHINE, "pytest_t2n.cli.upstream.scan", "what a release of tract changes in comparison with another: scan"
    ),
    "upgrade": Family(
        _MACHINE, "pytest_t2n.cli.upstream.upgrade", "what a newer release of tract changes for a file; needs no torch"
    ),
    "exporters": Family(
        _MACHINE, "pytest_t2n.cli.upstream.exporters", "the other exporters and their environments: list, install"
    ),
    "engines": Family(_MACHINE, "pytest_t2n.cli.engines", "the tract engines on this machine: list, fetch, clean"),
}

_EXAMPLES = """examples:
  t2n doctor
  t2n export nets/encoder.py:make -o encoder.nnef.tgz --tract 0.23 --dynamic audio:1=T
  t2n check encoder.nnef.tgz --inputs x.npz --expected y.npz --tract all-minors
  t2n matrix html results/ -o site/

`t2n COMMAND --help` has the options of a command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0 for success, 1 for an error, which is on stderr, 2 for wrong usage."""
    if "_ARGCOMPLETE" in os.environ:
        return _complete()
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser(words[0] if words else "")
    try:
        options = parser.parse_args(words)
        with importing(f"t2n {options.family}"), _index_warnings_without_source():
            status: int = options.run(options)
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has closed it: `t2n doctor | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # discards buffered output
        return 1
    except (T2NError, OSError) as error:  # of the system: a full disk, a folder that cannot be written
        print(f"error: {visible(reason_of(error))}", file=sys.stderr)
        return 1
    except T2NWarning as warning:
        name = type(warning).__name__
        print(f"error: a filter of yours (-W, PYTHONWARNINGS) turned {name} into an error: {warning}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return status


@contextmanager
def _index_warnings_without_source() -> Iterator[None]:
    """Print the warning that the index did not answer as one line: no line of a source is its cause."""
    before = warnings.formatwarning

    def as_line(message: Warning | str, category: type[Warning], *at: Any, **line: Any) -> str:
        if issubclass(category, EngineIndexWarning):
            return f"warning: {visible(str(message))}\n"
        return before(message, category, *at, **line)

    warnings.formatwarning = as_line
    try:
        yield
    finally:
        warnings.formatwarning = before


def _parser(command: str) -> Parser:
    """Return the parser of all commands, with the options of `command`."""
    texts = ["Exports, checks, engines and matrices of pytest-t2n."]
    for group in dict.fromkeys(family.group for family in FAMILIES.values()):
        texts += ["", f"{group}:"]
        texts += [f"  {name:<16} {family.help}" for name, family in FAMILIES.items() if family.group == group]
    parser = Parser(
        prog="t2n", usage="t2n [-h] [--version] COMMAND ...", description="\n".join(texts), epilog=_EXAMPLES
    )
    parser.add_argument("--version", action="version", version=f"t2n {__version__}")
    families = parser.add_subparsers(
        dest="family", required=True, metavar="COMMAND", help=argparse.SUPPRESS, title=argparse.SUPPRESS, prog="t2n"
    )
    for name, family in FAMILIES.items():
        family_parser = families.add_parser(name, description=family.help)
        if name == command:
            import_module(family.module).add_commands(family_parser)
    return parser


def _complete() -> int:
    """Answer a shell that asks for completions, which are written to a file descriptor that it opened."""
    with importing("completion"):
        import argcomplete
    line = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT", "0"))].split()
    argcomplete.autocomplete(_parser(line[1] if len(line) > 1 else ""))
    return 0
