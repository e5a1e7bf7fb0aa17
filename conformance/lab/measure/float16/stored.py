"""Weights stored as float16 next to float32: size of the archive, time of a run, and whether values stay right."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from conformance.cases.models.case import ModelCase
from conformance.lab.measure.float16.timing import time_archives
from t2n_core import ExportResult, ModelExport, TractNNEF
from t2n_core.engine import ResolvedEngine
from t2n_core.errors import T2NError


def measure(name: str, case: ModelCase, engines: list[ResolvedEngine], folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for each engine: `bytes`, `weights` (bytes of tensors), `ms`, `ratio`, and `level` or `failed`."""
    export = ModelExport(*case.build(zlib.crc32(name.encode())))
    for engine in engines:
        row: dict[str, Any] = {"name": name, "version": engine.version}
        try:
            with torch.inference_mode():
                row.update(_row(export, engine, folder))
        except T2NError as cause:
            row["failed"] = f"{type(cause).__name__}: {str(cause)[:200]}"
        yield row


def _row(export: ModelExport, engine: ResolvedEngine, folder: Path) -> dict[str, Any]:
    plain = export.to(TractNNEF(check_io=False, engine=engine), folder / "float32.nnef.tar")
    stored = export.to(TractNNEF(check_io=False, engine=engine, weights="float16"), folder / "stored.nnef.tar")
    outcome = stored.check_parity("approximate")
    row: dict[str, Any] = {
        "bytes": [result.archive.stat().st_size for result in (plain, stored)],
        "weights": [_bytes_of_weights(result) for result in (plain, stored)],
        "status": str(outcome.status),
        "level": str(outcome.level),
        "notes": list(stored.notes),
    }
    archives = {"float32": plain.archive, "stored": stored.archive}
    times = time_archives(engine, archives, stored.samples[0].inputs, folder)
    return {**row, "ms": [times["float32"], times["stored"]], "ratio": times["stored ratio"]}


def _bytes_of_weights(result: ExportResult) -> int:
    from t2n_core.nnef.dat import stored_size

    return sum(stored_size(value.weight) for _, value in result.graph.variables() if value.weight is not None)
