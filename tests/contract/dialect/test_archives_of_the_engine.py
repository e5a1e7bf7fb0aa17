"""Archives that tract writes itself, from ONNX models, are read and are right by the definitions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from pytest_t2n.cli.command import main
from t2n_core.engine.tract.driver import TractDriver
from t2n_core.nnef.dat import block_header
from tests.onnx_nets import INT64, linear, lstm, model, saved, tensor
from tests.releases import NEWEST

RANDOM = np.random.default_rng(0)


class PlainDriver(TractDriver):
    """Writes plain identifiers, as tract does by default."""

    def find(self, *names: str) -> Any:
        return None if "extended_identifier" in names[0] else super().find(*names)


def float32(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype("f4")


def scaled() -> onnx.ModelProto:
    """Return small constants, which are written as statements, one of them infinite."""
    nodes = [helper.make_node("Mul", ["x", "k"], ["m"]), helper.make_node("Where", ["c", "m", "lowest"], ["y"])]
    constants = {"k": float32(4), "c": RANDOM.integers(0, 2, (3, 4)).astype(bool), "lowest": np.float32(-np.inf)}
    return model(nodes, [tensor("x", [3, 4])], [tensor("y", [3, 4])], constants)


def integers() -> onnx.ModelProto:
    """Return a tensor of integers that is stored."""
    nodes = [helper.make_node("Add", ["x", "k"], ["y"])]
    constants = {"k": RANDOM.integers(-9, 9, (3, 4))}
    return model(nodes, [tensor("x", [3, 4], INT64)], [tensor("y", [3, 4], INT64)], constants)


def gru() -> onnx.ModelProto:
    constants = {"W": float32(1, 12, 3), "R": float32(1, 12, 4), "B": float32(1, 24)}
    node = helper.make_node("GRU", ["x", "W", "R", "B"], ["y", "h"], hidden_size=4, linear_before_reset=1)
    outputs = [tensor("y", [5, 1, 2, 4]), tensor("h", [1, 2, 4])]
    return model([node], [tensor("x", [5, 2, 3])], outputs, constants)


def half() -> onnx.ModelProto:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    inputs, outputs = [tensor("x", [2, 8], TensorProto.FLOAT16)], [tensor("y", [2, 4], TensorProto.FLOAT16)]
    return model([node], inputs, outputs, {"w": float32(8, 4).astype("f2")})


def written(net: onnx.ModelProto, driver: TractDriver, folder: Path) -> Path:
    """Return an archive that the engine has written."""
    driver.write(driver.load(saved(net, folder / "net.onnx")), folder / "net")
    return folder / "net"


def checked(capsys: pytest.CaptureFixture[str], archive: Path, release: str, *more: str) -> tuple[dict[str, Any], str]:
    main(["check", str(archive), "--tract", release, "--offline", "--json", *more])
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err


@pytest.mark.parametrize(
    ("release", "kind"),
    [("0.21.19", PlainDriver), ("0.22.4", PlainDriver), (NEWEST, PlainDriver), (NEWEST, TractDriver)],
)
@pytest.mark.parametrize(
    ("net", "form"),
    [
        (scaled, " = [[-inf]];"),
        (integers, "variable<scalar>("),
        (gru, "reset_every_turn = "),
        (linear, " = [["),
        (lambda: lstm("forward"), "tract_core_scan("),
    ],
    ids=["scaled", "integers", "gru", "linear", "lstm"],
)
def test_archives_of_the_engine_are_right(
    net: Callable[[], onnx.ModelProto],
    form: str,
    kind: type[TractDriver],
    release: str,
    resolved_engine: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    archive = written(net(), kind(resolved_engine(release).library), tmp_path)
    text = (archive / "graph.nnef").read_text()
    assert form in text
    assert ('i"' in text) == (kind is TractDriver)
    assert checked(capsys, archive, release)[0]["status"] == "pass"


GRAPH = """version 1.0;
extension tract_registry tract_core;
graph net(x) -> (y, levels) {
  x = external(shape = [3, 40]);
  q = tract_core_cast(x);
  i"q.sum" = add(q, q);
  c = copy(i"q.sum");
  y = tract_core_cast(c, to = "f32");
  levels = tract_core_cast(q, to = "i8");
}
"""
FORMAT = "zero_point_linear_quantize(zero_point = {}, scale = {}, bits = 8, signed = true, symmetric = false)"
FORMATS = f"""
"q": {FORMAT.format(5, 0.03)};
i"q.sum": {FORMAT.format(-7, 0.046)};
"c": linear_quantize(min = -2.0, max = 2.5, bits = 8);
"""


@pytest.mark.parametrize("release", ["0.23.0", NEWEST])
def test_quantised_values_are_right(
    release: str, resolved_engine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    resolved_engine(release)
    (tmp_path / "graph.nnef").write_text(GRAPH)
    (tmp_path / "graph.quant").write_text(FORMATS)
    assert checked(capsys, tmp_path, release)[0]["status"] == "pass"


@pytest.mark.parametrize("item_type", [0x54523040, 0x54522040])
def test_blocks_of_4_bits_in_both_orders(
    item_type: int, resolved_engine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    resolved_engine(NEWEST)
    scales = RANDOM.uniform(0.1, 1, (8, 1)).astype("f2").view("u1")
    blocks = np.concatenate([scales, RANDOM.integers(0, 256, (8, 16), "u1")], axis=1)
    header = block_header((4, 64))
    (tmp_path / "w.dat").write_bytes(header[:48] + item_type.to_bytes(4, "little") + header[52:] + blocks.tobytes())
    (tmp_path / "graph.nnef").write_text(
        "version 1.0;\ngraph net(x) -> (y) {\n  x = external(shape = [3, 64]);\n"
        '  w = variable(label = "w", shape = [4, 64]);\n  y = matmul(x, w, transposeB = true);\n}\n'
    )
    assert checked(capsys, tmp_path, NEWEST)[0]["status"] == "pass"


def test_one_file_of_float32_for_a_net_in_float16(
    resolved_engine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = half()
    archive = written(net, TractDriver(resolved_engine(NEWEST).library), tmp_path)
    x = np.float16(float32(2, 8))
    y = x.astype(float) @ onnx.numpy_helper.to_array(net.graph.initializer[0]).astype(float)
    io = tmp_path / "io.npz"
    np.savez(io, x=x.astype("f4"), y=y.astype("f4"))
    outcome, stderr = checked(capsys, archive, NEWEST, "--inputs", str(io), "--expected", str(io))
    assert outcome["status"] in ("pass", "weak"), outcome["error"]
    assert stderr.count("is cast from float32 to float16") == 2
