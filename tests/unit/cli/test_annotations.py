"""Annotations of a pull request, made from records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pytest_t2n.records.schema import SCHEMA, CellLine, ErrorLine
from pytest_t2n.report.annotations import annotation_lines
from pytest_t2n.report.matrix import Matrix
from t2n_core.parity.stage import Stage, Status
from tests.releases import NEWEST


def cell(name: str, status: Status, engine: str = NEWEST, **more: Any) -> CellLine:
    case = f"tests/test_net.py::{name}"
    node = f"{case}[tract-{engine}]"
    return CellLine(SCHEMA, node, case, "tract", engine, engine, status, Stage.LOWER, **more)


def test_a_failure_stands_at_its_torch_line(tmp_path: Path) -> None:
    (tmp_path / "nets").mkdir()
    net = tmp_path / "nets" / "head.py"
    net.write_text("\n" * 9)
    source = f"{net}:8 in forward: `return torch.special.zeta(x, x + 4)`"
    error = ErrorLine(
        "LowerError", "no rule for aten::special_zeta:\n100%", "write one", source=source, fingerprint="ab"
    )
    cells = [cell("test_a", Status.UNSUPPORTED, engine, error=error) for engine in ("0.21.19", NEWEST)]
    (line,) = annotation_lines(Matrix.of([*cells, cell("test_b", Status.PASS)]), tmp_path)
    assert line == (
        f"::error file=nets/head.py,line=8,title=unsupported at lower::2 cells of tract 0.21.19, tract {NEWEST}, first "
        "tests/test_net.py::test_a%0Ano rule for aten::special_zeta:%0A100%25%0Awrite one"
    )


def test_a_failure_elsewhere_stands_at_its_test(tmp_path: Path) -> None:
    outside = ErrorLine("E", "no", source="/usr/lib/torch/nn.py:3 in forward: `x`", fingerprint="1")
    without = ErrorLine("E", "no\x1b[2J", fingerprint="2")
    cells = [cell("test_a", Status.CRASH, error=outside), cell("test_b", Status.CRASH, error=without)]
    lines = annotation_lines(Matrix.of(cells), tmp_path)
    assert all(line.startswith("::error file=tests/test_net.py,title=crash at lower::1 cells") for line in lines)
    assert "\\x1b[2J" in lines[1]


def test_what_is_expected_is_no_annotation(tmp_path: Path) -> None:
    expected_crash = msgspec.structs.replace(cell("test_a", Status.CRASH), expected="known")
    assert annotation_lines(Matrix.of([expected_crash, cell("test_b", Status.SKIP)]), tmp_path) == []
