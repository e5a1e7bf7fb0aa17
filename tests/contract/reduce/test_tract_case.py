"""Cases in the form of tract's repository: what is in the folder, and what a wheel says of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from t2n_core import KhronosNNEF, ModelExport, TractNNEF
from t2n_core.errors import InputError
from t2n_core.nnef.archive import write_archive
from t2n_core.nnef.reading.archive import read_archive
from t2n_core.nnef.reading.binding import Signatures
from t2n_core.nnef.reading.origins import read_origins
from t2n_core.nnef.spec import spec_for
from t2n_core.parity.samples import Sample
from t2n_core.parity.stage import Author
from t2n_core.reduce.issue import issue_text
from t2n_core.reduce.program import Program
from t2n_core.reduce.tract_case import TractCase, replay, write_tract_case
from tests.releases import NEWEST

A = np.full((1, 1, 1), 2, np.float32)
B = np.arange(40, dtype=np.float32).reshape(1, 1, 40)


@pytest.fixture
def stretched(build: Any, tmp_path: Path) -> Path:
    """Wrong in 0.21.8 to 0.21.10."""
    a, b = build.input("a", A.shape), build.input("b", B.shape)
    graph = build.outputs(build.op("sub", "o", B.shape, x=a, y=b))
    return write_archive(graph, tmp_path / "stretched.tgz", spec=spec_for("tract", NEWEST))


def test_a_case_is_wrong_in_one_release_and_right_in_another(stretched: Path, tract_engine: Any) -> None:
    case = TractCase.of(stretched, Sample((A, B), (A - B,)), "sub of fewer elements\nis wrong")
    folder = write_tract_case(case, stretched.parent / "case")
    assert sorted(file.name for file in folder.iterdir()) == ["graph.nnef", "io.npz", "runme.sh"]
    assert os.access(folder / "runme.sh", os.X_OK)
    script = (folder / "runme.sh").read_text()
    assert script.startswith("#!/bin/sh\n\ncd $(dirname $0)\nset -ex\n")
    assert "# sub of fewer elements\n# is wrong\n$TRACT_RUN --nnef-tract-core . -O --input-facts-from-bundle" in script
    assert script.endswith("--assert-output-bundle io.npz --approx close\n")
    with np.load(folder / "io.npz") as arrays:
        assert sorted(arrays.files) == ["a", "b", "o"]
    assert replay(folder, tract_engine("0.21.8")).status == "mismatch"
    assert replay(folder, tract_engine(NEWEST)).passed


@pytest.mark.parametrize(
    ("release", "package", "has_approx"),
    [("0.21.6", "tract", False), ("0.22.4", "tract", True), ("0.23.0", "tract-cli", True)],
)
def test_the_script_is_for_a_release(stretched: Path, release: str, package: str, has_approx: bool) -> None:
    folder = write_tract_case(TractCase.of(stretched, Sample((A, B), (A - B,))), stretched.parent / "case", release)
    script = (folder / "runme.sh").read_text()
    assert f"cargo run -p {package} $CARGO_OPTS" in script
    assert ("--approx" in script) is has_approx


def test_large_weights_make_an_archive_and_float16_are_cast(build: Any, tmp_path: Path) -> None:
    x = build.input("x", (1, 200), "f2")
    w = build.variable("w", np.ones((200, 200), np.float16))
    graph = build.outputs(build.op("matmul", "y", (1, 200), "f2", A=x, B=w))
    archive = write_archive(graph, tmp_path / "large", spec=spec_for("tract", NEWEST))
    half = np.ones((1, 200), np.float16)
    folder = write_tract_case(TractCase.of(archive, Sample((half,), (half * 200,))), tmp_path / "case")
    assert sorted(file.name for file in folder.iterdir()) == ["io.npz", "model.nnef.tgz", "runme.sh"]
    assert "model.nnef.tgz -O" in (folder / "runme.sh").read_text()
    assert "--allow-float-casts" in (folder / "runme.sh").read_text()
    assert np.load(folder / "io.npz")["x"].dtype == np.float32
    assert read_archive(folder / "model.nnef.tgz").tensors["w"].shape == (200, 200)


def test_a_folder_with_other_files_is_left_alone(stretched: Path) -> None:
    folder = stretched.parent / "case"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="has other files"):
        write_tract_case(TractCase.of(stretched, Sample((A, B), (A - B,))), folder)


def test_the_text_of_an_issue_says_what_maintainers_ask_for(stretched: Path, tract_engine: Any) -> None:
    program = Program.of(read_archive(stretched), (A, B), Signatures.of("tract", "0.21.8"))
    reply = tract_engine("0.21.8").run(stretched, [(A, B)])
    context = {
        "engine": "tract 0.21.8",
        "oracle": f"tract {NEWEST}",
        "origins": {"o": "aten::sub.Tensor at model.py:14"},
    }
    text = issue_text("sub is wrong", program, reply, {"o": A - B}, **context)
    for words in (
        "# sub is wrong",
        f"tract 0.21.8 computes other values for this graph than tract {NEWEST}",
        "  o = sub(a, b);",
        "| `a` | [1, 1, 1] | 2 |",
        "| `o`, expected | [1, 1, 40] | 2, 1, 0, -1, -2, -3, -4, -5, … (40) |",
        "| `o`, computed | [1, 1, 40] | -2, -1, 0, 1, 2, 3, 4, 5, … (40) |",
        "- `o`: aten::sub.Tensor at model.py:14",
        "## Machine",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("author", "words"),
    [
        (
            Author.ENGINE,
            "By the definitions of its operators, in float64, the graph has the expected values: the engine",
        ),
        (Author.EXPORTER, "the graph has the values that the engine computes: the graph is wrong, and not the engine."),
        (Author.BOTH, "the graph has neither the expected values nor those that the engine computes."),
        ("not known, since `f` has no definition", "Who is wrong is not known, since `f` has no definition."),
    ],
)
def test_the_text_of_an_issue_names_the_author(stretched: Path, author: Any, words: str, tract_engine: Any) -> None:
    program = Program.of(read_archive(stretched), (A, B), Signatures.of("tract", "0.21.8"))
    reply = tract_engine("0.21.8").run(stretched, [(A, B)])
    defined_values = {"o": (A - B).astype(np.float64)}
    text = issue_text("sub", program, reply, {"o": A - B}, engine="tract 0.21.8", author=author, meant=defined_values)
    assert words in text
    assert "| `o`, by definition | [1, 1, 40] | 2, 1, 0, -1, -2, -3, -4, -5, … (40) |" in text


@pytest.mark.parametrize("target", [TractNNEF(NEWEST), KhronosNNEF()], ids=str)
def test_debug_bundle_path(target: Any, tmp_path: Path, tract_engine: Any) -> None:
    folder = tmp_path / "debug"
    export = ModelExport(
        torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh()), torch.randn(4, 3), debug_bundle_path=folder
    )
    result = export.to(target, tmp_path / "m.tgz")
    names = {"graph.nnef", "io.npz", "origins.json"} | ({"runme.sh"} if target.name == "tract" else set())
    assert {file.name for file in folder.iterdir() if file.suffix != ".dat"} == names
    assert "aten::tanh" in read_origins(folder)[result.output_names[0]]
    if target.name == "tract":
        assert replay(folder, tract_engine(NEWEST)).passed
