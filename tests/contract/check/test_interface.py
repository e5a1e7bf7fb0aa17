"""Planted faults that show in no output by place: exchanged names, and an engine that is wrong on one path alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pytest_t2n.cli.command import main
from t2n_core import ModelExport, TractNNEF, assert_nnef_parity
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.errors import InterfaceError, ParityError
from t2n_core.export.result import ExportResult
from t2n_core.parity.check import check_parity
from t2n_core.parity.judging.judgement import Judgement
from tests.planted import EXCHANGES, exchange, exchange_when_written, spoil_path
from tests.releases import NEWEST

VERSIONS = ["0.19.15", "0.22.4", NEWEST]
PATHS = [("0.22.4", "declutter"), ("0.22.4", "optimise-only"), (NEWEST, "declutter")]
"""A release with each of its paths that reads no sizes."""
CALL = (torch.randn(3, 4), torch.randn(3, 4))


class Pair(nn.Module):
    def forward(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        return left - right, left * right


class Symmetric(nn.Module):
    def forward(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        return left + right, left * right


def export(folder: Path, version: str, net: nn.Module | None = None, **options: Any) -> ExportResult:
    target = TractNNEF(version, **options)
    made = ModelExport(net or Pair(), CALL, output_names=["low", "high"], dynamic_axes=target.dynamic_axes or None)
    return made.to(target, folder / "model.tar")


SAID = {
    "input names": "the archive's inputs are `right`, `left`, and the export declared `left`, `right`",
    "order of inputs": "the archive's inputs are `right`, `left`, and the export declared `left`, `right`",
    "order of external statements": "the inputs that tract loaded are `right`, `left`, and the export declared `left`",
    "output names": "the archive's outputs are `high`, `low`, and the export declared `low`, `high`",
    "order of outputs": "the archive's outputs are `high`, `low`, and the export declared `low`, `high`",
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("fault", list(EXCHANGES))
def test_exchanged_names_are_found(fault: str, version: str, tmp_path: Path) -> None:
    """All but an order of outputs leave the outputs of the symmetric net as they are, by place."""
    result = export(tmp_path, version, Symmetric())
    assert result.check_parity().passed
    exchange(result.archive, fault)
    undeclared = replace(result.check_request(Judgement()), interface=None)
    assert check_parity(result.target.engine(), undeclared).passed is (fault != "order of outputs")
    outcome = result.check_parity()
    assert (outcome.status, outcome.stage) == ("error", "load"), outcome.describe()
    assert outcome.error is not None
    assert outcome.error.error_class == "InterfaceError"
    assert outcome.error.message.startswith(SAID[fault])
    with pytest.raises(InterfaceError):
        result.assert_parity()


@pytest.mark.parametrize("fault", list(EXCHANGES))
def test_an_assertion_names_the_exchange(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange_when_written(fault, monkeypatch.setattr)
    with pytest.raises(InterfaceError, match="`, and the export declared `"):
        assert_nnef_parity(Pair(), CALL, tract=NEWEST, offline=True, output_names=["low", "high"])


@pytest.mark.parametrize("version", VERSIONS)
def test_an_axis_that_is_no_longer_free_is_found(version: str, tmp_path: Path) -> None:
    axes = {"left": {0: "B"}, "right": {0: "B"}}
    result = export(tmp_path, version, dynamic_axes=axes)
    assert result.check_parity().passed
    assert [port.shape for port in result.interface.inputs] == [("B", "4")] * 2
    EXCHANGES["size"] = lambda text: text.replace("shape = [B, 4]", "shape = [3, 4]", 1)
    try:
        exchange(result.archive, "size")
    finally:
        del EXCHANGES["size"]
    outcome = result.check_parity()
    assert outcome.error is not None
    assert outcome.error.message.startswith(
        "the archive states the input `left` as float[3, 4], and the export declared float32[B, 4]"
    )


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    status = main(["check", *arguments, "--offline", "--json"])
    return status, json.loads(capsys.readouterr().out)


def files(folder: Path, result: ExportResult) -> list[str]:
    """Return the arguments with a sample, whose arrays have names."""
    sample = result.samples[0]
    for file, names, group in (("x", result.input_names, sample.inputs), ("y", result.output_names, sample.expected)):
        np.savez(folder / f"{file}.npz", **dict(zip(names, group, strict=True)))
    return ["--inputs", str(folder / "x.npz"), "--expected", str(folder / "y.npz")]


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ("input names", "mismatch"),
        ("output names", "mismatch"),
        ("order of inputs", "error"),
        ("order of external statements", "error"),
    ],
)
def test_an_archive_alone_is_checked_by_the_names_of_arrays(
    fault: str, status: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Arrays are bound by name, and what the header states must be what the engine loads."""
    result = export(tmp_path, NEWEST)
    arguments = [str(result.archive), *files(tmp_path, result), "--tract", NEWEST]
    assert checked(capsys, *arguments)[0] == 0
    exchange(result.archive, fault)
    code, report = checked(capsys, *arguments)
    assert (code, report["status"]) == (1, status)
    if status == "error":
        assert report["error"]["error_class"] == "InterfaceError"
        assert ", and its text declared `" in report["error"]["message"]


def test_an_archive_alone_is_compared_with_the_loaded_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = export(tmp_path, NEWEST)
    ran = TractEngine.run

    def with_inputs_exchanged(self: Any, *given: Any, **options: Any) -> Any:
        reply = ran(self, *given, **options)
        return replace(reply, facts={**reply.facts, "input": reply.facts["input"][::-1]})

    monkeypatch.setattr(TractEngine, "run", with_inputs_exchanged)
    status, report = checked(capsys, str(result.archive), "--tract", NEWEST)
    assert (status, report["error"]["error_class"]) == (1, "InterfaceError")
    message = "the inputs that tract loaded are `right`, `left`, and its text declared `left`, `right`"
    assert report["error"]["message"] == message


@pytest.mark.parametrize(("version", "path"), PATHS)
def test_a_wrong_path_is_named(
    version: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = export(tmp_path, version)
    arguments = [str(result.archive), *files(tmp_path, result), "--tract", version]
    assert checked(capsys, *arguments)[0] == 0
    spoil_path(path, monkeypatch.setattr)
    outcome = result.check_parity()
    assert (outcome.status, outcome.path) == ("mismatch", path)
    assert f"in tract {version} on the path `{path}`: " in outcome.describe()
    with pytest.raises(ParityError, match=f"on the path `{path}`"):
        assert_nnef_parity(Pair(), CALL, tract=version, offline=True)
    status, report = checked(capsys, *arguments)
    assert (status, report["status"], report["path"]) == (1, "mismatch", path)
