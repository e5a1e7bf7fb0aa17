"""Suite `aten_dynamic`: PyTorch's database of operators with every axis dynamic, in float32.

As in suite `aten` a cell passes if all its samples do; each runs at the traced sizes, at 1 and at larger ones. An axis
that PyTorch takes in no other size, since an argument of the operator fixes it (`broadcast_to`, `view`), stays as it
is. Where the operator decides by a size, a graph for all sizes is not possible: these are expectations.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import pytest

from conformance.checks import aten, aten_outcomes
from t2n_core.export.model import ModelExport

SELECTED = 2
"""Samples per operator unless `--complete` is given."""
FIXED = "no axis that PyTorch takes in another size"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        from conformance.cases.aten import all_aten_cases

        cases = [case for case in all_aten_cases() if case.kind == "operator" and case.dtype == "float32"]
        metafunc.parametrize("case", cases, ids=[case.name for case in cases])


@pytest.mark.nnef_export(target="tract")
def test_aten_dynamic(
    case: Any, nnef_export: Any, t2n_engine: Any, request: pytest.FixtureRequest, record_property: Any
) -> None:
    record_property("t2n_op", case.name)
    start = time.perf_counter()
    exports, left_out = _exports(case, request.config.getoption("complete"))
    lines = aten.check_samples(nnef_export, exports)
    line = aten_outcomes.case_line(
        case, aten_outcomes.DYNAMIC, t2n_engine.title, lines, left_out, time.perf_counter() - start
    )
    record_property(aten_outcomes.PROPERTY, line.to_json())
    aten.judge(lines, left_out)


@lru_cache(maxsize=1)
def _exports(case: Any, complete: bool) -> tuple[list[tuple[str, ModelExport]], dict[str, int]]:
    """Return the samples of a case; the cells of all engines, which follow each other, share their captures."""
    from conformance.cases.aten import SampleSource

    source = SampleSource(case)
    exports, fixed = [], 0
    for sample in source.usable():
        axes = sample.dynamic_axes
        if not axes:
            fixed += 1
            continue
        export = ModelExport(
            sample.model,
            sample.inputs,
            input_names=sample.input_names,
            dynamic_axes=axes,
            extra_inputs=sample.extra_inputs,
        )
        exports.append((sample.id, export))
        if not complete and len(exports) == SELECTED:
            break
    return exports, {**source.left_out, **({FIXED: fixed} if fixed else {})}
