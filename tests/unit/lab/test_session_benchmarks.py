"""Seconds of a session by stage, and the ratios of whole sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from conformance.lab.machine import describe_machine
from conformance.lab.measure.sessions import quick, stages
from conformance.lab.measure.sessions.quick import ratios
from conformance.lab.measure.tables import markdown

RUN = ["/v/_pytest/main.py:wrap_session", "/w/pytest_t2n/run/cell_run.py:check_returned"]


@pytest.mark.parametrize(
    ("inner", "stage"),
    [
        ([], "the plugin's runs"),
        (["/w/t2n_core/torch_graph/capture/tracer.py:trace"], "around the capture"),
        (["/v/torch/export/_trace.py:_export", "/w/t2n_core/torch_graph/capture/modes.py:call"], "PyTorch's capture"),
        (["/w/t2n_core/torch_graph/simplify/passes.py:run", "/v/torch/fx/graph.py:lint"], "simplification"),
        (["/w/t2n_core/nnef/legality.py:check_graph"], "spec"),
        (["/w/t2n_core/parity/check.py:check", "/w/t2n_core/engine/tract/engine.py:run"], "exchange with the engine"),
        (["/w/t2n_core/parity/check.py:c", "<importlib._bootstrap>:_find", "/w/t2n_core/op/x.py:y"], "imports"),
        (["/tmp/x/nets.py:net", "/v/torch/random.py:seed"], "the tests themselves"),
        (["/v/torch/export/_trace.py:_export", "/tmp/x/conftest.py:collected"], "collections of garbage"),
    ],
)  # fmt: skip
def test_the_innermost_stage_counts(inner: list[str], stage: str) -> None:
    assert stages.stage_of([*RUN, *inner]) == stage
    assert stages.stage_of(["/w/python/runpy.py:run"]) == stages.OTHER


def test_seconds_are_shared_by_samples_and_shown_against_the_capture() -> None:
    stacks = [(["/v/torch/export/_trace.py:_export"], 6), (["/w/t2n_core/op/lower.py:run"], 3), (RUN, 3)]
    seconds = stages.seconds_by_stage(2.0, stacks)
    assert seconds["PyTorch's capture"] == pytest.approx(1.0)
    assert seconds["lowering"] == pytest.approx(0.5)
    assert sum(seconds.values()) == pytest.approx(2.0)
    assert "| lowering | 0.50 | 20 % | 0.50 x |" in stages.table({**seconds, stages.ENGINES: 0.5})


def test_ratios_are_shown_beside_the_largest_that_is_meant_to_be() -> None:
    rows = [{"what": "one Linear", "ours_s": 5.0, "floor_s": 4.0, "most": 1.35}]
    shown = markdown({"machine": describe_machine(), "quick": rows, "stages": {"PyTorch's capture": 1.0}})
    assert "| one Linear | 5 | 4 | 1.25 x | 1.35 x |" in shown
    assert [ratio.most for ratio in ratios(300, 1000)] == [1.3, 1.3, 1.35, 1.5, 0.6]


def test_a_process_of_several_ratios_is_measured_once_in_each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session of all cells takes 31 s of CPU and 40 s, the capture 12; of one Linear 1 and 2; the rest 20."""
    ran: list[tuple[str, ...]] = []

    def seconds(command: Sequence[str], *_: object) -> dict[str, float]:
        ran.append(tuple(command))
        if "-n" in command:
            return {"cpu_s": 50.0, "wall_s": 20.0}
        if "test_cells.py" in command:
            return {"cpu_s": 31.0, "wall_s": 40.0}
        return {"cpu_s": {"11": 12.0, "1": 2.0}.get(command[-1], 1.0), "wall_s": 5.0}

    monkeypatch.setattr(quick, "_seconds", seconds)
    rows = quick.measure(lambda text: None, rounds=3, large_rounds=2, cells=11, collected=5)
    each, spread = rows[-2:]
    assert (each["ours_s"], each["floor_s"]) == (3.0, 1.0)
    assert (spread["ours_s"], spread["floor_s"]) == (20.0, 40.0)
    counts = sorted(Counter(ran[1:]).values())
    assert counts == [2, 2, 2, 3, 3, 3, 3, 3, 3]
