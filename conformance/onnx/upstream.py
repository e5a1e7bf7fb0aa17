"""Cases for the engine's repository: one for each cause for which a release is wrong, with the text of an issue."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
import onnx.printer

from conformance.lab.pages.render import render
from conformance.onnx.cases import OnnxCase, generated
from conformance.onnx.judge import compare
from conformance.onnx.known import CAUSES, Cause
from conformance.onnx.page import in_words
from conformance.onnx.table import Table, spans
from t2n_core.engine import engine_for, resolve_engines
from t2n_core.reduce.issue import machine_text, value_row


def write_upstream_cases(table: Table, release: str, folder: Path) -> list[str]:
    """Write the cases of a release into a folder, as ONNX's test data is laid out, and return their names."""
    wrong = {row.case for row in table.rows if row.statuses[release] == "wrong"}
    causes = [cause for cause in CAUSES if cause.example in wrong]
    for cause in causes:
        case = generated().cases[cause.example]
        write_case(case, folder / cause.name)
        (folder / f"{cause.name}.issue.md").write_text(_issue(cause, case, table, release), encoding="utf-8")
    return [cause.name for cause in causes]


def write_case(case: OnnxCase, folder: Path) -> None:
    """Write the model of a case, and its inputs and outputs."""
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for kind, arrays in (("input", case.inputs), ("output", case.outputs)):
        for index, array in enumerate(arrays):
            (data / f"{kind}_{index}.pb").write_bytes(onnx.numpy_helper.from_array(array).SerializeToString())


def _issue(cause: Cause, case: OnnxCase, table: Table, release: str) -> str:
    (resolved,) = resolve_engines(release)
    with TemporaryDirectory() as folder:
        write_case(case, Path(folder))
        (computed,) = engine_for(resolved).run(Path(folder, "model.onnx"), [case.inputs]).outputs
    graph = case.model.graph
    values = [value_row(f"`{port.name}`", array) for port, array in zip(graph.input, case.inputs, strict=True)]
    for port, expected, output in zip(graph.output, case.outputs, computed, strict=True):
        values += [value_row(f"`{port.name}`, expected", expected), value_row(f"`{port.name}`, computed", output)]
    prefix = re.compile(rf"\w*{case.name}\w*?_function_")  # of the names that onnx gives to values of a function
    return render(
        "onnx_issue",
        (spans, in_words),
        cause=cause,
        case=case,
        release=release,
        table=table,
        text=prefix.sub("", onnx.printer.to_text(case.model)).strip(),
        values=values,
        verdict=compare(computed, case).reason,
        rows=[row for row in table.rows if cause.explains(row.case)],
        machine=machine_text(),
    )
