"""Make a matrix of any number of cells from a real one's records.

Cases are repeated under new names, each on as many releases as wanted. Numbers, times and digests are perturbed in
each cell, and each case has distinct graphs: copies would compress as no real matrix does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pytest_t2n.records.cell import Cell, SelectedEngine
from pytest_t2n.records.completeness import plan_for
from pytest_t2n.records.file import each_record
from pytest_t2n.records.folder import MATRIX_FILE
from pytest_t2n.records.schema import SCHEMA, CellLine, EndLine, EngineLine, GraphLine, PlatformLine, Record, RunLine

_STARTED = "2026-01-02T03:04:05+00:00"


def enlarge(template: Path, cells: int, engines: int, seed: int = 7) -> Iterator[Record]:
    """Yield the records of about `cells` cells on `engines` releases, made from `template`'s.

    Raises ValueError if the template has no cells.
    """
    rng = random.Random(seed)
    by_case: dict[str, list[CellLine]] = {}
    graphs: dict[str, str] = {}
    for record in each_record(template / MATRIX_FILE if template.is_dir() else template):
        if isinstance(record, GraphLine):
            graphs[record.key] = record.text
        elif isinstance(record, CellLine) and record.target == "tract" and " " not in record.label:
            by_case.setdefault(record.case, []).append(record)
    if not by_case:
        raise ValueError(f"{template} has no cells")
    labels = [f"0.{19 + index * 5 // engines}.{index}" for index in range(engines)]
    columns = [SelectedEngine("tract", label, label, platform="here") for label in labels]
    platform = PlatformLine("here", system="linux", machine="x86_64", cores=2)
    lines = [
        EngineLine("tract", label, label, "all", "wheel", rng.randbytes(32).hex(), platform="here") for label in labels
    ]
    rows = _rows(list(by_case), cells // engines)
    yield RunLine(SCHEMA, _STARTED, lines, {"python": "3.11"}, "linux", platforms=[platform])
    yield plan_for(Cell(_nodeid(case, engine.label), case, engine) for case, _ in rows for engine in columns)
    for case, source in rows:
        yield from _row(rng, case, by_case[source], labels, graphs)
    yield EndLine(SCHEMA, _STARTED)


def _rows(cases: list[str], count: int) -> list[tuple[str, str]]:
    """Return the names of the rows with the cases that they are made from."""
    rows = []
    for number in range(count):
        turn, index = divmod(number, len(cases))
        source = cases[index]
        head = source.removesuffix("]")
        closed = source.endswith("]")
        rows.append((f"{head}-{turn}]" if closed else f"{head}[{turn}]", source))
    return rows


def _nodeid(case: str, label: str) -> str:
    return f"{case[:-1]}-tract-{label}]"


def _row(
    rng: random.Random, case: str, sources: list[CellLine], labels: list[str], graphs: Mapping[str, str]
) -> Iterator[Record]:
    graph_keys: dict[str, str] = {}
    for index, label in enumerate(labels):
        source = sources[index * len(sources) // len(labels)]
        if source.graph in graphs and source.graph not in graph_keys:
            graph_keys[source.graph] = rng.randbytes(8).hex()
            text = graphs[source.graph]
            yield GraphLine(SCHEMA, graph_keys[source.graph], f"{text}# {graph_keys[source.graph]}\n")
        yield msgspec.structs.replace(
            source,
            nodeid=_nodeid(case, label),
            case=case,
            version=label,
            label=label,
            platform="here",
            on="",
            outputs=[_shaken_output(rng, output) for output in source.outputs],
            times=_perturb(rng, source.times),
            facts=_perturb(rng, source.facts),
            archive_sha256=rng.randbytes(32).hex(),
            graph=graph_keys.get(source.graph, ""),
        )


def _shaken_output(rng: random.Random, line: Any) -> Any:
    names = ("max_abs", "max_rel", "worst_expected", "worst_actual", "outliers", "moves")
    return msgspec.structs.replace(line, **{name: _perturb(rng, getattr(line, name)) for name in names})


def _perturb(rng: random.Random, value: Any) -> Any:
    if isinstance(value, float) and value:
        return value * rng.uniform(0.5, 1.5)
    if isinstance(value, dict):
        return {name: _perturb(rng, item) for name, item in value.items()}
    if isinstance(value, list):
        return [_perturb(rng, item) for item in value]
    return value
