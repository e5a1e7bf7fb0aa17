"""`t2n check` of an archive alone: the definitions of its operators are the reference, without a model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from pytest_t2n.cli.command import main
from t2n_core import TractNNEF, export_model_to_nnef
from tests.nets import OfFunction
from tests.releases import NEWEST


@pytest.fixture
def archive(tmp_path: Path, resolved_engine: Any) -> Path:
    resolved_engine(NEWEST)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 4)).eval()
    target = TractNNEF(NEWEST, dynamic_axes={"input": {0: "B"}}, check_io=False)
    export_model_to_nnef(net, torch.randn(3, 5), tmp_path / "net", target, ["input"], ["y"])
    return tmp_path / "net"


UNREAD = """version 1.0;

fragment weights(input: tensor<scalar>) -> (weights: tensor<scalar>) {
  weights = external(label = weights, shape = [1, 2, 3]);
}

graph network(input) -> (output) {
  input = external(shape = [1, 2, 3]);
  output = weights(input);
}
"""
"""A graph that tract loads, with a name that is not defined."""


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    main(["check", *arguments, "--tract", NEWEST, "--offline", "--json"])
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_an_archive_alone_is_right(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = checked(capsys, str(archive))
    assert report["status"] == "pass"
    assert report["level"] in ("close", "approximate")


def test_given_inputs_need_no_expected_outputs(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in (0, 1):
        np.savez(tmp_path / f"{seed}.npz", input=np.random.default_rng(seed).normal(size=(2, 5)).astype(np.float32))
    report = checked(capsys, str(archive), "--inputs", str(tmp_path / "0.npz"), str(tmp_path / "1.npz"))
    assert report["status"] == "pass"


def test_places_by_a_product_that_float32_rounds_to_an_integer(
    tmp_path: Path, resolved_engine: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """3 times 1.6666666 is 5 in float32, and less in float64: another element is the nearest."""
    resolved_engine(NEWEST)
    net = OfFunction(lambda x: torch.nn.functional.interpolate(x, scale_factor=0.6)).eval()
    target = TractNNEF(NEWEST, dynamic_axes={"input": {2: "T"}})
    export_model_to_nnef(net, torch.randn(2, 3, 7), tmp_path / "net", target, ["input"], ["y"])
    for seed in (0, 1):
        x = np.random.default_rng(seed).normal(size=(2, 3, 7)).astype(np.float32)
        np.savez(tmp_path / f"{seed}.npz", input=x)
    report = checked(capsys, str(tmp_path / "net"), "--inputs", str(tmp_path / "0.npz"), str(tmp_path / "1.npz"))
    assert (report["status"], report["facts"]["rounded"]) == ("pass", True)


def test_a_statement_that_the_release_computes_wrongly_is_found(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`softplus` of tract is infinite for large inputs."""
    graph = archive / "graph.nnef"
    lines = graph.read_text().splitlines()
    last = next(index for index, line in enumerate(lines) if line.strip().startswith("y ="))
    lines[last : last + 1] = [
        lines[last].replace("y =", "before =", 1),
        "  large = mul(before, 1000.0);",
        "  y = softplus(large);",
    ]
    graph.write_text("\n".join(lines))
    report = checked(capsys, str(archive))
    assert report["status"] == "mismatch"
    assert "outputs differ from the definitions of the operators beyond" in report["error"]["message"]
    assert report["failed_sizes"]
    bisected = checked(capsys, str(archive), "--bisect")
    assert "otherwise than it is defined: `y = softplus(large)`" in bisected["error"]["details"]
    assert main(["check", str(archive), "--tract", NEWEST, "--offline"]) == 1
    assert "first statement" not in capsys.readouterr().out
    assert main(["check", str(archive), "--tract", NEWEST, "--offline", "--bisect"]) == 1
    text = "first statement that the engine computes otherwise than it is defined: `y = softplus(large)`"
    assert text in capsys.readouterr().out
    assert text in checked(capsys, str(archive), "--bisect")["error"]["details"]


def test_outputs_of_another_model_are_not_the_engines(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "x.npz", input=np.ones((2, 5), np.float32))
    np.savez(tmp_path / "y.npz", y=np.zeros((2, 4), np.float32))
    arguments = ["--inputs", str(tmp_path / "x.npz"), "--expected", str(tmp_path / "y.npz"), "--bisect"]
    report = checked(capsys, str(archive), *arguments)
    assert report["facts"]["author"] == "exporter"
    assert "every statement is computed as it is defined" in report["error"]["details"]


