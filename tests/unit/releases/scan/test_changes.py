"""What a release changes, and the rows of the spec table with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from t2n_core.releases.scan.changes import Difference, Release, SignatureChange, TableRow, find_changes
from t2n_core.releases.scan.contents import Contents, LibraryOperator
from t2n_core.releases.scan.note import note
from t2n_core.releases.scan.sources import Declaration


def contents(release: str, operators: Mapping[str, LibraryOperator], **more: Any) -> Contents:
    names = {"registries": ["onnx"], "transforms": [], "runtimes": [], "functions": [], **more}
    return Contents(release, operators, **names)


def row(operator: str, parameters: str = "x: tensor<scalar>", until: str = "0.23.8", **more: str) -> TableRow:
    return {
        "registry": "tract_core", "operator": operator, "kind": "primitive", "since": "0.19.0", "until": until,
        "parameters": parameters, "results": "output: tensor<scalar>", "status": "ok", "reason": "", **more,
    }  # fmt: skip


ASKED = LibraryOperator("tract_core", {"x": "tensor"})
TABLE = [
    row("kept"),
    row("gone"),
    row("ended", until="0.22.4"),
    row("declared", "x: tensor<scalar>, k: integer"),
    row("asked", "x: tensor<scalar>"),
    row("missing", status="absent", reason="declared, not implemented"),
]
BEFORE = Release(
    contents(
        "0.23.8",
        {**dict.fromkeys(["kept", "gone", "declared"], ASKED), "asked": ASKED},
        transforms=["patch"],
        functions=["tract_a"],
    ),
    {"declared": Declaration("primitive", "x: tensor<scalar>, k: integer", "output: tensor<scalar>")},
)
NOW = Release(
    contents(
        "0.24.0",
        {
            **dict.fromkeys(["kept", "declared"], ASKED),
            "asked": LibraryOperator("tract_core", {"input": "tensor"}),
            "tract_onnx_new": LibraryOperator("", {"x": "tensor", "axes": "integer[]"}),
        },
        transforms=["patch", "blockify"],
        functions=["tract_b"],
    ),
    {"declared": Declaration("primitive", "x: tensor<scalar>, k: tensor<integer>", "output: tensor<scalar>")},
)
CHANGES = find_changes(BEFORE, NOW, TABLE)


def test_names_that_are_new_and_gone() -> None:
    assert CHANGES.operators == Difference(("tract_onnx_new",), ("gone",))
    assert CHANGES.transforms == Difference(("blockify",), ())
    assert CHANGES.functions == Difference(("tract_b",), ("tract_a",))


def test_signatures_by_declarations_else_by_what_the_engine_asks_for() -> None:
    assert CHANGES.signatures == (
        SignatureChange("asked", "x: tensor<scalar>", "input: tensor<scalar>"),
        SignatureChange("declared", "x: tensor<scalar>, k: integer", "x: tensor<scalar>, k: tensor<integer>"),
    )


def test_arguments_that_the_engine_no_longer_comes_to_are_no_change() -> None:
    shorter = Release(contents("0.24.0", {"kept": LibraryOperator("tract_core", {})}))
    longer = Release(contents("0.23.8", {"kept": ASKED}))
    assert find_changes(longer, shorter, [row("kept")]).signatures == ()


def test_rows_go_on_end_and_begin() -> None:
    rows = {(row["operator"], row["since"]): row for row in CHANGES.rows}
    assert {key: row["until"] for key, row in rows.items()} == {
        ("kept", "0.19.0"): "0.24.0",
        ("gone", "0.19.0"): "0.23.8",
        ("ended", "0.19.0"): "0.22.4",
        ("declared", "0.19.0"): "0.23.8",
        ("declared", "0.24.0"): "0.24.0",
        ("asked", "0.19.0"): "0.23.8",
        ("asked", "0.24.0"): "0.24.0",
        ("missing", "0.19.0"): "0.24.0",
        ("tract_onnx_new", "0.24.0"): "0.24.0",
    }
    new = rows["tract_onnx_new", "0.24.0"]
    assert (new["registry"], new["parameters"]) == ("tract_onnx", "x: tensor<scalar>, axes: integer[]")
    assert rows["declared", "0.24.0"]["parameters"] == "x: tensor<scalar>, k: tensor<integer>"


def test_the_note_names_changes_and_what_is_left_to_do() -> None:
    text = note(CHANGES)
    assert text.startswith("# What tract 0.24.0 changes\n")
    assert "- `tract_onnx_new` of tract_onnx: x: tensor<scalar>, axes: integer[]" in text
    assert "## Operators that are gone\n\n- `gone`" in text
    assert "the transform `blockify`, with the precision that it loses" in text
    assert "what it calls in place of `tract_a`" in text


def test_the_note_of_an_equal_release() -> None:
    same = Release(contents("0.24.0", BEFORE.contents.operators, transforms=["patch"], functions=["tract_a"]))
    text = note(find_changes(Release(BEFORE.contents), same, TABLE))
    assert "functions are the same" in text
    assert "Left to do" not in text
