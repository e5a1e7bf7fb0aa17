"""Reading ONNX models, which may be damaged or hostile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from t2n_core.errors import InputError
from t2n_core.onnx_file.model import copy_model, read_model
from tests.onnx_nets import linear, model, saved, tensor

IDENTITY = helper.make_node("Identity", ["x"], ["y"])


def test_ports_and_symbols(tmp_path: Path) -> None:
    node = helper.make_node("Where", ["c", "x", "w"], ["y"])
    inputs = [tensor("c", ["B", None], TensorProto.BOOL), tensor("x", ["B", 3]), tensor("w", [3])]
    net = read_model(saved(model([node], inputs, [tensor("y", ["B", 3])], {"w": np.ones(3, "f4")}), tmp_path / "n"))
    assert [(port.name, port.dtype.name, port.shape) for port in net.inputs] == [
        ("c", "bool", ("B", "c.1")),
        ("x", "float32", ("B", 3)),
    ]
    assert net.symbols == ("B", "c.1")
    assert [port.name for port in net.outputs] == ["y"]
    assert [str(port) for port in net.interface.inputs] == ["bool[B, c.1]", "float32[B, 3]"]


@pytest.mark.parametrize("content", [b"", b"\x08", b"\x08\x08not a message", linear().SerializeToString()[:-40]])
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    with pytest.raises(InputError, match="not an ONNX model, or it is damaged"):
        read_model(path)


def test_a_model_without_opsets_is_damaged(tmp_path: Path) -> None:
    net = linear()
    net.ClearField("opset_import")
    with pytest.raises(InputError, match="names no version of ONNX's operators"):
        read_model(saved(net, tmp_path / "net.onnx"))


def test_more_than_a_protobuf_message_holds_is_refused(tmp_path: Path) -> None:
    path = saved(linear(), tmp_path / "net.onnx")
    with path.open("r+b") as file:
        file.truncate((1 << 31) + 1)
    with pytest.raises(InputError, match=r"net\.onnx has 2147483649 bytes, more than 2147483647"):
        read_model(path)


def test_a_size_below_zero_is_dynamic(tmp_path: Path) -> None:
    net = linear()
    net.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert read_model(saved(net, tmp_path / "net.onnx")).symbols == ("x.0",)


def with_external(location: str, length: int | str) -> onnx.ModelProto:
    net = linear()
    weight = net.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("length", str(length))):
        weight.external_data.add(key=key, value=value)
    return net


@pytest.mark.parametrize(
    ("location", "length", "reason"),
    [
        ("missing.bin", 60, "cannot be read"),
        ("../outside.bin", 60, "not the name of a file inside"),
        ("/etc/hostname", 60, "not the name of a file inside"),
        ("", 60, "not the name of a file inside"),
        ("link.bin", 60, "leads out of the folder"),
        ("short.bin", 60, "ends at byte 60 of short.bin, which has 8"),
        ("short.bin", -8, "begin at byte 0 of short.bin, and have -8 bytes"),
        ("short.bin", "x", "invalid literal"),
    ],
)
def test_weights_outside_of_the_folder_are_not_read(
    tmp_path: Path, location: str, length: int | str, reason: str
) -> None:
    (tmp_path / "outside.bin").write_bytes(bytes(60))
    folder = tmp_path / "net"
    folder.mkdir()
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    (folder / "short.bin").write_bytes(bytes(8))
    with pytest.raises(InputError, match=reason):
        read_model(saved(with_external(location, length), folder / "net.onnx"))


@pytest.mark.parametrize("location", ["w.bin", "weights/w.bin"])
def test_weights_inside_of_the_folder_are_read_and_copied(tmp_path: Path, location: str) -> None:
    folder, copy = tmp_path / "net", tmp_path / "copy" / "model.onnx"
    (folder / "weights").mkdir(parents=True)
    (folder / location).write_bytes(bytes(60))
    path = saved(with_external(location, 60), folder / "net.onnx")
    assert read_model(path).data_files == (location,)
    copy_model(path, copy)
    assert copy.read_bytes() == path.read_bytes()
    assert (copy.parent / location).read_bytes() == bytes(60)
    with pytest.raises(InputError, match="which is the name of another file"):
        copy_model(path, copy)


def test_weights_of_functions_are_not_read_outside_of_the_folder(tmp_path: Path) -> None:
    tensor_of = helper.make_tensor("c", TensorProto.FLOAT, [1], [1.0])
    tensor_of.ClearField("float_data")
    tensor_of.data_location = TensorProto.EXTERNAL
    tensor_of.external_data.add(key="location", value="../outside.bin")
    nodes = [helper.make_node("Constant", [], ["c"], value=tensor_of), helper.make_node("Add", ["x", "c"], ["y"])]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    net = model([helper.make_node("F", ["x"], ["y"], domain="own")], [tensor("x", [1])], [tensor("y", [1])])
    net.functions.append(helper.make_function("own", "F", ["x"], ["y"], nodes, opsets[:1]))
    net.opset_import.append(opsets[1])
    with pytest.raises(InputError, match=r"data of `c` cannot be read: '\.\./outside\.bin' is not the name of a file"):
        read_model(saved(net, tmp_path / "net.onnx"))


@pytest.mark.parametrize(
    ("port", "reason"),
    [
        (helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None), "`x` is a sequence"),
        (tensor("x", [2], TensorProto.STRING), "elements of type string"),
        (tensor("x", [2], TensorProto.BFLOAT16), "elements of type bfloat16"),
        (tensor("x", [2], 77), "elements of type 77"),
    ],
)
def test_values_that_are_no_numbers_are_refused(tmp_path: Path, port: onnx.ValueInfoProto, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        read_model(saved(model([IDENTITY], [port], [tensor("y", [2])]), tmp_path / "net.onnx"))


def test_an_optional_tensor_is_a_tensor(tmp_path: Path) -> None:
    port = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, ["B", 2]))
    net = model([IDENTITY], [helper.make_value_info("x", port)], [tensor("y", ["B", 2])])
    (read,) = read_model(saved(net, tmp_path / "net.onnx")).inputs
    assert (read.dtype.name, read.shape) == ("float32", ("B", 2))
