"""What each release computes of constants before the first run; the profile shows the operations that it leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.version import Version

from t2n_core.nnef.archive import write_archive
from t2n_core.nnef.graph import Value
from t2n_core.nnef.spec import spec_for
from t2n_core.nnef.tract.constants import LARGEST_FOLDED, SHARED_ARE_KEPT, SHARED_FROM
from t2n_core.profiling.nodes import read_nodes
from tests.releases import NEWEST

VERSIONS = ("0.20.22", "0.21.19", "0.22.4", "0.23.3", "0.23.5", NEWEST)
"""The newest release of each line, and both sides of the last boundary: 0.23.4 has no wheel."""


def left_for_runs(build: Any, engine: Any, folder: Path, *computed: Value) -> list[str]:
    """Return the names of those of the computed constants that the engine computes at every run."""
    x = build.input("x", (1,))
    sums = [build.op("add", f"sum_{value.name}", value.shape, x=x, y=value) for value in computed]
    archive = write_archive(build.outputs(*sums), folder / "m.tar", spec=spec_for("tract", str(engine.version)))
    reply = engine.profile(archive, [np.ones(x.shape, np.float32)], seconds=0.01)
    assert reply.status == "ok", reply.message
    names = [node.name for node in read_nodes(reply.facts["profile"])]
    assert any(name.startswith("sum_") for name in names), f"the profile lacks a node that must be there: {names}"
    return [value.name for value in computed if any(name.startswith(value.name) for name in names)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("size", "readers"), [(SHARED_FROM, 2), (SHARED_FROM - 1, 2), (SHARED_FROM, 1)])
def test_a_constant_that_several_operations_read(
    size: int, readers: int, version: str, build: Any, tract_engine: Any, tmp_path: Path
) -> None:
    weight = build.variable("weight", np.random.default_rng(7).standard_normal(size).astype(np.float32))
    computed = [build.op(name, f"made_{name}", weight.shape, x=weight) for name in ("exp", "neg")[:readers]]
    keeps = Version(version) in SHARED_ARE_KEPT and (size, readers) == (SHARED_FROM, 2)
    left = left_for_runs(build, tract_engine(version), tmp_path, *computed)
    assert left == (["made_exp", "made_neg"] if keeps else [])


@pytest.mark.parametrize("version", ["0.22.4", "0.23.3", "0.23.5"])
@pytest.mark.parametrize("size", [1 << 18, (1 << 18) + 1, (1 << 20) + 1])
def test_a_constant_that_is_larger_than_what_it_is_computed_of(
    size: int, version: str, build: Any, tract_engine: Any, tmp_path: Path
) -> None:
    weight = build.variable("weight", np.random.default_rng(8).standard_normal(size).astype(np.float16))
    wide = build.op("tract_core_cast", "wide", weight.shape, input=weight, to="f32")
    total = build.op("sum_reduce", "wide_total", (1,), input=wide, axes=[0])
    left = left_for_runs(build, tract_engine(version), tmp_path, total)
    limit = next((most for releases, most in LARGEST_FOLDED.items() if Version(version) in releases), size)
    assert bool(left) == (size > limit)
