"""A case in the layout of tract's own repository, `harness/nnef-test-cases/NAME`: graph, `io.npz` and `runme.sh`."""

from __future__ import annotations

import io
import re
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from packaging.version import Version

from t2n_core.check.file import open_checked
from t2n_core.engine.protocol import Array, Engine
from t2n_core.engine.provision.known import newest_of_lines
from t2n_core.errors import InputError
from t2n_core.level import TractCheckTolerance
from t2n_core.nnef.reading.archive import read_archive
from t2n_core.nnef.reading.file_kind import is_onnx
from t2n_core.nnef.reading.graph_file import GRAPH_FILE
from t2n_core.nnef.reading.members import read_members
from t2n_core.nnef.reading.origins import ORIGINS_FILE
from t2n_core.nnef.releases import Releases
from t2n_core.npz import read_npz
from t2n_core.parity.check import check_parity
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import ErrorInfo, Outcome, Stage, Status
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.reduce.case import IO_FILE, npz_bytes
from t2n_core.reduce.program import ONNX_FILE

MODEL_FILE: Final = "model.nnef.tgz"
SCRIPT: Final = "runme.sh"
_LARGEST_FOLDER: Final = 64 << 10
"""Bytes of weights up to which the graph is in the folder as text, for reviewers."""
_FLAGS: Final = {
    "tract_pulse": "pulse",
    "tract_onnx": "onnx",
    "tract_extra": "extra",
    "tract_transformers": "transformers",
}
_WITH_APPROX: Final = Releases.of("0.21.7")
_WITH_TRACT_CLI: Final = Releases.of("0.23.0")
_SCRIPT: Final = """#!/bin/sh

cd $(dirname $0)
set -ex

: ${{TRACT_RUN:=cargo run -p {package} $CARGO_OPTS --}}

{comment}$TRACT_RUN {call}
"""


@dataclass(frozen=True, slots=True, eq=False)
class TractCase:
    """An archive or ONNX model with its inputs and expected outputs, by the names in the line of the graph."""

    archive: Path
    inputs: Mapping[str, Array]
    expected: Mapping[str, Array]
    comment: str = ""
    level: TractCheckTolerance = TractCheckTolerance.CLOSE
    keeps_symbols: bool = False
    """True for a failure that needs a dynamic size: the sizes are not set before the graph is optimised."""

    @classmethod
    def of(cls, archive: Path, sample: Sample, comment: str = "", **more: Any) -> TractCase:
        """Return the case of a sample. Raises InputError if it does not have an array for each name."""
        document = open_checked(archive, {}).document
        if len(sample.inputs) != len(document.inputs) or len(sample.expected) != len(document.outputs):
            raise InputError("the case does not have an expected value of each output")
        inputs = dict(zip(document.inputs, sample.inputs, strict=True))
        return cls(archive, inputs, dict(zip(document.outputs, sample.expected, strict=True)), comment, **more)


def write_tract_case(case: TractCase, folder: Path, release: str = "") -> Path:
    """Write the folder of a case for the repository at a release, by default the newest, and return its path.

    The graph's text is the archive's, or the ONNX model with its weights, unchanged. Raises InputError for a folder
    with other files.
    """
    ours = (GRAPH_FILE, IO_FILE, MODEL_FILE, ONNX_FILE, SCRIPT, ORIGINS_FILE, *_weight_files(folder / ONNX_FILE))
    if folder.exists() and any(file.name not in ours and file.suffix != ".dat" for file in folder.iterdir()):
        raise InputError(f"{folder} has other files", hint="name a folder that does not exist")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model = _write_model(case.archive, folder)
    if any((folder / name).exists() for name in (IO_FILE, SCRIPT)):
        raise InputError(f"{case.archive} keeps weights in a file of the name {IO_FILE} or {SCRIPT}")
    arrays = {**case.inputs, **case.expected}
    has_float16 = any(array.dtype == np.float16 for array in arrays.values())
    (folder / IO_FILE).write_bytes(npz_bytes({name: _storable(array) for name, array in arrays.items()}))
    script = folder / SCRIPT
    version = Version(release or newest_of_lines()[-1])
    script.write_text(_script(case, model, version, has_float16), encoding="utf-8", newline="\n")
    script.chmod(0o755)
    return folder