def test_outputs_beside_the_inputs_are_judged(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file as tract's `io.npz`, given or in the folder of the archive."""
    for options in (["--inputs", str(tmp_path / "io.npz")], []):
        path = Path(options[-1]) if options else archive / "io.npz"
        np.savez(path, input=np.ones((2, 5), np.float32), y=np.zeros((2, 4), np.float32))
        report = checked(capsys, str(archive), *options)
        assert (report["status"], report["facts"]["author"]) == ("mismatch", "exporter")
        assert "outputs differ from the expected outputs beyond" in report["error"]["message"]


def test_an_operator_without_a_definition_is_named(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = archive / "graph.nnef"
    graph.write_text(graph.read_text().replace("= tanh(", "= tract_core_nothing(", 1))
    report = checked(capsys, str(archive))
    assert report["stage"] == "load"
    assert "tract_core_nothing" in report["error"]["message"]


def test_an_engine_that_refuses_an_archive_says_so_where_no_inputs_can_be_drawn(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = archive / "graph.nnef"
    graph.write_text(graph.read_text().replace("= tanh(", "= reshape(shape = [2, 0, 7], input = ", 1))
    report = checked(capsys, str(archive))
    assert (report["status"], report["stage"]) == ("error", "load")
    assert "no inputs could be drawn" not in report["error"]["message"]


def test_a_time_out_at_load_names_a_release_that_loads_the_file(
    archive: Path, resolved_engine: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    resolved_engine("0.22.4")
    report = checked(capsys, str(archive), "--timeout", "0.0001")
    assert (report["status"], report["stage"]) == ("timeout", "load")
    assert re.match(r"tract 0\.22\.4 loads the same file in \d+\.\d s; ", report["error"]["hint"])


def test_a_malformed_archive_is_named_with_its_statement(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = archive / "graph.nnef"
    graph.write_text(graph.read_text().replace("= tanh(", "= tanh(no_", 1))
    report = checked(capsys, str(archive))
    assert report["stage"] == "load"
    assert "tanh" in report["error"]["message"]
    (archive / "graph.nnef").write_text(UNREAD)
    report = checked(capsys, str(archive))
    assert report["error"]["message"].startswith(f"{archive} is malformed: no statement defines `weights`")
    assert report["error"]["hint"].startswith("an engine that loads it reads a form that is not read here")


def test_the_statement_with_which_an_engine_fails_is_found(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = archive / "graph.nnef"
    lines = graph.read_text().splitlines()
    last = next(index for index, line in enumerate(lines) if line.strip().startswith("y ="))
    lines[last] = lines[last].replace("y =", "before =", 1)
    lines.insert(last + 1, "  beyond = slice(before, axes = [1], begin = [1], end = [9]);")
    lines.insert(last + 2, "  y = exp(beyond);")
    graph.write_text("\n".join(lines))
    report = checked(capsys, str(archive), "--bisect")
    assert report["status"] == "error"
    assert "otherwise than it is defined: `beyond = slice(before, " in report["error"]["details"]


def test_transforms_of_the_engine_are_checked(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["check", str(archive), "--tract", NEWEST, "--offline", "--json"]
    assert main([*arguments, "--transforms", "f32_to_f16,round_trip,batchify"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    reports = {report["engine"].removeprefix(f"tract {NEWEST}").strip(): report for report in lines}
    assert {name: report["status"] for name, report in reports.items()} == {
        "": "pass", "f32_to_f16": "pass", "round_trip": "pass", "batchify": "weak"
    }  # fmt: skip
    assert reports["f32_to_f16"]["outputs"][0]["max_abs"] > 10 * reports[""]["outputs"][0]["max_abs"]
    assert main([*arguments, "--transforms", "nothing"]) == 1
    assert "tract has no transform 'nothing'" in capsys.readouterr().err


def test_a_transform_that_changes_the_outputs_has_nothing_to_compare_with(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    select = '{"name": "select_outputs", "outputs": ["y"]}'
    graph = archive / "graph.nnef"
    text = graph.read_text().replace("-> (y)", "-> (y, z)")
    graph.write_text(text.rstrip().removesuffix("}") + "  z = neg(y);\n}\n")
    assert main(["check", str(archive), "--tract", NEWEST, "--offline", "--transforms", select]) == 1
    assert "the model has other inputs or outputs, for which nothing is expected" in capsys.readouterr().out
