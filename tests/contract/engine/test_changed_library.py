"""A library is loaded only as it was when it was chosen."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from t2n_core.engine import ResolvedEngine
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.engine.tract.sweep import Sweep
from tests.releases import NEWEST

X = np.random.default_rng(21).normal(size=(2, 3)).astype("f4")
Write = Callable[[str], Path]
Resolve = Callable[[str], ResolvedEngine]


def test_a_library_that_changed_since_it_was_chosen_is_not_loaded(
    tmp_path: Path, write_graph: Write, resolved_engine: Resolve
) -> None:
    good = write_graph("graph g(x) -> (y) { x = external<scalar>(shape = [2, 3]); y = x * 2.0; }")
    original, other = resolved_engine("0.21.19"), resolved_engine(NEWEST)
    library = tmp_path / "library.so"
    shutil.copy(original.library, library)
    with closing(TractEngine(replace(original, library=library))) as engine:
        assert engine.run(good, [[X]]).status == "ok"
    shutil.copy(other.library, library)
    with closing(TractEngine(replace(original, library=library))) as engine:
        reply = engine.run(good, [[X]])
    assert (reply.status, reply.stage) == ("error", "load")
    assert "library.so has changed" in reply.message


def test_a_sweep_does_not_load_a_library_that_changed(
    tmp_path: Path, write_graph: Write, resolved_engine: Resolve
) -> None:
    good = write_graph("graph g(x) -> (y) { x = external<scalar>(shape = [2, 3]); y = x * 2.0; }")
    original, other = resolved_engine("0.21.19"), resolved_engine(NEWEST)
    library = tmp_path / "library.so"
    shutil.copy(original.library, library)
    with closing(Sweep()) as sweep:
        assert sweep.engine(original).run(good, [[X]]).status == "ok"
        reply = sweep.engine(replace(other, library=library)).run(good, [[X]])
        assert (reply.status, reply.stage) == ("error", "load")
        assert "library.so has changed" in reply.message
        assert sweep.engine(other).run(good, [[X]]).status == "ok"
