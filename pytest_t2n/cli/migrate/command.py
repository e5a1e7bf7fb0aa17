"""`t2n migrate` reports what a file uses of torch-to-nnef, and what to write instead.

t2n migrate export.py            # what to change, line by line
t2n migrate --write export.py    # changes imports, and what else needs nobody's judgement
"""

from __future__ import annotations

import argparse
import difflib
from pathlib import Path

from pytest_t2n.cli.migrate.source import Source
from pytest_t2n.cli.output import say
from t2n_core.errors import InputError


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.py", help="files of Python; none is imported")
    parser.add_argument("--write", action="store_true", help="change the files where an import or argument is enough")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Return 1 if something is left that a person has to change. Raises InputError before any file is changed."""
    sources = [(path, _read(path)) for path in options.files]
    edited = [source.edited() if options.write else source.raw for _, source in sources]
    left = changed = 0
    for (path, source), text in zip(sources, edited, strict=True):
        if text != source.raw:
            path.write_bytes(text)
            _show_diff(path, source, text)
        for finding in source.findings:
            left += finding.by_hand
            changed += not finding.by_hand
            if finding.by_hand or not options.write:
                note = "" if finding.by_hand else " (--write does it)"
                line = source.line_of(finding, edited=options.write)
                say(f"{path}:{line}: {finding.name}: {finding.advice}{note}")
    say(f"{changed} {'changed' if options.write else 'can be changed by --write'}, {left} to change by hand")
    return 1 if left else 0


def _read(path: Path) -> Source:
    try:
        return Source(str(path), path.read_bytes())
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror}") from None


def _show_diff(path: Path, source: Source, text: bytes) -> None:
    before, after = (content.decode(source.encoding).splitlines() for content in (source.raw, text))
    for line in difflib.unified_diff(before, after, str(path), str(path), lineterm=""):
        say(line)
