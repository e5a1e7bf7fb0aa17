"""Loops over a fragment."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.errors import MeaningError
from tests.unit.dialect.graphs import outputs_of

BODY = """
fragment step( chunk: tensor<scalar>, old: tensor<scalar>, w: tensor<scalar> )
-> ( new: tensor<scalar>, row: tensor<scalar> )
{
    new = old * w + chunk;
    row = new + 100.0;
}
"""
X = np.array([[1.0, 2.0, 3.0, 4.0]], np.float32)
ZERO = np.zeros((1, 1), np.float32)
WEIGHT = np.array([[10.0]], np.float32)


def scanned(x: np.ndarray, pace: int, width: int = 1, skip: int = 0) -> dict[str, list[float]]:
    statement = (
        f'(y, last, state) = tract_core_scan(body = "step", scan = [("chunk", x, 1, {pace})], full = [("w", w)], '
        f'state = [("old", zero, "new")], output = [("row", "full", 1, {pace}), ("row", "last", 0, 1), '
        f'("new", "last", 0, 1)], skip = {skip});'
    )
    inputs = {"x": x, "zero": np.zeros((1, width), np.float32), "w": WEIGHT}
    outputs = outputs_of(statement, inputs, head=BODY, outputs="y, last, state")
    return {name: tensor.array.ravel().tolist() for name, tensor in outputs.items()}


def test_states_go_from_step_to_step() -> None:
    assert scanned(X, 1) == {"y": [101, 112, 223, 1334], "last": [1334], "state": [1234]}


def test_a_negative_chunk_goes_backwards() -> None:
    assert scanned(X, -1) == {"y": [4421, 532, 143, 104], "last": [4421], "state": [4321]}


def test_chunks_of_two() -> None:
    assert scanned(X, 2, 2) == {"y": [101, 102, 113, 124], "last": [113, 124], "state": [13, 24]}
    assert scanned(X, -2, 2) == {"y": [131, 142, 103, 104], "last": [131, 142], "state": [31, 42]}


def test_skipped_steps_have_no_meaning() -> None:
    with pytest.raises(MeaningError, match="first 2 steps of the loop are undefined"):
        scanned(X, 1, skip=2)


@pytest.mark.parametrize("quoted", ['i"{}"', "{}"])
def test_strings_name_the_parts_of_a_body_as_tract_writes_them(quoted: str) -> None:
    """Without quotes the body has plain names, and the strings still have the others."""
    chunk, row = (quoted.format(name) if "i" in quoted else name.replace(".", "_") for name in ("c.hunk", "r.ow"))
    body = f"fragment twice({chunk}: tensor<scalar>) -> ({row}: tensor<scalar>) {{ {row} = {chunk} * 2.0; }}"
    statement = (
        'y = tract_core_scan(body = "twice", scan = [("c.hunk", x, 1, 1)], full = [], state = [], '
        'output = [("r.ow", "full", 1, 1)]);'
    )
    assert outputs_of(statement, {"x": X}, head=body)["y"].array.tolist() == [[2, 4, 6, 8]]


def test_a_body_of_one_result() -> None:
    body = "fragment twice( chunk: tensor<scalar> ) -> ( row: tensor<scalar> ) { row = chunk * 2.0; }"
    statement = (
        '(y, last) = tract_core_scan(body = "twice", scan = [("chunk", x, 1, -2)], full = [], state = [], '
        'output = [("row", "full", 1, -2), ("row", "last", 1, -2)]);'
    )
    outputs = outputs_of(statement, {"x": X}, head=body, outputs="y, last")
    assert [tensor.array.tolist() for tensor in outputs.values()] == [[[2, 4, 6, 8]], [[2, 4]]]
    empty = outputs_of(statement, {"x": np.zeros((3, 0), np.float32)}, head=body, outputs="y, last")
    assert [tensor.array.shape for tensor in empty.values()] == [(3, 0), (3, 2)]


def test_no_step_leaves_the_state_as_it_was() -> None:
    outputs = scanned(X[:, :0], 1)
    assert (outputs["y"], outputs["state"]) == ([], [0])


def test_an_axis_that_is_not_a_multiple_of_its_chunk_is_refused() -> None:
    with pytest.raises(MeaningError, match=r"the scanned inputs have \[1.33"):
        scanned(X, 3, 3)
