"""The manifest of an archive: what a program that runs it has to know and the archive does not state.

Inputs and outputs by position, the state that a program passes from call to call, and how a stream is cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from t2n_core.check.exported.archive import ExportedArchive
from t2n_core.check.exported.pulsed import PulsedArchive
from t2n_core.files import write_whole
from t2n_core.nnef.graph import Value
from t2n_core.nnef.reading.file_kind import split_archive_name
from t2n_core.parity.state_pairs import StatePair

FORMAT: Final = 1


def manifest_of(result: ExportedArchive, pulsed: PulsedArchive | None = None) -> dict[str, Any]:
    """Return the manifest of an archive, in built-in types; `pulsed` is the archive of its stream."""
    target, values = result.target, (*result.graph.inputs, *result.graph.outputs)
    return {
        "format": FORMAT,
        target.name: str(target.version),
        **part_of(result),
        "dtypes": {value.name: str(value.dtype) for value in values},
        "properties": dict(getattr(target, "specific_properties", {})),
        "state": states_of(result.state),
        **({} if target.pulse is None else {"stream": _stream(target.pulse, pulsed)}),
    }


def write_manifest(result: ExportedArchive, pulsed: PulsedArchive | None = None) -> Path:
    """Write the manifest beside the archive, and return its path: `model.manifest.json` of `model.nnef.tgz`."""
    path = result.archive.with_name(f"{split_archive_name(result.archive.name)[0]}.manifest.json")
    write_whole(path, f"{json.dumps(manifest_of(result, pulsed), indent=2)}\n")
    return path


def part_of(result: ExportedArchive) -> dict[str, Any]:
    """Return the archive's name, the sizes that it holds for, and its inputs and outputs in order with their shapes."""
    return {
        "archive": result.archive.name,
        "sizes": str(result.range),
        "inputs": _shapes(result.graph.inputs),
        "outputs": _shapes(result.graph.outputs),
    }


def states_of(state: Iterable[StatePair]) -> list[dict[str, Any]]:
    """Return the pairs of state; `initial` is the shape of the zeros that a program begins with."""
    return [
        {
            "input": pair.input,
            "output": pair.output,
            "grows": list(pair.growing),
            "initial": list(pair.initial.shape),
            "dtype": str(pair.initial.dtype),
        }
        for pair in state
    ]


def _shapes(values: Iterable[Value]) -> dict[str, list[str]]:
    return {value.name: [str(extent) for extent in value.shape] for value in values}


def _stream(pulse: int, pulsed: PulsedArchive | None) -> dict[str, Any]:
    """Return the steps of a pulse; for a pulsed archive the streamed axes, and the steps by which outputs are late."""
    if pulsed is None:
        return {"pulse": pulse}
    stream = pulsed.stream
    late = zip(pulsed.output_names, stream.output_axes, stream.delays, strict=True)
    return {
        "pulse": stream.size,
        "archive": pulsed.archive.name,
        "symbol": pulsed.symbol,
        "inputs": {name: {"axis": int(axis)} for name, axis in zip(pulsed.input_names, stream.input_axes, strict=True)},
        "outputs": {name: {"axis": int(axis), "delay": int(delay)} for name, axis, delay in late},
    }
