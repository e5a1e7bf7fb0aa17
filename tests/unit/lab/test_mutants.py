"""Each way to tamper changes what it says and nothing else, and what the check missed is counted."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest

from conformance.lab.plant.mutants.__main__ import SUITES, table_of
from conformance.lab.plant.mutants.judge import PASSED, REFUSED, Verdict
from conformance.lab.plant.mutants.tamper import EXTRA_BYTE, KINDS, Mutant, mutants_of
from conformance.lab.plant.paths import planted
from conformance.lab.plant.trial import CAUGHT
from t2n_core.nnef.dat import header

TEXT = """version 1.0;

graph network(x, keep) -> (y, z)
{
  x = external(shape = [2, 4]);
  keep = tract_core_external(datum_type = "bool", shape = [2, 4]);
  w = variable<scalar>(shape = [4, 4], label = "w");
  v = matmul(x, w);
  u = transpose(v, axes = [1, 0]);
  y = select(keep, v, 0.5);
  z = add(u, 0.25);
  [s, last] = tract_core_scan(body = "step", skip = 0, reset_every_turn = 1);
}
"""
WEIGHT = np.arange(16, dtype=np.float32).reshape(4, 4) ** 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "graph.nnef").write_text(TEXT)
    (tmp_path / "w.dat").write_bytes(header(WEIGHT.dtype, WEIGHT.shape) + WEIGHT.tobytes())
    (tmp_path / "ids.dat").write_bytes(header(np.dtype(np.int64), (4,)) + np.arange(4).tobytes())
    return tmp_path


@pytest.fixture
def mutants(folder: Path) -> dict[str, Mutant]:
    return {mutant.kind: mutant for mutant in mutants_of(folder, random.Random(1))}


def weight_of(mutant: Mutant) -> np.ndarray:
    assert mutant.weights is not None
    return np.frombuffer(mutant.weights["w.dat"][128:], np.float32).reshape(4, 4)


def changed_lines(mutant: Mutant) -> list[str]:
    assert mutant.text is not None
    return [line.strip() for line in mutant.text.splitlines() if line not in TEXT.splitlines()]


def test_every_kind_fits_somewhere(mutants: dict[str, Mutant]) -> None:
    assert list(mutants) == list(KINDS)


def test_weights_are_changed_and_stay_of_one_shape(mutants: dict[str, Mutant]) -> None:
    assert sorted(weight_of(mutants["permuted features"]).reshape(-1)) == sorted(WEIGHT.reshape(-1))
    np.testing.assert_array_equal(weight_of(mutants["a transposed weight"]), WEIGHT.T)
    assert (weight_of(mutants["one number of a weight"]) != WEIGHT).sum() == 1
    assert (weight_of(mutants["a weight of another model"]) != WEIGHT).all()


def test_an_extra_byte_is_behind_the_numbers(mutants: dict[str, Mutant], folder: Path) -> None:
    mutants[EXTRA_BYTE].write(folder)
    assert (folder / "w.dat").read_bytes() == header(WEIGHT.dtype, (4, 4)) + WEIGHT.tobytes() + b"\0"
    assert (folder / "graph.nnef").read_text() == TEXT


def test_a_planted_change_is_taken_back(mutants: dict[str, Mutant], folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for mutant in mutants.values():
        with mutant.planted(folder):
            assert {path.name: path.read_bytes() for path in folder.iterdir()} != before
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("swapped axes", [["u = transpose(v, axes = [0, 1]);"]]),
        ("a dropped output", [["graph network(x, keep) -> (y)"], ["graph network(x, keep) -> (z)"]]),
        ("swapped outputs", [["graph network(x, keep) -> (z, y)"]]),
        (
            "a constant output",
            [
                ["y_own = select(keep, v, 0.5);", "y = mul(y_own, 0.0);"],
                ["z_own = add(u, 0.25);", "z = mul(z_own, 0.0);"],
            ],
        ),
        (
            "an ignored mask",
            [["y_held_not = not(keep);", "y_held = or(keep, y_held_not);", "y = select(y_held, v, 0.5);"]],
        ),
        (
            "a frozen branch",
            [["y_held_not = not(keep);", "y_held = and(keep, y_held_not);", "y = select(y_held, v, 0.5);"]],
        ),
        ("another operator", [["z = sub(u, 0.25);"]]),
        ("a state that is kept", [['[s, last] = tract_core_scan(body = "step", skip = 0);']]),
        ("another number", [["y = select(keep, v, 1.0);"], ["z = add(u, 0.625);"]]),
    ],
)
def test_statements_are_changed(mutants: dict[str, Mutant], kind: str, lines: list[list[str]]) -> None:
    assert changed_lines(mutants[kind]) in lines


def test_the_same_seed_makes_the_same_mutants(folder: Path) -> None:
    first, second = ([(m.kind, m.text, m.weights) for m in mutants_of(folder, random.Random(7))] for _ in range(2))
    assert first == second


def test_the_share_is_of_what_runs_and_changes_an_output() -> None:
    def verdict(found: str, change: float, weak: bool = False) -> Verdict:
        return Verdict("another number", "y", CAUGHT, found, "layers", "a", change, weak)

    verdicts = [
        verdict(CAUGHT, 2.0),
        verdict(CAUGHT, 0.5),
        verdict(PASSED, 0.3),
        verdict(PASSED, 0.001),
        verdict(REFUSED, math.nan),
        verdict(PASSED, 1.0, weak=True),
    ]
    assert table_of([("layers", verdicts)]).splitlines()[-1] == "| layers | 5 | 1 | 3 | 2 | 66.7% | 1 |"


def test_every_suite_that_proves_archives_one_by_one_has_mutants() -> None:
    files = Path(__file__).parents[3].glob("conformance/suites/test_*.py")
    assert {path.stem.removeprefix("test_") for path in files} == {*SUITES, "generative", "several_archives"}


@pytest.mark.parametrize(
    ("fault", "header", "line"),
    [
        ("inputs exchanged", "graph g(b, a) -> (y, z)", "  y = tanh(a);"),
        ("outputs renamed", "graph g(a, b) -> (z, y)", "  z = tanh(a);"),
        ("another operator", "graph g(a, b) -> (y, z)", "  y = sigmoid(a);"),
    ],
)
def test_faults_of_the_paths_change_what_is_written(
    fault: str, header: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from t2n_core.nnef import writer

    monkeypatch.setattr(writer, "_lines", lambda: iter(["graph g(a, b) -> (y, z)", "  y = tanh(a);"]))
    planted.FAULTS[fault]()
    assert list(writer._lines()) == [header, line]
