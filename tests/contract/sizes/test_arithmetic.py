"""Sizes as real engines work them out: as bounds of slices, as numbers, and as counted positions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from t2n_core.engine import ResolvedEngine, engine_for, resolve_engines
from t2n_core.errors import LowerError
from t2n_core.nnef.archive import write_archive
from t2n_core.nnef.dialects import emitter_for
from t2n_core.nnef.graph import Value
from t2n_core.nnef.sizes.dims import Dim, FloorDiv, Max, Min, Modulo, as_dim, evaluate, symbol
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.spec import Spec, spec_for
from t2n_core.nnef.tract.traits import traits_of
from tests.releases import NEWEST

RELEASES = ("0.19.15", "0.20.22", "0.21.5", "0.21.6", "0.21.7", "0.21.8", "0.21.19", "0.22.4", "0.23.0", NEWEST)
H, W = symbol("H"), symbol("W")
HALF = FloorDiv(H, 2)
PLAIN: tuple[Dim, ...] = (
    H,
    2 * H + 1,
    H + W,
    H * W,
    HALF,
    FloorDiv(H + 1, 2),
    H - HALF,
    3 * FloorDiv(H, 3),
    FloorDiv(H + 2, 3),
    FloorDiv(3 * H, 2),
    FloorDiv(H - 1, 2) + 1,
    FloorDiv(HALF, 2),
    2 * HALF + W,
    W + HALF,
    FloorDiv(H + W, 2),
    H * FloorDiv(W, 2),
    3 * HALF + 3 * H,
    4 * FloorDiv(H + 3, 4),
    H - 3 * FloorDiv(H, 4),
    Modulo(H, 4),
    Modulo(-H, 8),
    H + Modulo(-H, 4),
    H + Modulo(H, 2) + W + 1,
    FloorDiv(H + Modulo(H, 2) + 1, 2),
    Modulo(FloorDiv(H + Modulo(H, 2) + 1, 2), 2),
)
EXTREME: tuple[Dim, ...] = (
    Min(H, 5),
    Min(H, W),
    Max(H, W),
    Max(H - 3, 0),
    Max(4 - H, 0),
    Min(H + 2, W),
    Min(2 * H, W),
    Min(H, HALF + 3),
    Min(H, Modulo(-H, 8)),
    Max(H + Modulo(-H, 4) - 3, 0),
    Min(H + Modulo(-H, 4), 9),
    Max(H - Modulo(H, 4) - 2, 0),
    FloorDiv(H + Min(H, 9) + 1, 2),
    FloorDiv(Min(H, 9) + 1, 2),
    Max(Min(H, 9) - 3, 0),
    Min(Max(H - 2, 0), 5),
    H - Min(H, 3),
    2 * Min(H, 3) + W,
)
NEGATIVE: tuple[Dim, ...] = (
    HALF - H,
    HALF - W,
    FloorDiv(W - HALF, 8),
    FloorDiv(3 - 2 * H, 4) + W,
    3 - HALF,
    2 * FloorDiv(W, 3) - H,
)
"""Sizes as numbers, negative at some points."""
POINTS = [{"H": h, "W": w} for h, w in itertools.product((1, 2, 3, 4, 5, 8, 9, 17, 20), (1, 2, 4, 7, 16))]
LINE = np.arange(400, dtype=np.float32)


def written(size: Dim, spec: Spec, path: Path) -> Path:
    """Write an archive that gives a size as the length of a slice, as a number and as positions."""
    g = emitter_for(spec)
    g.declare_symbols(SizeRange.of(["H", "W"]))
    g.external("x", (H, W), np.dtype(np.float32))
    line = g.external("line", LINE.shape, LINE.dtype)
    number = g.unsqueeze(g.size(size, np.dtype(np.int64)), axes=[0])
    results: list[Value] = [number] if size in NEGATIVE else [number, g.take(line, 0, 0, size), g.positions(size)]
    g.graph.outputs += [*results, *([g.add(line, 1.0)] if size in NEGATIVE else [])]
    g.guard_sizes()
    return write_archive(g.graph, path / "size.nnef.tar", spec=spec)


def wrong_points(size: Dim, engine: ResolvedEngine, path: Path) -> list[tuple[dict[str, int], str]]:
    """Return the sizes at which an engine takes `size` for another number, with what it says."""
    archive = written(size, spec_for("tract", engine.version), path)
    batches = [[np.zeros((point["H"], point["W"]), np.float32), LINE] for point in POINTS]
    reply = engine_for(engine).run(archive, batches, keep_going=True)
    failures = [] if reply.status == "ok" else [({}, f"{reply.stage}: {reply.message[-200:]}")]
    for index, (point, outputs) in enumerate(zip(POINTS, reply.outputs, strict=False)):
        expected = evaluate(size, point)
        got = None if index in reply.refused else (outputs[0].tolist(), outputs[1].size, outputs[2:])
        right = got is not None and got[0] == [expected]
        if size not in NEGATIVE:
            right = right and got is not None and got[1] == expected and got[2][0].tolist() == list(range(expected))
        if not right:
            failures.append((point, f"{got} for {expected}"))
    return failures


def check_release(engine: ResolvedEngine, path: Path) -> None:
    """Check all sizes on one release: each is right, and only extremes without a form there may be refused."""
    wrong: dict[str, list[tuple[dict[str, int], str]]] = {}
    for size in map(as_dim, (*PLAIN, *EXTREME, *NEGATIVE)):
        try:
            failures = wrong_points(size, engine, path)
        except LowerError:
            assert size in EXTREME
            assert not traits_of(spec_for("tract", engine.version).version).has_extremes
            continue
        if failures:
            wrong[str(size)] = failures[:3]
    assert not wrong


@pytest.mark.parametrize("version", RELEASES)
def test_sizes_are_right(version: str, resolved_engine: Callable[[str], ResolvedEngine], tmp_path: Path) -> None:
    check_release(resolved_engine(version), tmp_path)


@pytest.mark.nightly
def test_sizes_are_right_on_every_release(tmp_path: Path) -> None:
    for engine in resolve_engines("all"):
        check_release(engine, tmp_path)
