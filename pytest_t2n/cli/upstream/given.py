"""Read the input of a command: a bundle, the folder of a tract test case, or an archive with a .npz."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_t2n.expect.entries import glob_fits
from pytest_t2n.records.nodeids import names_of
from pytest_t2n.records.schema import RecordError
from pytest_t2n.run.bundle_reader import archive_of, bundle_folders, read_bundle, read_samples
from pytest_t2n.run.bundles import CheckEntry
from t2n_core.errors import InputError, MeaningError
from t2n_core.nnef.reading.file_kind import is_onnx
from t2n_core.nnef.reading.graph_file import GRAPH_FILE
from t2n_core.nnef.reading.origins import read_origins

if TYPE_CHECKING:
    from t2n_core.parity.request import CheckRequest
    from t2n_core.parity.samples import Sample

IO_FILE = "io.npz"
_MODEL_FILE = "model.nnef.tgz"


@dataclass(frozen=True, slots=True)
class Given:
    """The check of one archive, with its name and known facts of its export."""

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


def read_given(path: Path, inputs: Path | None = None, case: str | None = None) -> list[Given]:
    """Return the checks at `path`: each archive of a bundle whose case fits `case`, or one archive.

    `inputs` is a .npz for an archive: arrays by the names in the graph's line, or in the format of a bundle. Without it
    inputs are drawn, and the outputs are those by the definitions of the archive's operators.

    Raises:
        InputError: there is no such file, or the .npz does not fit.
        MeaningError: the outputs of an archive without inputs cannot be computed.
    """
    try:
        if not path.exists():
            raise InputError(f"there is no {path}")
        if inputs is None and path.is_dir() and not any((path / name).exists() for name in (IO_FILE, GRAPH_FILE)):
            return list(_of_bundles(path, case))
        if path.is_dir() and inputs is None:
            archive = path / _MODEL_FILE if (path / _MODEL_FILE).exists() else path
            io_file = path / IO_FILE
            return [_of_archive(path.resolve().name, archive, io_file if io_file.exists() else None)]
        read = _of_onnx if is_onnx(path) else _of_archive
        return [read(path.name.partition(".")[0] or path.name, path, inputs)]
    except (RecordError, OSError, ValueError, KeyError) as wrong:
        raise InputError(str(wrong)) from None


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
    from t2n_core.parity.request import CheckRequest

    (samples, _), archive = read_samples(folder, entry), archive_of(folder, entry.archive)
    request = CheckRequest(archive, samples, entry.output_names, entry.criteria)
    return Given(entry.case, request, entry.target, read_origins(folder), entry.version)


def _of_onnx(name: str, path: Path, inputs: Path | None) -> Given:
    """Return the check of an ONNX model; outputs that are not in the .npz are those of its reference."""
    from t2n_core.check.file import file_request, open_checked
    from t2n_core.npz import read_npz
    from t2n_core.parity.judging.judgement import DEFAULT_CRITERIA

    file = open_checked(path, {})
    samples = [] if inputs is None else _samples(read_npz(inputs), *file.names, inputs)
    expected = [sample.expected for sample in samples]
    known = expected if all(len(outputs) == len(file.names[1]) for outputs in expected) else []
    request = file_request(file, [sample.inputs for sample in samples], known, "tract", DEFAULT_CRITERIA, 60.0)
    return Given(name, request)


def _of_archive(name: str, path: Path, inputs: Path | None) -> Given:
    from t2n_core.nnef.reading.archive import read_archive
    from t2n_core.npz import read_npz
    from t2n_core.parity.definitions import DEFINITIONS, samples_by_definitions
    from t2n_core.parity.request import CheckRequest

    document = read_archive(path).document
    if inputs is None:
        request = CheckRequest(path, samples_by_definitions(path), list(document.outputs), reference=DEFINITIONS)
        return Given(name, request)
    samples = _samples(read_npz(inputs), document.inputs, document.outputs, inputs)
    return Given(name, CheckRequest(path, samples, list(document.outputs)), origins=read_origins(inputs.parent))


def _samples(arrays: Mapping[str, Any], inputs: Sequence[str], outputs: Sequence[str], where: Path) -> list[Sample]:
    from t2n_core.parity.samples import Sample

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
            raise InputError(f"{where} has no array `{missing[0]}`, an input of the graph")
        expected = tuple(arrays[name] for name in outputs if name in arrays)
        samples.append(Sample(tuple(arrays[name] for name in inputs), expected))
    return samples


def with_outputs_by_definitions(given: Given) -> Given:
    """Return the same if it has expected outputs, else with those by the definitions of the archive's operators.

    Raises InputError if they cannot be computed.
    """
    from t2n_core.parity.definitions import DEFINITIONS, samples_by_definitions

    request = given.request
    if given.expects:
        return given
    try:
        samples = samples_by_definitions(request.archive, [sample.inputs for sample in request.samples])
    except MeaningError as wrong:
        raise InputError(
            f"{given.name} has no expected outputs, and the definitions of its operators give none: {wrong.message}",
            hint="put the outputs into the .npz, or name a release that is right with --good",
        ) from wrong
    return replace(given, request=replace(request, samples=samples, reference=DEFINITIONS))


def with_outputs_of(given: Given, engine: Any) -> Given:
    """Return the same with the outputs of an engine as expected ones. Raises InputError if there are none."""
    request = given.request
    reply = engine.run(request.archive, [sample.inputs for sample in request.samples], timeout=request.timeout)
    if reply.status != "ok":
        raise InputError(f"{engine.name} {engine.version} returns no outputs to compare with: {reply.message}")
    pairs = zip(request.samples, reply.outputs, strict=True)
    samples = [replace(sample, expected=outputs) for sample, outputs in pairs]
    return replace(given, request=replace(request, samples=samples))
