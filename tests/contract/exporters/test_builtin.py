"""The exporters of this package: their files in real engines, and their refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from t2n_core import DeclaredSizes, ModelExport
from t2n_core.engine.pool import TractRunner
from t2n_core.engine.processes.jobs import close_jobs
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.errors import RefusedError
from t2n_core.exporters.archive import PROFILES, ForeignArchive, Profile
from t2n_core.exporters.process import write_file
from t2n_core.exporters.registry import find_exporter
from t2n_core.exporters.request import request_of
from t2n_core.exporters.runtime import OnnxRuntimeEngine
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import Outcome, Status
from t2n_core.parity.stage import AUTHOR, Author
from tests.nets import OfFunction
from tests.releases import RECENT

OF_TORCH = ("torch-onnx", "torch-onnx-torchscript")
Check = Callable[[ModelExport, str], Outcome]


@pytest.fixture(scope="module", autouse=True)
def processes() -> Iterator[None]:
    """Processes of exporters end with these tests."""
    yield
    close_jobs()


def written(export: ModelExport, name: str, folder: Path) -> tuple[Path, DeclaredSizes]:
    """Return the file of an exporter, with its declared sizes."""
    exporter = find_exporter(name, {})
    request = request_of(export, exporter, RECENT, folder / f"{name}{exporter.suffix}")
    source, declared = None, DeclaredSizes()
    if exporter.converts:
        source, declared = written(export, exporter.converts, folder)
        request = replace(request, source=source)
    file_sizes = write_file(exporter, request, 120, folder)
    return request.path, file_sizes if source is None else declared


@pytest.fixture
def check(tmp_path: Path, tract_engine: Callable[[str], TractRunner]) -> Check:
    """Return the outcome of an exporter's file by the profile `strict`, with the status by both."""

    def outcome(export: ModelExport, name: str) -> Outcome:
        path, declared = written(export, name, tmp_path)
        exporter = find_exporter(name, {})
        archive = ForeignArchive(path, export, exporter, declared, tract_engine(RECENT), Profile.STRICT, {})
        return archive.check_parity(Judgement())

    return outcome


def linear() -> ModelExport:
    return ModelExport(nn.Linear(3, 4).eval(), torch.randn(5, 3), dynamic_axes={"input": {0: "B"}})


def lstm() -> ModelExport:
    return ModelExport(nn.LSTM(3, 4).eval(), torch.randn(5, 1, 3), dynamic_axes={"input": {0: "T"}})


@pytest.mark.parametrize("name", [*OF_TORCH, "tract-convert"])
def test_a_linear_layer_of_any_batch_is_right(check: Check, name: str) -> None:
    outcome = check(linear(), name)
    assert outcome.passed, outcome.error
    assert outcome.facts[PROFILES] == {"values": "pass", "strict": "pass"}
    sizes = {sample_sizes["B"] for sample_sizes in outcome.sizes}
    assert (min(sizes), len(sizes) >= 3) == (1 if name == "torch-onnx-torchscript" else 5, True)


def test_the_files_of_nnef_tools_are_right_and_have_names_of_their_own(check: Check) -> None:
    outcome = check(ModelExport(nn.Linear(3, 4).eval(), torch.randn(5, 3)), "nnef-tools")
    assert outcome.facts[PROFILES] == {"values": "pass", "strict": "error"}
    assert "the archive's inputs are `external1`" in str(outcome.error)
    with pytest.raises(RefusedError, match="nnef-tools writes fixed sizes alone"):
        check(linear(), "nnef-tools")


def test_a_file_that_does_not_load_is_checked_by_one_profile(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Path] = []
    run = TractEngine.run

    def counted(engine: TractEngine, archive: Path, *args: Any, **options: Any) -> Any:
        runs.append(archive)
        return run(engine, archive, *args, **options)

    monkeypatch.setattr(TractEngine, "run", counted)
    outcome = check(ModelExport(OfFunction(lambda x: torch.det(x)).eval(), torch.eye(3)), "torch-onnx-torchscript")
    assert (outcome.facts[PROFILES], outcome.stage) == ({"values": "error", "strict": "error"}, "load"), outcome.error
    assert len(runs) == 1


def test_a_recurrent_layer_twice(check: Check, tmp_path: Path) -> None:
    """`torch.onnx` alone refuses the second one in a process."""
    for folder_name in ("first", "second"):
        (tmp_path / folder_name).mkdir()
        path, declared = written(lstm(), "torch-onnx", tmp_path / folder_name)
        assert path.exists()
        assert not declared.holds({"T": 1}), "torch.export treats it apart"


def test_a_state_that_the_engine_keeps_is_of_the_profile_strict_alone(check: Check) -> None:
    outcome = check(lstm(), "torch-onnx-torchscript")
    assert outcome.facts[PROFILES] == {"values": "pass", "strict": "mismatch"}
    assert outcome.error is not None
    assert outcome.error.error_class == "SecondCallError"
    assert outcome.facts[AUTHOR] == Author.ENGINE, "a file in ONNX keeps nothing for the next call"


def test_a_refusal_has_the_words_of_the_exporter(check: Check) -> None:
    export = ModelExport(OfFunction(lambda x: torch.linalg.eigvalsh(x)).eval(), torch.eye(3))
    for name in (*OF_TORCH, "tract-convert"):
        with pytest.raises(RefusedError, match=r"linalg_eigh|linalg_eigvalsh"):
            check(export, name)


def test_a_conversion_leaves_no_engine_behind(tmp_path: Path, tract_engine: Callable[[str], TractRunner]) -> None:
    tract_engine(RECENT)  # fetched
    counts = []
    for folder_name in ("first", "second"):
        (tmp_path / folder_name).mkdir()
        written(linear(), "tract-convert", tmp_path / folder_name)
        children = [task.joinpath("children").read_text().split() for task in Path("/proc/self/task").iterdir()]
        counts.append(sum(map(len, children)))
    assert counts[0] == counts[1]


def test_onnxruntime_judges_the_file_alone(tmp_path: Path) -> None:
    export, other = linear(), linear()
    path, declared = written(export, "torch-onnx-torchscript", tmp_path)
    exporter, engine = find_exporter("torch-onnx-torchscript", {}), OnnxRuntimeEngine()
    right = ForeignArchive(path, export, exporter, declared, engine, Profile.STRICT, {}).check_parity(Judgement())
    assert right.passed, right.error
    assert right.engine == f"onnxruntime {engine.version}"
    wrong = ForeignArchive(path, other, exporter, declared, engine, Profile.VALUES, {}).check_parity(Judgement())
    assert wrong.status is Status.MISMATCH
    assert wrong.facts[AUTHOR] == Author.EXPORTER, "the file says what the engine computes"


def test_onnxruntime_goes_on_after_inputs_that_it_refuses(tmp_path: Path) -> None:
    path, _ = written(linear(), "torch-onnx-torchscript", tmp_path)
    batches = [[np.zeros((2, 3), np.float32)], [np.zeros((2, 4), np.float32)], [np.ones((1, 3), np.float32)]]
    engine = OnnxRuntimeEngine()
    stopped, complete = engine.run(path, batches), engine.run(path, batches, keep_going=True)
    assert (stopped.status, stopped.stage, len(stopped.outputs)) == ("error", "run", 1)
    assert (complete.status, list(complete.refused), [len(outputs) for outputs in complete.outputs]) == (
        "ok",
        [1],
        [1, 0, 1],
    )
