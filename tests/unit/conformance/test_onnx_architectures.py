"""The rows of torch.onnx's files of architectures, their table, and the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from conformance.onnx.architectures.page import cell, page, reasons
from conformance.onnx.architectures.table import VERDICTS, Row, read, rows_of, totals, write
from tests.releases import NEWEST

RELEASE = NEWEST


def judged(reference: dict[str, Any], pytorch: dict[str, Any], differs: str = "") -> dict[str, Any]:
    return {"name": "net", "reference": reference, "pytorch": pytorch, "file": {"differs": differs}}


PASS = {"status": "pass", "off": 0.0}
WEAK = {"status": "weak", "reason": "1 of 2 outputs prove little"}
MISMATCH = {"status": "mismatch", "off": 0.5, "reason": "1 of 1 outputs differ"}
REFUSED = {"status": "error", "reason": "TDim is not a number\n  in: it", "op": "CumSum", "refusal": "shape arithmetic"}
CRASH = {"status": "crash", "reason": "panicked at /build/x-1.2/nd-0.1/src/lib.rs:1: off"}
UNJUDGED = {"status": "", "reason": "DrawError: no inputs"}


@pytest.mark.parametrize(
    ("by_file", "by_pytorch", "verdicts", "reason", "text"),
    [
        (PASS, PASS, ("right", "right"), "", "right"),
        (WEAK, PASS, ("weak", "right"), "1 of 2 outputs prove little", "weak"),
        (REFUSED, REFUSED, ("refused", "refused"), "TDim is not a number", "refused: `CumSum`"),
        (CRASH, CRASH, ("died", "died"), "panicked at nd-0.1/src/lib.rs:1: off", "died"),
        (PASS, MISMATCH, ("right", "wrong"), "off by 0.5 at most", "right by the file, wrong by PyTorch"),
        (UNJUDGED, PASS, ("not judged", "right"), "DrawError: no inputs", "not judged by the file, right by PyTorch"),
    ],
)
def test_verdicts_of_a_file(by_file: Any, by_pytorch: Any, verdicts: tuple[str, str], reason: str, text: str) -> None:
    (row,) = rows_of([{"name": "net", "sizes": "free"}], {RELEASE: [judged(by_file, by_pytorch)]})
    assert ((row.reference, row.pytorch), row.reason) == (verdicts, reason)
    assert row.agrees is ("by PyTorch" not in text)
    assert cell(row) == text


def test_exports_that_fail_and_repairs(tmp_path: Path) -> None:
    exports = [
        {"name": "net", "sizes": "fixed", "free_error": "ValueError: a\tb\nc"},
        {"name": "other", "sizes": "", "fixed_error": "KeyError: x"},
    ]
    after = {**PASS, "name": "net", "repairs": ["fold constants", "infer types"]}
    rows = rows_of(exports, {RELEASE: [judged(REFUSED, REFUSED)]}, {RELEASE: [after]})
    assert rows == [
        Row("net", sizes="fixed", reason="ValueError: a b"),
        Row("net", RELEASE, "fixed", "refused", "refused", op="CumSum", refusal="shape arithmetic",
            reason="TDim is not a number", repaired="right", repairs="fold constants, infer types"),
        Row("other", reason="KeyError: x"),
    ]  # fmt: skip
    assert totals(rows, RELEASE) == {"refused": 1}
    assert reasons(rows, RELEASE) == [("shape arithmetic", [("CumSum", 1)], 1)]
    write(rows, tmp_path / "verdicts.tsv")
    assert read(tmp_path / "verdicts.tsv") == rows
    text = page(rows)
    assert "| net | refused: `CumSum` | right | fold constants, infer types |" in text
    assert f"| {RELEASE} | 1 | 1 | 1 | 0 |" in text
    assert "| net | none with dynamic axes | ValueError: a b |" in text
    assert "| other | none | KeyError: x |" in text


def test_a_file_that_differs_from_pytorch_names_its_author() -> None:
    rows = rows_of([{"name": "net", "sizes": "free"}], {RELEASE: [judged(PASS, MISMATCH, "y: 0.5 off")]})
    assert (
        f"| net | {RELEASE} | right | wrong | torch.onnx: onnxruntime differs from PyTorch too, y: 0.5 off |"
        in page(rows)
    )


def test_the_committed_table() -> None:
    """Each architecture has a verdict in the newest release or is not exported; what differs has a known author."""
    rows = read()
    judged = [row for row in rows if row.release]
    names = {row.name for row in rows}
    assert len(names) == 177
    assert NEWEST in {row.release for row in judged}
    for release in {row.release for row in judged}:
        of = [row.name for row in judged if row.release == release]
        assert len(of) == len(set(of))
        assert names - set(of) == {row.name for row in rows if not row.release and not row.sizes}
    assert {row.reference for row in judged} | {row.pytorch for row in judged} <= set(VERDICTS)
    assert [row for row in judged if not row.agrees and not row.file] == []
    assert [row for row in judged if row.reference == "wrong" and row.file] == []  # the page says so
    text = page(rows)
    assert re.findall(r"^\| (\S+) \| (?:free|fixed) \|", text, re.MULTILINE) == list(
        dict.fromkeys(row.name for row in judged)
    )
