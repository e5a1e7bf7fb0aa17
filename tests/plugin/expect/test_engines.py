"""Specifiers of engines in entries: with an exporter, a release and a variant, or without."""

from __future__ import annotations

import pytest

from pytest_t2n.expect.engines import check_engine, fits_engine, specifiers_of
from pytest_t2n.records.cell import SelectedEngine
from pytest_t2n.records.schema import CellLine
from t2n_core.parity.stage import Stage, Status
from tests.releases import RECENT


@pytest.mark.parametrize(
    ("text", "target", "label", "fits"),
    [
        ("tract native", "tract", RECENT, True),
        ("tract cuda", "tract", RECENT, False),
        ("tract", "torch-onnx tract", RECENT, False),
        ("torch-onnx tract", "tract", RECENT, False),
        ("onnx tract", "torch-onnx tract", RECENT, False),
        ("torch-onnx tract", "torch-onnx tract", RECENT, True),
        ("torch-onnx  tract>=0.23", "torch-onnx tract", RECENT, True),
        ("torch-onnx tract<0.23", "torch-onnx tract", RECENT, False),
        ("torch-onnx tract no-fma", "torch-onnx tract", f"{RECENT} no-fma", True),
        ("torch-onnx tract>=0.23 no-fma", "torch-onnx tract", RECENT, False),
        ("torch-onnx tract native cpu", "torch-onnx tract", RECENT, True),
    ],
)
def test_what_a_specifier_fits(text: str, target: str, label: str, fits: bool) -> None:
    check_engine(text)
    assert fits_engine(text, target, RECENT, label) == fits


@pytest.mark.parametrize("text", ["torch-onnx tarct", "torch-onnx tract fast", "two other tract", "torch-onnx >=0.23"])
def test_what_is_no_specifier(text: str) -> None:
    with pytest.raises(ValueError, match=f"'{text}' names no engine"):
        check_engine(text)


def test_specifiers_of_failures_name_their_exporter() -> None:
    engines = [
        SelectedEngine("tract", version, version, exporter=exporter)
        for exporter in ("", "torch-onnx")
        for version in ("0.22.4", RECENT)
    ]
    cells = [
        CellLine(
            1,
            "a::t",
            "a::t",
            engine.target,
            engine.version,
            engine.label,
            Status.ERROR,
            Stage.RUN,
            exporter=engine.exporter,
        )
        for engine in engines
    ]
    assert specifiers_of(cells, engines) == ("tract", "torch-onnx tract")
    assert specifiers_of(cells[2:], engines) == ("torch-onnx tract",)
    assert specifiers_of(cells[:1] + cells[3:], engines) == ("tract==0.22.4", f"torch-onnx tract=={RECENT}")
