"""Read the input of a command: a bundle, the folder of a tract test case, or a file with its arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_t2n.cli.arrays import IO_FILE, read_arrays, read_npz
from pytest_t2n.expect.entries import glob_fits
from pytest_t2n.records.nodeids import names_of
from pytest_t2n.records.schema import RecordError
from pytest_t2n.run.bundle_reader import archive_of, bundle_folders, read_bundle, read_samples
from pytest_t2n.run.bundles import CheckEntry
from t2n_core.errors import InputError, MeaningError
from t2n_core.nnef.reading.file_kind import SUFFIX, split_archive_name
from t2n_core.nnef.reading.graph_file import GRAPH_FILE
from t2n_core.nnef.reading.origins import read_origins

if TYPE_CHECKING:
    from t2n_core.parity.request import CheckRequest
    from t2n_core.parity.samples import Sample

_MODEL_FILES = ("model.nnef.tgz", "model.onnx")
_OF_A_CASE = (IO_FILE, GRAPH_FILE, *_MODEL_FILES)
"""Files that a bundle does not have."""


@dataclass(frozen=True, slots=True)
class Given:
    """The check of one archive or ONNX model, with its name and known facts of its export."""

    name: str
    request: CheckRequest
    target: str = "tract"
    origins: Mapping[str, str] = field(default_factory=dict)
    """Name of a value -> operator, module and line in PyTorch, if known."""
    version: str = ""
    """The version of the export's target; empty if unknown."""

    @property
    def expects(self) -> bool:
        """Return whether it has expected outputs."""
        return all(len(sample.expected) == len(self.request.output_names) for sample in self.request.samples)


def read_given(
    path: Path, inputs: Path | None = None, case: str | None = None, sizes: Mapping[str, Any] | None = None
) -> list[Given]:
    """Return the checks at `path`: each file of a bundle whose case fits `case`, or one file.

    `inputs` is a .npz for an archive or an ONNX model, with arrays by input and output name or in a bundle's format, or
    a folder of the ONNX model zoo. Without it inputs are drawn, and the file's reference computes the outputs; `sizes`
    are the sizes of dynamic axes of drawn inputs.

    Raises:
        InputError: there is no such file, or the arrays do not fit.
        MeaningError: the outputs of a file without inputs cannot be computed.
    """
    try:
        if not path.exists():
            raise InputError(f"there is no {path}")
        if inputs is None and path.is_dir() and not any((path / name).exists() for name in _OF_A_CASE):
            return list(_of_bundles(path, case))
        if path.is_dir() and inputs is None:
            archive = next((path / name for name in _MODEL_FILES if (path / name).exists()), path)
            io_file = path / IO_FILE
            return [_of_file(path.resolve().name, archive, io_file if io_file.exists() else None, sizes)]
        return [_of_file(stem_of(path), path, inputs, sizes)]
    except (RecordError, OSError, ValueError, KeyError) as wrong:
        raise InputError(str(wrong)) from None


def stem_of(path: Path) -> str:
    """Return the name of an archive or an ONNX model without its ending: `kws0.23` of `kws0.23.nnef.tgz`."""
    name = path.absolute().name
    if path.is_dir():
        return name
    return (path.stem if path.suffix.lower() == SUFFIX else split_archive_name(name)[0]) or name


def _of_bundles(path: Path, case: str | None) -> Iterable[Given]:
    """Return the archives of a bundle, or of the bundles in the folders of `path`."""
    folders = bundle_folders(path)
    if not folders:
        raise InputError(f"{path} is neither a bundle nor a folder of bundles", hint="or name a .npz with --inputs")
    archives: dict[tuple[str, str, str], Given] = {}
    for folder in folders:
        for entry in read_bundle(folder).checks:
            if not case or any(glob_fits(case, name) for name in names_of(entry.case)):
                archives.setdefault((entry.case, entry.archive, entry.samples), _of_entry(folder, entry))
    if not archives:
        raise InputError(f"no case of {path} fits {case!r}" if case else f"the bundle {path} is empty")
    return archives.values()


