"""The developers' net of archives: two runs give equal texts, and a fault in the exporter shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from t2n_core.export.options import marker_options
from t2n_core.inference_target import TractNNEF
from tests.releases import NEWEST
from tools.archive_digests.__main__ import ROOT, differences, main
from tools.archive_digests.folder import Folder
from tools.archive_digests.recorder import without_place

SUITE = "tools/archive_digests/test_options.py"
PLANTS = {
    "doubled": "float_text = lambda value: plain(2 * value)",
    "endless": "import time\nfloat_text = lambda value: time.sleep(60)",
    "dead": "import os\nfloat_text = lambda value: os._exit(3)",
}
"""Faults of the writer of numbers."""


@pytest.fixture
def write(resolved_engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Folder]:
    """Return a function that records cells of the suite `options`, with a fault if one is named."""
    resolved_engine(NEWEST)

    def record(name: str, cells: str, *more: str, plant: str = "") -> Folder:
        if plant:
            source = f"from t2n_core.nnef import lexical as writer\nplain = writer.float_text\n{PLANTS[plant]}\n"
            (tmp_path / "plant.py").write_text(source + "writer.float_text = float_text\n")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
        monkeypatch.setenv("PYTEST_ADDOPTS", "-p plant" if plant else "")
        arguments = ["--suite=options", f"--tract={NEWEST}", f"--case={cells}", *more]
        assert main(["write", str(tmp_path / name), *arguments]) == 0
        return Folder(tmp_path / name)

    return record


@pytest.mark.nightly
def test_two_runs_are_equal_and_a_fault_shows(write: Callable[..., Folder], capsys: pytest.CaptureFixture[str]) -> None:
    cells = r"test_(option\[plain|pulse|refused)"
    before, again = write("before", cells), write("again", cells)
    entries = before.cells()
    assert entries.keys() == {
        f"{SUITE}::test_option[plain-tract-{NEWEST}]",
        f"{SUITE}::test_pulse[4-tract-{NEWEST}]",
        f"{SUITE}::test_refused[tract-{NEWEST}]",
        f"{SUITE}::test_refused[khronos]",
    }
    (refused,) = entries[f"{SUITE}::test_refused[khronos]"]
    assert refused.startswith("refused UnsupportedOpsError: ")
    assert "aten::bernoulli draws random numbers" in refused
    (archive,) = entries[f"{SUITE}::test_pulse[4-tract-{NEWEST}]"]
    assert "conv(" in before.text(archive)
    assert "\n# layers.0.weight.dat " in before.text(archive)
    assert main(["compare", str(before.path), str(again.path)]) == 0

    wrong = write("wrong", cells, plant="doubled")
    capsys.readouterr()
    assert main(["compare", str(before.path), str(wrong.path)]) == 1
    printed = capsys.readouterr().out
    assert "1 of 4 cells differ" in printed
    assert "\n-" in printed
    assert "scaled_dot_product_attention" in printed


@pytest.mark.nightly
@pytest.mark.parametrize(("plant", "entry"), [("endless", "timeout TooLong: "), ("dead", "crash the process ended")])
def test_a_cell_that_does_not_end_has_an_entry(
    plant: str, entry: str, write: Callable[..., Folder], capfd: pytest.CaptureFixture[str]
) -> None:
    plain = f"{SUITE}::test_option[plain-tract-{NEWEST}]"
    cells = write("all", r"test_option\[plain|test_refused\[kh", "--seconds=12", plant=plant).cells()
    assert cells.pop(plain)[0].startswith(entry)
    assert len(cells) == 1
    if plant == "dead":
        folder = write("all", r"test_option\[plain|test_refused", "--retry")
        assert folder.cells()[plain][0].startswith("archive ")
        assert "1 cells recorded, 3 in all: 1 archive, 2 refused" in capfd.readouterr().out


def test_entries_of_other_code_are_not_mixed(tmp_path: Path) -> None:
    Folder(tmp_path).begin("this code")
    Folder(tmp_path).begin("this code")
    with pytest.raises(ValueError, match="entries of other code"):
        Folder(tmp_path).begin("that code")


def test_a_line_that_was_cut_off_is_no_entry(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.begin("this code")
    folder.add("a", ["refused X: no"])
    folder.add("a", ["archive 1"])
    with (tmp_path / "cells.jsonl").open("a") as file:
        file.write(json.dumps({"cell": "b", "entries": []})[:-3])
    assert folder.cells() == {"a": ["archive 1"]}
    folder.begin("this code")
    folder.add("c", ["archive 2"])
    assert folder.cells() == {"a": ["archive 1"], "c": ["archive 2"]}


def test_cells_that_differ_or_are_in_one_folder_only() -> None:
    before = {"a": ["1"], "b": ["2", "3"], "c": ["4"]}
    after = {"a": ["1"], "b": ["2", "5"], "d": ["6"]}
    none = "no such entry"
    assert list(differences(before, after)) == [("b", "3", "5"), ("c", "4", none), ("d", none, "6")]


def test_a_refusal_is_the_same_in_every_checkout() -> None:
    texts = [f"fixes T to 1 at {root}/nets.py:{n} in forward, see {root}/x" for root, n in (("/a", 39), ("/b/c", 7))]
    assert {without_place(text) for text in texts} == {"fixes T to 1 at FILE in forward, see PATH"}
    assert without_place("3 / 4 and aten::mul/div") == "3 / 4 and aten::mul/div"


def test_every_option_that_changes_archives_is_in_the_suite() -> None:
    without = {
        *("version", "check_io", "check_io_tolerance", "engine", "offline", "specific_tract_binary_path"),  # the engine
        *("inputs", "sizes", "strict_rewrites", "rewriters"),  # the check, and what conftest.py of a project names
        *("registered_rewriters", "deploy_config"),  # of such rewriters
        "training",  # refuses, or changes nothing
        "pulsed_archive",  # written by the engine
        "dump_identity_properties",  # not the same twice
    }
    options = {*TractNNEF.__init__.__kwdefaults__, *marker_options()} - without
    source = (ROOT / SUITE).read_text("utf-8")
    assert not {name for name in options if f'"{name}"' not in source and f"{name}=" not in source}
