"""A stream as a separate archive: the pulsed model as the engine writes it, proven from that archive alone.

pulsed = write_pulsed(result, Path("model.pulsed.nnef.tgz"), 8, Judgement.parse("close"))
pulsed.stream.delays
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from t2n_core.check.exported.archive import ExportedArchive
from t2n_core.check.exported.stream_errors import with_reason
from t2n_core.check.exported.streaming import StreamedAxis, compare_stream, streamed_axis
from t2n_core.engine.protocol import Array, EngineReply
from t2n_core.engine.tract.stream import STREAM, Stream
from t2n_core.errors import InputError
from t2n_core.nnef.archive import check_archive_name, remove_archive, write_files
from t2n_core.nnef.reading.file_kind import split_archive_name
from t2n_core.nnef.reading.graph_file import GRAPH_FILE
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.outcomes import failure_outcome
from t2n_core.scratch import scratch_folder

_REGISTRY: Final = re.compile(r"^extension tract_registry (\w+);$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PulsedArchive:
    """An archive that takes one pulse of a sequence at a time, with what a program that runs it has to know."""

    archive: Path
    symbol: str
    """The dynamic axis of the model that the pulses are cut from."""
    stream: Stream
    """Steps per pulse, the streamed axis of each input and output, and the steps by which each output is late."""
    input_names: Sequence[str]
    output_names: Sequence[str]
    outcome: Outcome
    """The proof: this archive, pulse by pulse, against PyTorch on the whole sequence."""

    def describe(self) -> str:
        """Return pulse, axes and delays in one line."""
        stream = self.stream
        inputs = [f"axis {axis} of `{name}`" for name, axis in zip(self.input_names, stream.input_axes, strict=True)]
        outputs = [
            f"`{name}` is {delay} steps late along axis {axis}"
            for name, axis, delay in zip(self.output_names, stream.output_axes, stream.delays, strict=True)
        ]
        return (
            f"{self.archive.name} takes {stream.size} steps of {self.symbol} at a time: "
            f"{', '.join(inputs)}; {', '.join(outputs)}"
        )


def pulsed_path(archive: Path) -> Path:
    """Return the place of the pulsed archive beside another: `model.pulsed.nnef.tgz` for `model.nnef.tgz`."""
    name, suffix = split_archive_name(archive.name)
    return archive.with_name(f"{name}.pulsed{suffix}")


def write_pulsed(
    result: ExportedArchive,
    path: Path,
    pulse: int,
    criteria: Judgement,
    *,
    symbol: str | None = None,
    timeout: float = 60.0,
    compression: int | None = None,
) -> PulsedArchive:
    """Write the engine's pulsed model as an archive, and prove that archive: loaded anew and run pulse by pulse.

    `symbol` is the time axis, if the model has several dynamic ones; the others have their traced size in the pulsed
    archive. `timeout` is in seconds for each job of the engine.

    Raises InputError as `check_streaming` does, WriteError, and the EngineError or ParityError of a stream that the
    engine refuses or computes differently; a pulsed archive that fails its proof is removed.
    """
    axis = streamed_axis(result, pulse, criteria, symbol)
    check_archive_name(path)
    if path.absolute() == result.archive.absolute():
        raise InputError(f"{path} is the archive itself", hint="write the pulsed archive beside it")
    with scratch_folder() as scratch:
        folder, streamed = scratch / "stream", (axis.symbol, pulse)
        reply = axis.engine.write(result.archive, folder, pulse=streamed, symbols=axis.others, timeout=timeout)
        if reply.status != "ok":
            common = {"engine": f"{axis.engine.name} {axis.engine.version}", "required": criteria.required}
            with_reason(failure_outcome(reply, (), common, timeout), result.graph).raise_for_failure()
        stream = Stream(**reply.facts[STREAM])
        _check_registries(result, (folder / GRAPH_FILE).read_text("utf-8"))
        files = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
        ordered = sorted(files, key=lambda name: name != GRAPH_FILE)
        write_files({name: folder / name for name in ordered}, path, compression=compression)
    try:
        outcome = _prove(result, path, axis, stream, criteria, timeout).raise_for_failure()
    except BaseException:
        remove_archive(path)
        raise
    return PulsedArchive(path, axis.symbol, stream, result.input_names, result.output_names, outcome)


def _check_registries(result: ExportedArchive, text: str) -> None:
    """Raise InputError if the engine wrote operators of a registry that the target's engine is built without."""
    allowed = result.target.spec.registries
    needed = set(_REGISTRY.findall(text))
    if allowed is not None and needed - allowed:
        names = ", ".join(sorted(needed - allowed))
        raise InputError(
            f"the pulsed archive needs {names}, which the target's `registries` exclude",
            hint="add `pulse` to registries if your engine is built with it",
        )


def _prove(
    result: ExportedArchive, archive: Path, axis: StreamedAxis, stream: Stream, criteria: Judgement, timeout: float
) -> Outcome:
    """Return the outcome of the pulsed archive against PyTorch; it is loaded as any archive is."""

    def run(inputs: Sequence[Array], size: int) -> EngineReply:
        reply = axis.engine.run(archive, list(stream.split_pulses(inputs)), timeout=timeout, one_state=True)
        outputs = (tuple(stream.join(reply.outputs)),) if reply.status == "ok" else ()
        return replace(reply, outputs=outputs)

    return compare_stream(result, axis, run, stream.size, criteria, timeout)[0]