def _of_entry(folder: Path, entry: CheckEntry) -> Given:
    from t2n_core.parity.request import PYTORCH, CheckRequest

    (samples, _), archive = read_samples(folder, entry), archive_of(folder, entry.archive)
    reference = entry.reference or PYTORCH
    request = CheckRequest(
        archive, samples, entry.output_names, entry.criteria, carries=entry.carries, reference=reference
    )
    return Given(entry.case, request, entry.target, read_origins(folder), entry.version)


def _of_file(name: str, path: Path, inputs: Path | None, sizes: Mapping[str, Any] | None) -> Given:
    """Return the check of an archive or an ONNX model; outputs that are not among the arrays are left out."""
    from t2n_core.check.file import EXPECTED, open_checked
    from t2n_core.parity.request import CheckRequest

    file = open_checked(path, sizes or {})
    input_names, output_names = file.names
    if inputs is None:
        samples, reference = file.samples([], "tract")
    else:
        samples, reference = _samples(inputs, input_names, output_names), EXPECTED
    request = CheckRequest(
        path, samples, output_names, carries=file.carries, reference=reference, interface=file.interface
    )
    return Given(name, request, origins=file.origins or ({} if inputs is None else read_origins(inputs.parent)))


def _samples(path: Path, inputs: Sequence[str], outputs: Sequence[str]) -> list[Sample]:
    from t2n_core.parity.samples import Sample

    if path.is_dir():
        has_outputs = (path / "output_0.pb").exists()
        expected = read_arrays(path, outputs, "output") if has_outputs else ()
        return [Sample(read_arrays(path, inputs, "input"), expected)]
    arrays = read_npz(path)
    samples: list[Sample] = []
    while f"{len(samples)}.input.0" in arrays:
        number = len(samples)
        groups = {}
        for kind, names in (("input", inputs), ("expected", outputs)):
            keys = [f"{number}.{kind}.{index}" for index in range(len(names))]
            groups[kind] = tuple(arrays[key] for key in keys if key in arrays)
        samples.append(Sample(groups["input"], groups["expected"]))
    if not samples:
        missing = [name for name in inputs if name not in arrays]
        if missing:
            raise InputError(f"{path} has no array `{missing[0]}`, an input of the graph")
        expected = tuple(arrays[name] for name in outputs if name in arrays)
        samples.append(Sample(tuple(arrays[name] for name in inputs), expected))
    return samples


def with_outputs(case: Given) -> Given:
    """Return the case, with its reference's outputs if it has no expected outputs.

    The reference is an archive's operator definitions, or onnxruntime. Raises InputError if it cannot compute them.
    """
    from t2n_core.check.file import open_checked

    request = case.request
    if case.expects:
        return case
    try:
        inputs = [sample.inputs for sample in request.samples]
        samples, reference = open_checked(request.archive, {}).samples(inputs, case.target)
    except MeaningError as wrong:
        raise InputError(
            f"{case.name} has no expected outputs, and its reference computes none: {wrong.message}",
            hint="put the outputs into the .npz, or name a release that is right with --good",
        ) from wrong
    return replace(case, request=replace(request, samples=samples, reference=reference))


def with_outputs_of(case: Given, engine: Any) -> Given:
    """Return the same with the outputs of an engine as expected ones. Raises InputError if there are none."""
    request = case.request
    reply = engine.run(request.archive, [sample.inputs for sample in request.samples], timeout=request.timeout)
    if reply.status != "ok":
        raise InputError(f"{engine.name} {engine.version} returns no outputs to compare with: {reply.message}")
    pairs = zip(request.samples, reply.outputs, strict=True)
    samples = [replace(sample, expected=outputs) for sample, outputs in pairs]
    return replace(case, request=replace(request, samples=samples))
