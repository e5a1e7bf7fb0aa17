"""Suite `aten`: PyTorch's own databases of operators and modules, one cell per entry, dtype and engine.

A cell passes if all usable samples of its entry do; what became of each is in the property `aten` of the report, which
`conftest.py` writes to the file of `--aten-outcomes`. A cell per sample would cost more to schedule than to run.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import pytest

from conformance.checks import aten, aten_outcomes
from t2n_core.export.model import ModelExport

SELECTED = 2
"""Samples per operator unless `--complete` is given; peers were measured with as many."""
MOST = 8
"""Samples if those before do not prove anything, as of a sum over a tensor of one element."""
OTHER_DTYPES = 3
"""Samples in other dtypes than float32, and in place."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        from conformance.cases.aten import all_aten_cases, aten_cases_of

        dtypes = metafunc.config.getoption("aten_dtypes")
        cases = all_aten_cases() if dtypes is None else aten_cases_of(dtypes.split(","))
        metafunc.parametrize("case", cases, ids=[case.id for case in cases])


@pytest.mark.nnef_export(target=["tract", "khronos"])
def test_aten(
    case: Any, nnef_export: Any, t2n_engine: Any, request: pytest.FixtureRequest, record_property: Any
) -> None:
    record_property("t2n_op", case.name)
    record_property("t2n_dtype", case.dtype)
    start = time.perf_counter()
    exports, left_out = _exports(case, request.config.getoption("complete"))
    lines = aten.check_samples(nnef_export, exports)
    line = aten_outcomes.case_line(case, case.kind, t2n_engine.title, lines, left_out, time.perf_counter() - start)
    record_property(aten_outcomes.PROPERTY, line.to_json())
    aten.judge(lines, left_out)


@lru_cache(maxsize=1)
def _exports(case: Any, complete: bool) -> tuple[list[tuple[str, ModelExport]], dict[str, int]]:
    """Return the samples of a case; the cells of all engines, which follow each other, share their captures."""
    from conformance.cases.aten import SampleSource

    plain = case.dtype == "float32" and case.kind != "inplace"
    most = (None if complete else SELECTED) if plain else OTHER_DTYPES
    source = SampleSource(case)
    exports = list[tuple[str, ModelExport]]()
    for sample in source.usable():
        if most is not None and len(exports) >= most and (len(exports) >= MOST or aten.proves_something(exports)):
            break
        export = ModelExport(
            sample.model, sample.inputs, input_names=sample.input_names, extra_inputs=sample.extra_inputs
        )
        exports.append((sample.id, export))
    return exports, source.left_out
