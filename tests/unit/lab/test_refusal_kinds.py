"""Each refusal of an operator is of one of five kinds, told by its message."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from conformance.lab.pages.long_tables import rows_of
from conformance.lab.pages.refusal_kinds import KINDS, kind_of

ROOT = Path(__file__).parents[3]
EXPORTING = {"setup", "input", "capture", "lower", "spec"}


def reasons_of_refusals() -> set[str]:
    found = set()
    for name in ("aten.toml", "aten_dynamic.toml", "complete.toml"):
        for entry in tomllib.loads((ROOT / "conformance" / "expectations" / name).read_text("utf-8"))["expect"]:
            if entry["status"] in ("unsupported", "error") and entry["stage"] in EXPORTING:
                found.add(entry["reason"].removeprefix("accepted: "))
    return found


def test_there_are_five_kinds() -> None:
    assert [kind.name for kind in KINDS] == ["random", "training", "unknown shape", "not expressible", "rare"]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("aten::rand draws random numbers, and a graph has none", "random"),
        ("dropout is active: the module is in training mode", "random"),
        ("the model writes into its input `x3`; an exported graph cannot", "training"),
        ("a size of this model depends on its data (u0)", "unknown shape"),
        ("NNEF 1.0 has no dtype float64", "not expressible"),
        ("no rule for aten::igamma, and PyTorch's decomposition of it ends in prims::igamma", "rare"),
    ],
)
def test_a_message_has_its_kind(message: str, kind: str) -> None:
    found = kind_of(f"1 operator of this model cannot be exported:\n- {message}\n    origin: aten::x in forward")
    assert found is not None
    assert found.name == kind


@pytest.mark.parametrize("message", ["no rule for aten::relu", "no rule for aten::special_zeta2", "KeyError: 'x'", ""])
def test_what_nobody_has_accepted_has_no_kind(message: str) -> None:
    assert kind_of(message) is None


def test_every_expected_refusal_has_a_kind() -> None:
    assert [reason for reason in sorted(reasons_of_refusals()) if kind_of(reason) is None] == []


def test_every_refusal_on_the_support_page_stands_under_a_kind() -> None:
    page = (ROOT / "docs/reference/support.md").read_text("utf-8")
    refused = page.partition("## What is refused")[2].partition("\n## ")[0]
    assert [line.removeprefix("### ").lower() for line in refused.splitlines() if line.startswith("### ")] == [
        kind.name for kind in KINDS
    ]
    named = set(re.findall(r"`([^`]+)`", "".join(line for line in refused.splitlines() if line.startswith("| "))))
    rows = list(rows_of(ROOT / "docs/reference/support.md", ROOT / "docs/reference/tables"))
    assert len(rows) > 2000
    assert {
        operator.strip("`") for operator, dtype, *entries in rows if dtype == "float32" and "no" in entries
    } <= named
