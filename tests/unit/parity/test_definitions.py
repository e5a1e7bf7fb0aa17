"""Samples of an archive alone: inputs, drawn or given, with the outputs by the definitions of its operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from t2n_core.errors import MalformedArchiveError
from t2n_core.parity.definitions import samples_by_definitions

GRAPH = """version 1.0;
extension tract_symbol B;
graph g(x) -> (y)
{
  x = external<scalar>(shape = [B, 3]);
  y = mul(x, 2.0);
}
"""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "graph.nnef").write_text(GRAPH, "utf-8")
    return tmp_path


def test_inputs_are_drawn_at_several_sizes(archive: Path) -> None:
    found = samples_by_definitions(archive)
    assert [one.sizes for one in found] == [{"B": 3}] * 2 + [{"B": 5}] * 2 + [{"B": 2}] * 2
    for one in found:
        np.testing.assert_allclose(one.expected[0], 2 * one.inputs[0], rtol=1e-6)
        assert one.expected[0].dtype == np.float32


def test_given_inputs_are_taken(archive: Path) -> None:
    x = np.ones((4, 3), np.float32)
    (only,) = samples_by_definitions(archive, [(x,)])
    assert only.inputs[0] is x
    assert only.sizes == {"B": 4}
    assert (only.expected[0] == 2).all()


def test_a_malformed_archive_is_named(archive: Path) -> None:
    (archive / "graph.nnef").write_text(GRAPH.replace("2.0", "w"), "utf-8")
    with pytest.raises(MalformedArchiveError, match=r"is malformed.*no statement defines `w`, in `y = mul") as caught:
        samples_by_definitions(archive)
    assert caught.value.statement == "y = mul(x, w)"
