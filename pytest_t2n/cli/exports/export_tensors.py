"""`t2n export-tensors` writes named tensors of a model, such as adapters, in the storage formats of an archive.

t2n export-tensors tuned.safetensors -o adapters.tgz --names '*lora*' --like model.nnef.tgz
t2n export-tensors tuned.safetensors -o tuned.nnef.tgz --changed-from base.safetensors --into model.nnef.tgz
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from pytest_t2n.cli.output import say


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("tensors", type=Path, help="a .safetensors, a folder of them, or a file of torch.save")
    parser.add_argument("-o", "--output", type=Path, required=True, help="a .tgz, a .tar or a folder")
    parser.add_argument(
        "--names", action="append", metavar="PATTERN", help="write those that fit; may be given several times"
    )
    parser.add_argument("--changed-from", type=Path, metavar="FILE", help="write those that differ from these")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--like", type=Path, metavar="ARCHIVE", help="the archive whose forms they take")
    form.add_argument(
        "--into", type=Path, metavar="ARCHIVE", help="write this archive with them, in place of them alone"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Return 0 for tensors that were written. Raises T2NError."""
    from t2n_core.export.tensors import export_tensors, replace_tensors

    names, like = options.names or "*", options.like or options.into
    with tempfile.TemporaryDirectory(prefix="t2n-") as folder:
        alone = options.output if options.into is None else Path(folder) / "tensors"
        exported = export_tensors(options.tensors, alone, names, like=like, changed_from=options.changed_from)
        if options.into is not None:
            replace_tensors(options.into, alone, options.output)
    where = "" if options.into is None else f" in place of those of {options.into}"
    say(f"{options.output}: {len(exported.names)} tensors{where}")
    if exported.left:
        say(f"not in the archive, and without effect: {', '.join(exported.left)}")
    return 0
