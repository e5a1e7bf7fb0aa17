"""Hand-written graphs for each line of tract: nothing here exports a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from t2n_core.engine import ResolvedEngine
from t2n_core.engine.tract.engine import TractEngine
from tests.local_index import local_index, quick_index
from tests.releases import NEWEST

__all__ = ["local_index", "quick_index"]

VERSIONS = ("0.19.2", "0.19.15", "0.20.22", "0.21.19", "0.22.4", NEWEST)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `version` runs once per tract version."""
    if "version" in metafunc.fixturenames:
        metafunc.parametrize("version", VERSIONS)


@pytest.fixture
def write_graph(tmp_path: Path) -> Callable[[str], Path]:
    """A function from the declaration and body of a graph to the directory that holds it."""

    def write(graph: str) -> Path:
        folder = tmp_path / f"model_{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        text = f"version 1.0;\nextension tract_registry tract_core;\n{graph}\n"
        (folder / "graph.nnef").write_text(text, encoding="utf-8")
        return folder

    return write


@pytest.fixture(params=[True, False], ids=["forking", "inline"])
def own_engine(
    request: pytest.FixtureRequest, resolved_engine: Callable[[str], ResolvedEngine]
) -> Iterator[Callable[[str], TractEngine]]:
    """Both kinds of worker, not shared with other tests."""
    engines: list[TractEngine] = []

    def start(version: str) -> TractEngine:
        engines.append(TractEngine(resolved_engine(version), fork=request.param))
        return engines[-1]

    yield start
    for engine in engines:
        engine.close()
