"""`precision="auto"` next to float32: the plan, its error with inputs outside the search, and the time of a run."""

from __future__ import annotations

import time
import tomllib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance.cases.models.case import ModelCase
from conformance.lab.measure.float16.timing import time_archives
from t2n_core import ExportResult, ModelExport, TractNNEF
from t2n_core.engine import ResolvedEngine
from t2n_core.errors import T2NError
from t2n_core.parity.judging.float16_level import LARGEST, peak

OTHER_TURN = 40
"""The turn of inputs that are drawn after the search, beyond the few turns of the search."""


def measure(name: str, case: ModelCase, engines: list[ResolvedEngine], folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for each engine: the search's report, `peaks` of further inputs, `ms`, `ratio`, or `failed`."""
    export = ModelExport(*case.build(zlib.crc32(name.encode())))
    for engine in engines:
        row: dict[str, Any] = {"name": name, "version": engine.version, "searched": True}
        started = time.perf_counter()
        try:
            auto = export.to(TractNNEF(check_io=False, engine=engine, precision="auto"), folder / "auto.nnef.tar")
            row["seconds"] = time.perf_counter() - started
            row.update(_row(export, engine, auto, folder))
        except T2NError as cause:
            row["failed"] = f"{type(cause).__name__}: {str(cause)[:300]}"
        yield row


def _row(export: ModelExport, engine: ResolvedEngine, auto: ExportResult, folder: Path) -> dict[str, Any]:
    samples = auto.reference.in_float64(auto.reference.others(4, OTHER_TURN))
    reply = auto.target.engine().run(auto.archive, [sample.inputs for sample in samples])
    outcome = auto.check_parity()
    plain = export.to(TractNNEF(check_io=False, engine=engine), folder / "float32.nnef.tar")
    row: dict[str, Any] = {
        "told": auto.notes[-1],
        "plan": tomllib.loads(Path(f"{auto.archive}.precision.toml").read_text(encoding="utf-8")),
        "peaks": [peak(sample.reference, got) for sample, got in zip(samples, reply.outputs, strict=False)],
        "holds": reply.status == "ok",
        "status": str(outcome.status),
        "metrics": {metric.name: metric.value for metric in outcome.metrics},
        "bytes": [result.archive.stat().st_size for result in (plain, auto)],
    }
    row["holds"] &= all(value <= LARGEST for value in row["peaks"]) and outcome.passed
    archives = {"float32": plain.archive, "auto": auto.archive}
    times = time_archives(engine, archives, samples[0].inputs, folder, rounds=3)
    return {**row, "ms": [times["float32"], times["auto"]], "ratio": times["auto ratio"]}
