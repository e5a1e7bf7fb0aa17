"""The paths that a check takes: what runs on each, and whose failure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2n_core.engine.paths import EnginePath, PathRun
from t2n_core.engine.protocol import EngineReply
from t2n_core.parity.check import FAILED_PATHS, check_parity
from t2n_core.parity.further_runs.paths import plan_paths
from t2n_core.parity.outcome import Status
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample

DECLUTTER, OPTIMISE_ONLY, FIXED = EnginePath.DECLUTTER, EnginePath.OPTIMISE_ONLY, EnginePath.FIXED_SYMBOLS
ALL = (DECLUTTER, OPTIMISE_ONLY, FIXED)


def sample(size: int, at: float = 1.0) -> Sample:
    x = np.linspace(at, at + 3, size)
    return Sample((x,), (2 * x,), {"T": size})


class Doubling:
    """An engine that doubles, with the outputs or the failure of one path replaced."""

    name, kept_states = "tract", None

    def __init__(self, paths: Sequence[EnginePath] = ALL, wrong: EnginePath | None = None, dies: bool = False) -> None:
        self.paths, self.wrong, self.dies, self.version = paths, wrong, dies, "0.22.4"
        self.runs: list[tuple[EnginePath, int, dict[str, int]]] = []

    def run(
        self,
        archive: Path,
        batches: Any,
        *,
        timeout: float = 60.0,
        path: EnginePath = DECLUTTER,
        symbols: Any = None,
        further: Sequence[PathRun] = (),
        **options: Any,
    ) -> EngineReply:
        main = self._reply(path, [np.asarray(batch[0]) for batch in batches], symbols)
        if main.status != "ok":
            return main
        others = [
            self._reply(path_run.path, [np.asarray(batches[i][0]) for i in path_run.batches], path_run.symbols)
            for path_run in further
        ]
        same = [replace(other, outputs=tuple(main.outputs[i] for i in path_run.batches))
                if other.status == "ok" and path_run.path is not self.wrong else other
                for path_run, other in zip(further, others, strict=True)]  # fmt: skip
        return replace(main, further=tuple(same))

    def _reply(self, path: EnginePath, inputs: Sequence[Any], symbols: Any) -> EngineReply:
        self.runs.append((path, len(inputs), dict(symbols or {})))
        if path is self.wrong and self.dies:
            return EngineReply("crash", "run", "it died")
        factor = 3 if path is self.wrong else 2
        return EngineReply("ok", "run", outputs=tuple((factor * x,) for x in inputs))

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def request_of(tmp_path: Path) -> CheckRequest:
    (tmp_path / "graph.nnef").write_text("version 1.0;\ngraph network(x) -> (y)\n{ x = external(shape = [T]); }\n")
    return CheckRequest(tmp_path, [sample(4), sample(4, 2.0), sample(1), sample(7), sample(9)], ["y"])


def test_each_path_runs_the_samples_and_fixed_symbols_one_of_other_sizes(request_of: CheckRequest) -> None:
    engine = Doubling()
    outcome = check_parity(engine, request_of)
    assert (outcome.status, outcome.path, outcome.paths) == (Status.PASS, "", ALL)
    assert engine.runs == [(DECLUTTER, 5, {}), (OPTIMISE_ONLY, 5, {}), (FIXED, 1, {"T": 7})]


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("wrong", ALL)
def test_a_failure_names_its_path(wrong: EnginePath, dies: bool, request_of: CheckRequest) -> None:
    outcome = check_parity(Doubling(wrong=wrong, dies=dies), request_of)
    assert outcome.status is (Status.CRASH if dies else Status.MISMATCH)
    assert (outcome.path, outcome.paths) == (wrong, ALL[: ALL.index(wrong) + 1])
    assert f"on the path `{wrong}`" in outcome.describe()


def test_fixed_symbols_are_only_reported_in_a_release_that_keeps_some(request_of: CheckRequest) -> None:
    engine = Doubling(wrong=FIXED, dies=True)
    engine.version = "0.20.22"
    outcome = check_parity(engine, request_of)
    assert outcome.status is Status.PASS
    assert outcome.facts[FAILED_PATHS] == {FIXED: "crash at stage run: it died"}


def test_a_path_that_was_not_taken_is_no_pass(request_of: CheckRequest) -> None:
    class Forgetful(Doubling):
        def run(self, *args: Any, **options: Any) -> EngineReply:
            return replace(super().run(*args, **options), further=())

    outcome = check_parity(Forgetful(), request_of)
    assert (outcome.status, outcome.path) == (Status.ERROR, OPTIMISE_ONLY)
    assert "did not take the path" in str(outcome.error)


def test_selected_paths_alone(request_of: CheckRequest) -> None:
    engine = Doubling(paths=(OPTIMISE_ONLY,))
    assert check_parity(engine, request_of).paths == (OPTIMISE_ONLY,)
    assert engine.runs == [(OPTIMISE_ONLY, 5, {})]
    engine = Doubling(paths=(FIXED,))
    assert check_parity(engine, request_of).paths == (FIXED,)
    assert engine.runs == [(FIXED, 1, {"T": 7})]


def test_without_sizes_no_symbol_is_fixed(request_of: CheckRequest) -> None:
    fixed = [replace(sample, sizes={}) for sample in request_of.samples[:2]]
    assert plan_paths(Doubling(), replace(request_of, samples=fixed)).further == [OPTIMISE_ONLY]
    assert plan_paths(Doubling(paths=(FIXED,)), replace(request_of, samples=fixed)).main == DECLUTTER


def test_an_engine_without_paths_is_checked_as_it_is(request_of: CheckRequest) -> None:
    outcome = check_parity(Doubling(paths=()), request_of)
    assert (outcome.status, outcome.path, outcome.paths) == (Status.PASS, "", ())
