"""Kernel tiers and runtimes of real engines: which numbers change, and what a machine does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2n_core.engine import ResolvedEngine, engine_for, resolve_engines
from t2n_core.engine.processor import this_processor
from t2n_core.engine.protocol import EngineReply
from t2n_core.engine.tract.driver import TractDriver
from t2n_core.engine.tract.engine import TractEngine
from tests.releases import NEWEST
from tests.tract_cli import make_cli

Resolve = Callable[[str], ResolvedEngine]

PRODUCT = """
graph net(x, w) -> (y)
{
    x = external(shape=[16, 96]);
    w = external(shape=[96, 32]);
    y = sigmoid(matmul(x, w));
}
"""
NO_AVX512 = "avx512f" not in this_processor().features


@pytest.fixture
def run(
    resolved_engine: Resolve, write_graph: Callable[[str], Path]
) -> Iterator[Callable[[str], tuple[np.ndarray, ...]]]:
    """A function from a tier to what the newest release computes in it."""
    archive = write_graph(PRODUCT)
    rng = np.random.default_rng(5)
    batch = [rng.standard_normal(shape).astype(np.float32) for shape in ((16, 96), (96, 32))]
    engines: list[TractEngine] = []

    def go(tier: str) -> tuple[np.ndarray, ...]:
        engines.append(TractEngine(replace(resolved_engine(NEWEST), tier=tier)))
        reply = engines[-1].run(archive, [batch])
        assert reply.status == "ok", reply
        return reply.outputs[0]

    yield go
    for engine in engines:
        engine.close()


@pytest.mark.skipif(NO_AVX512, reason="this processor has no AVX-512")
def test_each_tier_has_kernels_of_its_own(run: Callable[[str], tuple[np.ndarray, ...]]) -> None:
    outputs = {tier: run(tier)[0].tobytes() for tier in ("native", "no-avx512", "no-fma")}
    assert len(set(outputs.values())) == 3
    assert run("no-fma")[0].tobytes() == outputs["no-fma"]


@pytest.mark.skipif(NO_AVX512, reason="this processor has no AVX-512")
def test_a_variable_of_the_shell_changes_no_kernels(
    run: Callable[[str], tuple[np.ndarray, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    native = run("native")[0]
    monkeypatch.setenv("TRACT_CPU_ISA", "-avx512f,-fma")
    assert run("native")[0].tobytes() == native.tobytes()


@pytest.mark.skipif(NO_AVX512, reason="this processor has no AVX-512")
def test_a_binary_has_the_same_tiers(
    resolved_engine: Resolve, write_graph: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACT_CPU_ISA", "-avx2")
    wheel = resolved_engine(NEWEST)
    binary = make_cli(tmp_path, wheel)
    (executable,) = resolve_engines(f"path:{binary}", offline=True, cache_dir=tmp_path / "cache")
    archive = write_graph(PRODUCT)
    rng = np.random.default_rng(7)
    batch = [rng.standard_normal(shape).astype(np.float32) for shape in ((16, 96), (96, 32))]
    numbers = {}
    for tier in ("native", "no-fma"):
        engines = [engine_for(replace(engine, tier=tier)) for engine in (wheel, executable)]
        output, other = (engine.run(archive, [batch]).outputs[0][0].tobytes() for engine in engines)
        assert output == other
        numbers[tier] = output
    assert numbers["native"] != numbers["no-fma"]


def test_the_runtime_of_the_processor_computes_the_same(
    resolved_engine: Resolve, write_graph: Callable[[str], Path]
) -> None:
    archive = write_graph(PRODUCT)
    rng = np.random.default_rng(6)
    batch = [rng.standard_normal(shape).astype(np.float32) for shape in ((16, 96), (96, 32))]
    outputs = []
    for runtime in (None, "cpu"):
        driver = TractDriver(resolved_engine(NEWEST).library, runtime)
        outputs.append(driver.load(archive).into_runnable(optimise=True).run(batch)[0])
    np.testing.assert_array_equal(*outputs)


@pytest.mark.parametrize(
    ("release", "runtime", "message"),
    [
        (NEWEST, "metal", "Unknown runtime metal"),
        (NEWEST, "nothing", "Unknown runtime nothing"),
        ("0.22.4", "cuda", "none of the functions tract_runtime_for_name"),
    ],
)
def test_a_runtime_that_is_not_there(resolved_engine: Resolve, release: str, runtime: str, message: str) -> None:
    engine = TractEngine(replace(resolved_engine(release), runtime=runtime))
    assert message in engine.why_unusable()
    reply = engine.run(Path("none"), [])
    assert (reply.status, reply.stage) == ("error", "load")
    assert message in reply.message


def test_a_runtime_that_is_there(resolved_engine: Resolve) -> None:
    engine = TractEngine(resolved_engine("0.22.4"))
    assert engine.why_unusable() == ""
    engine.close()


def test_a_runtime_computes_a_graph_before_it_is_used(
    resolved_engine: Resolve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernels of a GPU are compiled then; `default` is the processor by a name that takes the same way."""
    engine = TractEngine(replace(resolved_engine(NEWEST), runtime="default"))
    limits = []
    run = TractEngine.run

    def record(self: TractEngine, *arguments: Any, timeout: float) -> EngineReply:
        limits.append(timeout)
        return run(self, *arguments, timeout=timeout)

    monkeypatch.setattr(TractEngine, "run", record)
    assert engine.why_unusable() == ""
    assert limits == [600.0]
    failed = EngineReply(status="error", stage="optimise", message="no nvrtc")
    monkeypatch.setattr(TractEngine, "run", lambda *_, **__: failed)
    assert engine.why_unusable() == "no nvrtc"
    engine.close()
