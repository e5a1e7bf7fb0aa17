"""`t2n bundle --format matrix` makes a bundle of archives and ONNX models that no test wrote."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pytest_t2n.cli.arrays import IO_FILE
from pytest_t2n.cli.output import say
from pytest_t2n.cli.upstream.given import read_given, stem_of, with_outputs
from pytest_t2n.records.cell import Cell, SelectedEngine
from pytest_t2n.records.platform import this_platform
from pytest_t2n.run.bundles import CheckInputs, check_bundle_folder, write_check, write_manifest
from t2n_core.errors import InputError, T2NError
from t2n_core.nnef.reading.graph_file import GRAPH_FILE
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.text import reason_of, visible

_SUFFIXES = (".tgz", ".tar.gz", ".tar", ".onnx")
_ENDINGS = f"{', '.join(_SUFFIXES)}, or are folders with {GRAPH_FILE}"
_ANY_RELEASE = SelectedEngine("tract", "", "")
"""The engine of an archive that was exported for an unknown release."""


def bundle_archives(options: argparse.Namespace) -> int:
    """Write a bundle of the files in a folder; return 1 if some have no expected outputs."""
    files = list(_files(options.path))
    if not files:
        raise InputError(f"{options.path} has no archives and no ONNX models", hint=f"they end in {_ENDINGS}")
    if options.inputs is not None and len(files) > 1:
        raise InputError("--inputs is for one file", hint="put x.npz beside x.nnef.tgz, or io.npz into its folder")
    try:
        check_bundle_folder(options.output)
    except InputError as wrong:
        raise InputError(str(wrong).removeprefix("--t2n-bundle=")) from None
    entries = []
    for file in files:
        name = file.relative_to(options.path).as_posix() if file != options.path else file.name
        try:
            (case,) = read_given(file, options.inputs or _arrays_of(file))
            request = with_outputs(case).request
            criteria = Judgement.parse(options.level) if options.level else request.criteria
            inputs = CheckInputs(_cell(name), replace(request, criteria=criteria))
            entries.append(write_check(options.output, inputs))
        except (T2NError, OSError) as wrong:
            say(visible(f"{name} is left out: {reason_of(wrong)}"))
            continue
        count = len(inputs.request.samples)
        say(visible(f"{name}: {count} set{'s' if count > 1 else ''} of inputs, outputs by {inputs.request.reference}"))
    write_manifest(options.output, entries, this_platform())
    say(f"{options.output}: {len(entries)} of {len(files)} files, for t2n matrix run --bundle {options.output}")
    return int(len(entries) < len(files))


def _files(path: Path) -> Iterator[Path]:
    """Yield the archives and ONNX models below a folder, or the file itself. Raises InputError."""
    if not path.exists():
        raise InputError(f"there is no {path}")
    if not path.is_dir() or (path / GRAPH_FILE).exists():
        yield path
        return
    for inner in sorted(path.iterdir()):
        if inner.is_dir() and not inner.name.startswith("."):
            yield from _files(inner)
        elif inner.name.endswith(_SUFFIXES):
            yield inner


def _arrays_of(file: Path) -> Path | None:
    """Return the arrays beside a file, `x.npz` of `x.nnef.tgz`; None if there are none."""
    beside = [file / IO_FILE] if file.is_dir() else [file.with_name(f"{stem_of(file)}.npz")]
    return next((path for path in beside if path.exists()), None)


def _cell(name: str) -> Cell:
    """Return the cell of a file, with a placeholder for the engine that judges the bundle."""
    return Cell(f"{name}[{_ANY_RELEASE.id}]", name, _ANY_RELEASE)
