"""The first statement that an engine computes otherwise than it is defined, found without a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2n_core.engine.pool import TractRunner
from t2n_core.engine.protocol import EngineReply
from t2n_core.errors import InputError
from t2n_core.nnef.reading.binding import Signatures
from t2n_core.parity.samples import Sample
from t2n_core.reduce.wrong_statement import find_wrong_statement
from tests.releases import NEWEST

GRAPH = """version 1.0;
extension tract_registry tract_core;
extension tract_symbol N;
graph network(x) -> (y)
{
  x = external(shape = [N, 5]);
  size = tract_core_shape_of(x);
  a = mul(x, 1000.0);
  b = softplus(a);
  c = log(b);
  y = tract_core_product_reduce(c, axes = [1]);
}
"""
X = np.full((2, 5), 0.5, np.float32)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    folder = tmp_path / "soft"
    folder.mkdir()
    (folder / "graph.nnef").write_text(GRAPH)
    return folder


def found_in(engine: Any, archive: Path, x: Any = X) -> Any:
    return find_wrong_statement(engine, archive, Sample((x,), ()), Signatures.of("tract", NEWEST))


def test_the_first_statement_is_named_with_its_values(
    archive: Path, tract_engine: Callable[[str], TractRunner]
) -> None:
    finding = found_in(tract_engine(NEWEST), archive)
    assert finding.statement == "b = softplus(a)"
    assert finding.comparison.name == "b"
    assert not finding.comparison.passed
    text = finding.describe()
    assert "first statement that the engine computes otherwise than it is defined: `b = softplus(a)`" in text
    assert "inf" in text


def test_an_archive_that_is_computed_as_defined_has_none(
    archive: Path, tract_engine: Callable[[str], TractRunner]
) -> None:
    assert found_in(tract_engine(NEWEST), archive, X / 1000) is None


class Fusing:
    """An engine that is wrong, or crashes if `dies`, only for graphs whose single output is `c` or `y`."""

    name, version, kept_states = "tract", NEWEST, None

    def __init__(self, real: Any, dies: bool = False) -> None:
        self.real, self.dies = real, dies

    def run(self, archive: Path, batches: Any, **options: Any) -> EngineReply:
        reply: EngineReply = self.real.run(archive, batches, **options)
        text = (archive / "graph.nnef").read_text()
        if "-> (c)" in text or "-> (y)" in text:
            if self.dies:
                return EngineReply("crash", "optimise", "panicked at fuse.rs: no such axis")
            return EngineReply("ok", "run", outputs=(tuple(y + 0.5 for y in reply.outputs[0]),))
        return reply


@pytest.mark.parametrize("dies", [False, True])
def test_a_statement_that_is_wrong_only_at_the_end_of_a_graph(
    dies: bool, archive: Path, tract_engine: Callable[[str], TractRunner]
) -> None:
    finding = found_in(Fusing(tract_engine(NEWEST), dies), archive, X / 1000)
    assert finding.statement == "c = log(b)"
    assert ("the engine gives no values" in finding.describe()) == dies


def test_archives_without_definitions_are_refused(archive: Path, tract_engine: Callable[[str], TractRunner]) -> None:
    graph = archive / "graph.nnef"
    graph.write_text(GRAPH.replace("softplus", "no_such_operator"))
    with pytest.raises(InputError, match="the definitions cannot compute"):
        found_in(tract_engine(NEWEST), archive)