def _write_model(archive: Path, folder: Path) -> str:
    """Write the graph into the folder, as files if they are small; return its path for the command line."""
    if is_onnx(archive):
        from t2n_core.onnx_file.model import copy_model

        copy_model(archive, folder / ONNX_FILE)
        return ONNX_FILE
    files = _files(archive)
    if sum(len(data) for name, data in files.items() if name != GRAPH_FILE) <= _LARGEST_FOLDER:
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return "."
    if archive.is_file() and archive.name.endswith((".tgz", ".tar.gz")):
        shutil.copyfile(archive, folder / MODEL_FILE)
        return MODEL_FILE
    with tarfile.open(folder / MODEL_FILE, "w:gz") as packed:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            packed.addfile(entry, io.BytesIO(data))
    return MODEL_FILE


def _weight_files(model: Path) -> set[str]:
    """Return the files and folders beside an ONNX model with its weights; empty if there is no model."""
    if not model.exists():
        return set()
    from t2n_core.onnx_file.model import read_model

    return {Path(name).parts[0] for name in read_model(model).data_files}


def _files(archive: Path) -> dict[str, bytes]:
    """Return graph and tensors of an archive, the graph first."""
    members = read_members(archive)
    return {GRAPH_FILE: members[GRAPH_FILE], **{name: members[name] for name in sorted(members)}}


def _storable(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype == np.float16 else array  # the command line reads no float16


def _script(case: TractCase, model: str, release: Version, has_float16: bool) -> str:
    words = [*_registry_flags(case.archive), model, "-O"]
    if not case.keeps_symbols:
        words.append(f"--input-facts-from-bundle ./{IO_FILE}")
    words += ["run", f"--input-from-bundle {IO_FILE}", f"--assert-output-bundle {IO_FILE}"]
    if release in _WITH_APPROX:
        words.append(f"--approx {case.level.value}")
    if has_float16:
        words.append("--allow-float-casts")
    lines = [f"# {line}".rstrip() for line in case.comment.splitlines()]
    package = "tract-cli" if release in _WITH_TRACT_CLI else "tract"
    comment = "".join(f"{line}\n" for line in lines)
    return _SCRIPT.format(package=package, comment=comment, call=" ".join(words))


def _registry_flags(archive: Path) -> list[str]:
    if is_onnx(archive):
        return []
    extensions = read_archive(archive).document.extensions
    registries = [line.split()[1] for line in extensions if line.startswith("tract_registry ")]
    return ["--nnef-tract-core", *(f"--nnef-tract-{_FLAGS[registry]}" for registry in registries if registry in _FLAGS)]


def model_of(folder: Path) -> Path:
    """Return the path of the archive or the ONNX model of a case."""
    return next((folder / name for name in (MODEL_FILE, ONNX_FILE) if (folder / name).exists()), folder)


def check_command(folder: Path, release: str) -> str:
    """Return the command that checks a case in the wheel of a release, typed in the folder of the case."""
    model = model_of(folder).relative_to(folder)
    return f"t2n check {model} --inputs {IO_FILE} --expected {IO_FILE} --tract {release}"


def replay(folder: Path, engine: Engine, timeout: float = 60.0) -> Outcome:
    """Return the outcome of the script with a wheel: inputs by names of nodes, outputs by those in the graph's line.

    Raises InputError for a folder that is not such a case.
    """
    archive = model_of(folder)
    file = open_checked(archive, {})
    names = file.names
    try:
        arrays = read_npz(folder / IO_FILE)
        script = (folder / SCRIPT).read_text("utf-8")
    except (OSError, ValueError) as wrong:
        raise InputError(f"{folder} is not a case of tract: {wrong}") from wrong
    missing = [name for part in names for name in part if name not in arrays]
    if missing:
        raise InputError(f"{folder / IO_FILE} has no array `{missing[0]}`")
    inputs, outputs = (tuple(arrays[name] for name in part) for part in names)
    sample = Sample(inputs, outputs)
    level = re.search(r"--approx (\w+)", script)
    criteria = Judgement(TractCheckTolerance.parse(level[1]) if level else TractCheckTolerance.CLOSE)
    request = CheckRequest(archive, [sample], names[1], criteria, timeout, carries=file.carries)
    return _with_names(check_parity(engine, request), names[0])


def _with_names(outcome: Outcome, inputs: Sequence[str]) -> Outcome:
    """Return the outcome, or an error if the engine's input names differ from those in the .npz."""
    nodes = [name for name, _ in outcome.facts.get("input", ())]
    if not nodes or set(nodes) == set(inputs):
        return outcome
    message = f"the engine names its inputs {', '.join(nodes)}, the case {', '.join(inputs)}"
    return Outcome(Status.ERROR, Stage.LOAD, outcome.engine, error=ErrorInfo.of("load", "InputError", message))
