"""Operators between tensors in the text of an archive, as another exporter may write them: `y = a + b * 2.0;`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from t2n_core.dialect import evaluate
from t2n_core.engine.pool import TractRunner
from t2n_core.nnef.reading.archive import read_archive
from tests.releases import NEWEST

GRAPH = """version 1.0;

fragment scaled(x: tensor<scalar>, by: scalar = 2.0) -> (y: tensor<scalar>)
{{
  y = (x - 1.0) / by;
}}

graph g(a, b) -> (y)
{{
  a = external<scalar>(shape = [2, 3]);
  b = external<scalar>(shape = [2, 3]);
{body}
}}
"""
INFIX = "  y = a + scaled(b) * 2.0 - (a * a) / 4.0;"


@pytest.mark.parametrize("version", ["0.19.15", NEWEST])
def test_the_engine_computes_the_same_from_infix_operators_and_from_the_operations_read(
    version: str, tract_engine: Callable[[str], TractRunner], tmp_path: Path
) -> None:
    a, b = np.random.default_rng(5).normal(size=(2, 2, 3)).astype(np.float32)
    expected = a + (b - 1) / 2 * 2 - a * a / 4
    infix, flat = tmp_path / "infix", tmp_path / "flat"
    for folder in (infix, flat):
        folder.mkdir()
    (infix / "graph.nnef").write_text(GRAPH.format(body=INFIX))
    content = read_archive(infix)
    lines = [assignment.text() for assignment in content.document.assignments if assignment.operator != "external"]
    assert len(lines) == 6
    (flat / "graph.nnef").write_text(GRAPH.format(body="\n".join(f"  {line};" for line in lines)))
    for folder in (infix, flat):
        reply = tract_engine(version).run(folder, [[a, b]])
        assert reply.status == "ok", reply.message
        np.testing.assert_allclose(reply.outputs[0][0], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(evaluate(content, [a, b])["y"].array, expected, rtol=1e-5, atol=1e-6)
