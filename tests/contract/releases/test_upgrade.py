"""`t2n upgrade` on graphs that releases compute differently, refuse, or compute alike."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from pytest_t2n.cli import main
from t2n_core.engine.provision.store import default_cache_dir
from tests.onnx_nets import linear, saved

ENGINES_IN_CACHE = (
    *("0.21.5", "0.21.6", "0.21.7", "0.21.8", "0.21.10", "0.21.11", "0.21.13", "0.21.14", "0.21.19"),
    *("0.22.1", "0.22.4", "0.23.0", "0.23.3", "0.23.5", "0.23.8"),
)
CACHE = str(default_cache_dir())
LOST, WRONG = "does not load", "mismatch at compare"
STRETCHED = """version 1.0;
graph network(a, b) -> (o)
{
  a = external(shape = [1, 1, 1]);
  b = external(shape = [1, 1, 40]);
  o = sub(a, b);
}
"""
"""Wrong in 0.21.8 to 0.21.10."""
SYMBOLIC = """version 1.0;
extension tract_registry tract_core;
extension tract_symbol T;
graph network(x) -> (o)
{
  x = external(shape = [1, T, 4]);
  y = softmax(x, axes = [2]);
  o = mul(y, 3.0);
}
"""
ASSERTING = SYMBOLIC.replace("graph ", "extension tract_assert T >= 1;\ngraph ")
"""0.21.6 is the first release that reads assertions."""
OF_FIXED_SIZES = """version 1.0;
extension tract_registry tract_core;
graph network({inputs}) -> (o)
{{
  {body}
}}
"""
CUT = OF_FIXED_SIZES.format(
    inputs="x", body="x = external(shape = [2, 6]); o = slice(x, axes = [1], begin = [2], end = [9]);"
)
OF_RANK_0 = OF_FIXED_SIZES.format(
    inputs="x", body="x = external(shape = [1, 1]); y = mul(x, 2.0); o = reshape(y, shape = []);"
)
SPLIT = OF_FIXED_SIZES.format(
    inputs="x",
    body="""x = external(shape = [2, 8]);
  r = mul(relu(x), 2.0);
  s = slice(r, axes = [1], begin = [1], end = [7]);
  a = slice(s, axes = [1], begin = [1], end = [3]);
  b = slice(s, axes = [1], begin = [2], end = [6]);
  o = concat([a, b], axis = 1);""",
)
SUMS = OF_FIXED_SIZES.format(
    inputs="x",
    body="""x = external(shape = [1, 2, 6]);
  o = box(x, size = [1, 1, 2], stride = [1, 1, 2], padding = [(0,0), (0,0), (0,0)], normalize = false);""",
)
GRAM = """version 1.0;
extension tract_registry tract_core;
extension tract_symbol T;
graph network(x) -> (o)
{
  x = external(shape = [T, 4]);
  o = matmul(x, x, transposeB = true);
}
"""


def t2n(folder: Path, text: str, *arguments: object) -> tuple[int, Path]:
    archive = folder / "net"
    archive.mkdir()
    (archive / "graph.nnef").write_text(text)
    page = folder / "page.md"
    options = ["--offline", "--cache-dir", CACHE, "-o", page]
    return main(["upgrade", *map(str, [archive, *options, *arguments])]), page


@pytest.mark.parametrize(
    ("text", "before", "after", "verdict", "boundary"),
    [
        pytest.param(*values, id=name)
        for name, values in {
            "minus": (STRETCHED, "0.21.7", "0.21.10", "values moved", ["0.21.7", "0.21.8", "right", WRONG]),
            "minus, mended": (STRETCHED, "0.21.10", "0.21.13", "values moved", ["0.21.10", "0.21.11", WRONG, "right"]),
            "sum, mended": (SUMS, "0.22.4", "0.23.8", "values moved", ["0.23.3", "0.23.5", WRONG, "right"]),
            "end beyond": (CUT, "0.22.4", "0.23.8", LOST, ["0.22.1", "0.23.0", "unchanged", "error at load"]),
            "rank 0": (OF_RANK_0, "0.21.7", "0.21.13", LOST, ["0.21.7", "0.21.8", "unchanged", "crash at load"]),
            "slices": (SPLIT, "0.21.10", "0.21.13", LOST, ["0.21.10", "0.21.11", "unchanged", "error at optimise"]),
            "endless": (GRAM, "0.21.13", "0.21.14", LOST, ["0.21.13", "0.21.14", "unchanged", "timeout at optimise"]),
        }.items()
    ],
)
def test_known_regressions(
    text: str,
    before: str,
    after: str,
    verdict: str,
    boundary: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ("--from", before, "--to", after, "--json", "--no-times", "--paths", "declutter", "--timeout", "5")
    status, page = t2n(tmp_path, text, *arguments)
    report = json.loads(capsys.readouterr().out)
    assert (status, report["verdict"], report["since"]["declutter"]) == (1, verdict, [boundary])
    assert page.read_text().startswith(f"# net, tract {before} to {after}: {verdict}")


def test_the_errata_of_a_graph_say_why(tmp_path: Path) -> None:
    _, page = t2n(tmp_path, STRETCHED, "--from", "0.21.7", "--to", "0.21.10", "--no-times")
    text = page.read_text()
    assert "tract 0.21.10 is wrong (mismatch at compare)" in text
    assert "- new in 0.21.10: this `sub` must not be written for tract: a smaller operand minus a larger one" in text


def test_what_moves_no_value_is_safe_at_all_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, page = t2n(tmp_path, SYMBOLIC, "--from", "0.21.13", "--to", "0.23.8", "--json")
    report = json.loads(capsys.readouterr().out)
    assert (status, report["verdict"], report["since"]) == (0, "safe", {}), report["headline"]
    assert [path["path"] for path in report["paths"]] == ["declutter", "optimise-only, now declutter", "fixed-symbols"]
    assert {"T": 1} in report["paths"][0]["sizes"]
    assert all(len(rounds) == 7 for rounds in report["seconds"].values())
    assert "## Times" in page.read_text()


def test_a_file_that_only_the_newer_release_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, page = t2n(tmp_path, ASSERTING, "--from", "0.21.5", "--to", "0.21.6", "--no-times")
    assert status == 0
    assert "net, tract 0.21.5 to 0.21.6: safe" in capsys.readouterr().out
    assert "tract 0.21.5 does not load it" in page.read_text()
    assert main(["upgrade", str(tmp_path / "net"), "--from", "0.21.6", "--to", "0.21.5"]) == 1
    assert "0.21.5 is not newer than 0.21.6" in capsys.readouterr().err


@pytest.mark.nightly
def test_a_release_that_is_slower(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = """x = external(shape = [64, 256]);
  w = tract_core_external(datum_type = "f16", shape = [256, 256]);
  o = tract_core_einsum([x, w], expr = "mk,kn->mn", acc = "f32");"""
    text = OF_FIXED_SIZES.format(inputs="x, w", body=body)
    status, page = t2n(tmp_path, text, "--from", "0.21.19", "--to", "0.22.4")
    assert (status, "net, tract 0.21.19 to 0.22.4: slower by " in capsys.readouterr().out) == (1, True)
    assert "tract_core_einsum o" in page.read_text()


def test_given_inputs_take_the_place_of_drawn_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = tmp_path / "x.npz"
    np.savez(inputs, x=np.ones((1, 6, 4), np.float32))
    arguments = ("--from", "0.22.4", "--to", "0.23.8", "--inputs", inputs, "--no-times", "--json")
    status, _ = t2n(tmp_path, SYMBOLIC, *arguments)
    assert (status, json.loads(capsys.readouterr().out)["paths"][0]["max_abs"]) == (0, 0.0)


def test_sizes_can_be_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--from", "0.22.4", "--to", "0.23.8", "--no-times", "--json")
    status, _ = t2n(tmp_path, SYMBOLIC, *arguments, "--size", "T=6")
    (path, *_) = json.loads(capsys.readouterr().out)["paths"]
    assert (status, {size["T"] for size in path["sizes"]}) == (0, {6})
    assert main(["upgrade", str(tmp_path / "net"), "--offline", *arguments, "--size", "S=6"]) == 1
    assert "no input has the size `S`; there are T" in capsys.readouterr().err


def test_an_onnx_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(linear(), tmp_path / "net.onnx")
    pair = ["--from", "0.22.4", "--to", "0.23.8", "--offline", "--cache-dir", CACHE, "--no-times", "--json"]
    assert main(["upgrade", str(path), *pair]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["verdict"], report["reference"]) == ("safe", "onnxruntime")
    assert report["errata"] == {"mended": [], "new": [], "unknown": ""}


MODEL = """
import torch

def make():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU()), torch.randn(3, 4)
"""


def test_a_model_that_is_exported_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module, archive, page = tmp_path / "net_of_upgrade.py", tmp_path / "net.nnef.tgz", tmp_path / "page.md"
    module.write_text(MODEL)
    model = f"{module}:make"
    assert (
        main(
            [
                "export",
                model,
                "-o",
                str(archive),
                "--tract",
                "0.21.13",
                "--dynamic",
                "input:0=B",
                "--no-check",
                "--offline",
            ]
        )
        == 0
    )
    pair = ["--from", "0.21.13", "--to", "0.23.8", "--offline", "--cache-dir", CACHE]
    words = ["upgrade", str(archive), *pair, "--model", model, "--dynamic", "input:0=B", "--json", "-o", str(page)]
    main(words)
    again = json.loads(capsys.readouterr().out.splitlines()[-1])["again"]
    assert again["ratio"] > 0
    assert "its outputs are those of this file in 0.21.13" in page.read_text()
    module.write_text(MODEL.replace("manual_seed(0)", "manual_seed(1)"))
    sys.modules.pop("net_of_upgrade")
    main([*words, "--no-times"])
    assert "its outputs are not those of this file in 0.21.13: mismatch" in page.read_text()
