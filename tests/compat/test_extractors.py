"""Extractors as in torch-to-nnef: hooks, what a subclass has to define, and the arguments of `convert_to_nnef`."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import KhronosNNEF, ModelExport, TractNNEF
from t2n_core.errors import CaptureError, LowerError, RegistryError, T2NError
from t2n_core.op import custom_extractors
from t2n_core.op.custom_extractors import ModuleInfoExtractor
from t2n_core.op.registry import load_default, op
from t2n_core.rewriter import get_context
from tests.releases import NEWEST

TRACT = TractNNEF(NEWEST, check_io=False)


class Twice(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2.0


class Reads(nn.Module):
    """A layer that no capture can follow."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2.0 if float(x.sum()) > 0.0 else x + x


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    before = dict(ModuleInfoExtractor._registered)
    yield
    ModuleInfoExtractor._registered.clear()
    ModuleInfoExtractor._registered.update(before)


def extractor_of(module_class: Any) -> type[ModuleInfoExtractor]:
    """Return an extractor with `MODULE_CLASS` and `convert_to_nnef` alone, which writes x + x."""

    class Extractor(ModuleInfoExtractor):
        MODULE_CLASS = module_class

        def convert_to_nnef(self, g, module, inputs, params):
            return [g.add(inputs[0], inputs[0])]

    return Extractor


def names(model: nn.Module, target: Any = TRACT) -> list[str]:
    graph = ModelExport(model.eval(), torch.randn(2, 3)).lower(target)
    return [operation.name for operation in graph.operations if operation.name != "external"]


def test_built_in_extractors() -> None:
    classes = {
        "LSTMExtractor": nn.LSTM,
        "GRUExtractor": nn.GRU,
        "RNNExtractor": nn.RNN,
        "LSTMCellExtractor": nn.LSTMCell,
    }
    extractors = {name: getattr(custom_extractors, name) for name in classes}
    assert {name: extractor.MODULE_CLASS for name, extractor in extractors.items()} == classes
    assert all(issubclass(extractor, ModuleInfoExtractor) for extractor in extractors.values())
    assert type(ModuleInfoExtractor.get_by_kind("aten::lstm_cell")) is extractors["LSTMCellExtractor"]
    with pytest.raises(RegistryError, match="no extractor has nodes of the kind aten::relu"):
        ModuleInfoExtractor.get_by_kind("aten::relu")


def test_module_class_is_a_class_of_modules() -> None:
    assert ModuleInfoExtractor.MODULE_CLASS is None
    with pytest.raises(RegistryError, match="is not a class of modules"):
        extractor_of(int)


def test_module_class_and_convert_to_nnef_are_enough() -> None:
    assert names(nn.Sequential(Twice())) == ["mul"]
    extractor_of(Twice)
    extractor_of(Reads)
    assert names(nn.Sequential(Twice(), Reads())) == ["add", "add"]


def test_extraction_leaves_model_and_random_numbers_unchanged() -> None:
    """A layer without `declare_outputs` is run once on the example, on copies."""

    class Counts(Reads):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))
            self.last: list[torch.Tensor] = []

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            self.last.append(x)
            return super().forward(x + torch.rand(3) * 0.0)

    extractor_of(Counts)
    model, x = Counts().eval(), torch.randn(2, 3)
    state = torch.get_rng_state()
    assert ModelExport(model, x).lower(TRACT).operations[-1].name == "add"
    assert (float(model.calls), model.last) == (0.0, [])
    assert torch.equal(torch.get_rng_state(), state)


def test_dynamic_axes_need_declare_outputs(tmp_path: Path) -> None:
    """A run of the example has one size."""
    extractor = extractor_of(Reads)

    def export() -> Any:
        made = ModelExport(nn.Sequential(Reads()), torch.randn(2, 3), dynamic_axes={"input": {1: "T"}})
        return made.to(TRACT, tmp_path / "m.tar")

    with pytest.raises(CaptureError, match="`declare_outputs` of Extractor"):
        export()
    gc.collect()
    assert names(Twice()) == ["mul"]  # a failed export removes its patches
    extractor.declare_outputs = lambda self, module, x: torch.empty_like(x)
    assert str(export().range) == "T >= 1"


def test_lstm_cell_takes_input_h_c(tmp_path: Path) -> None:
    """By position, also where input and states have equal sizes."""
    state = (torch.randn(2, 3), torch.randn(2, 3))
    result = ModelExport(nn.LSTMCell(3, 3).eval(), (torch.randn(2, 3), state)).to(TRACT, tmp_path / "cell.nnef.tgz")
    assert result.assert_parity("approximate").passed
    state = (torch.randn(2, 4), torch.randn(2, 4))
    captured = ModelExport(nn.LSTMCell(3, 4).eval(), (torch.randn(2, 3), state)).captured
    (node,) = (node for node in captured.graph.op_nodes if node.kind == "aten::lstm_cell")
    ordered = ModuleInfoExtractor.get_by_kind("aten::lstm_cell").ordered_args(node)
    assert [value.shape for value in ordered[:3]] == [(2, 3), (2, 4), (2, 4)]


def test_call_original_mod_with_args() -> None:
    class Pairs(nn.Module):
        def forward(self, pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
            return pair[0] + pair[1]

    class Wrapped(Pairs):
        def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
            raise AssertionError("the original is called by the extractor")

    class WrappedExtractor(ModuleInfoExtractor):
        MODULE_CLASS = Wrapped

        def _call_original_mod_with_args(self, module, first, second):
            return Pairs.forward(module, (first, second))

        def convert_to_nnef(self, g, module, inputs, params):
            return [g.add(inputs[0], inputs[1])]

    graph = ModelExport(Wrapped().eval(), (torch.randn(2, 3), torch.randn(2, 3))).lower(TRACT)
    assert graph.operations[-1].name == "add"


def test_ordered_args() -> None:
    class Swapped(nn.Module):
        def forward(self, state: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return x - state

    class SwappedExtractor(ModuleInfoExtractor):
        MODULE_CLASS = Swapped

        def ordered_args(self, torch_graph):
            return sorted(torch_graph.inputs, key=lambda value: value.shape != (2, 3))

        def convert_to_nnef(self, g, module, inputs, params):
            return [g.sub(inputs[0], inputs[1])]

    export = ModelExport(Swapped().eval(), {"state": torch.randn(1, 3), "x": torch.randn(2, 3)})
    subtraction = export.lower(TRACT).operations[-1]
    assert [subtraction.arguments[name].name for name in "xy"] == ["x", "state"]
    SwappedExtractor.ordered_args = lambda self, torch_graph: torch_graph.inputs[:1]
    with pytest.raises(LowerError, match="ordered_args returns other tensors"):
        ModelExport(Swapped().eval(), (torch.randn(1, 3), torch.randn(2, 3))).lower(TRACT)


@pytest.mark.parametrize("module_class", [Twice, Reads])
def test_generate_in_torch_graph_takes_the_place_of_forward(module_class: type[nn.Module]) -> None:
    """A forward that reads data is run on the example as without the override."""
    called, written = [], extractor_of(nn.Identity).convert_to_nnef

    class Calls(ModuleInfoExtractor):
        MODULE_CLASS = module_class
        convert_to_nnef = written

        def generate_in_torch_graph(self, call, *args, **kwargs):
            called.append(call.module)
            return super().generate_in_torch_graph(call, *args, **kwargs)

    assert names(nn.Sequential(module_class())) == ["add"]
    assert called


def test_get_by_kind_of_each_node() -> None:
    class Thrice(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 3.0

    class TwiceExtractor(ModuleInfoExtractor):
        MODULE_CLASS = Twice

    class ThriceExtractor(ModuleInfoExtractor):
        MODULE_CLASS = Thrice

    model = nn.Sequential(Twice(), Thrice(), nn.LSTM(3, 4)).eval()
    nodes = ModelExport(model, torch.randn(2, 3)).captured.graph.op_nodes
    kinds = [node.kind for node in nodes if "module_call" in node.kind or "lstm" in node.kind]
    assert [type(ModuleInfoExtractor.get_by_kind(kind)) for kind in kinds] == [
        TwiceExtractor,
        ThriceExtractor,
        custom_extractors.LSTMExtractor,
    ]


class OwnLSTM(nn.LSTM):
    pass


class OwnCell(nn.LSTMCell):
    pass


@pytest.mark.parametrize("way", ["export", "trace"])
def test_convert_to_nnef_of_a_subclass_of_a_built_in_extractor(way: Any, tmp_path: Path) -> None:
    orders = []

    class Cell(custom_extractors.LSTMCellExtractor):
        MODULE_CLASS = OwnCell

        def ordered_args(self, torch_graph):
            orders.append([tuple(value.shape) for value in torch_graph.inputs])
            return torch_graph.inputs[::-1]

        def convert_to_nnef(self, g, module, inputs, params):
            c, h, x = inputs
            sums = g.add(
                g.add(g.matmul(x, params["weight_ih"], transposeB=True), params["bias_ih"]),
                g.add(g.matmul(h, params["weight_hh"], transposeB=True), params["bias_hh"]),
            )
            i, f, u, o = (g.slice(sums, axes=[-1], begin=[n * 4], end=[n * 4 + 4]) for n in range(4))
            c = g.add(g.mul(g.sigmoid(f), c), g.mul(g.sigmoid(i), g.tanh(u)))
            return [g.mul(g.sigmoid(o), g.tanh(c)), c]

    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = OwnCell(3, 4)

        def forward(self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> Any:
            return self.cell(x, (h, c))

    assert Cell().kind == "t2n_capture::module_call.Cell"
    assert type(ModuleInfoExtractor.get_by_kind("aten::lstm_cell")) is custom_extractors.LSTMCellExtractor
    args = (torch.randn(2, 3), torch.randn(2, 4), torch.randn(2, 4))
    result = ModelExport(Holder().eval(), args, capture=way).to(TRACT, tmp_path / "m.tar")
    assert orders == [[(2, 3), (2, 4), (2, 4)]]
    assert not any(operation.name.startswith("lstm_cell") for operation in result.graph.operations)
    assert result.assert_parity("approximate").passed


def test_convert_to_nnef_of_a_net_is_called() -> None:
    class Net(custom_extractors.LSTMExtractor):
        MODULE_CLASS = OwnLSTM

        def convert_to_nnef(self, g, module, inputs, params):
            return super().convert_to_nnef(g, module, inputs, params)

    with pytest.raises(LowerError, match=r"Net calls the convert_to_nnef of the extractor of OwnLSTM, which has none"):
        ModelExport(nn.Sequential(OwnLSTM(3, 4)).eval(), torch.randn(2, 1, 3)).lower(TRACT)


@pytest.mark.parametrize("name", ["ordered_args", "declare_outputs", "_call_original_mod_with_args"])
def test_overrides_that_nothing_would_call_are_refused(name: str) -> None:
    with pytest.raises(RegistryError, match=f"Mine overrides {name}(.|\n)*override convert_to_nnef too"):
        type("Mine", (custom_extractors.GRUExtractor,), {"MODULE_CLASS": OwnCell, name: lambda self, *args: args})


def test_convert_to_nnef_with_arguments_of_torch_to_nnef(tmp_path: Path) -> None:
    seen = []

    class Old(ModuleInfoExtractor):
        MODULE_CLASS = Twice

        def convert_to_nnef(self, g, node, name_to_tensor, null_ref, torch_graph, inference_target, **kwargs):
            seen.append((null_ref, node in torch_graph.op_nodes, inference_target))
            x = name_to_tensor[node.inputs[0].name]
            return [g.add(x, x)]

    result = ModelExport(nn.Sequential(Twice()).eval(), torch.randn(2, 3)).to(TRACT, tmp_path / "twice.nnef.tgz")
    assert result.assert_parity("exact").passed
    assert seen == [(None, True, TRACT)]


@pytest.mark.parametrize("returned", [[], None, ["tract_core"], 3])
def test_convert_to_nnef_returns_values(returned: Any) -> None:
    """In torch-to-nnef it returns names of fragments."""

    class Old(ModuleInfoExtractor):
        MODULE_CLASS = Twice

        def convert_to_nnef(self, g, node, name_to_tensor, **kwargs):
            return returned

    with pytest.raises(T2NError, match=r"not the values of its outputs(.|\n)*methods of g"):
        names(nn.Sequential(Twice()))


def test_rule_with_arguments_of_torch_to_nnef() -> None:
    rules = load_default().copy()
    rules.remove("aten::tanh")

    @op("aten::tanh", registry=rules)
    def tanh(g, node, name_to_tensor, torch_graph, inference_target, **kwargs):
        assert inference_target is TRACT
        return g.sigmoid(name_to_tensor[node.inputs[0].name])

    graph = ModelExport(nn.Tanh().eval(), torch.randn(2, 3), rules=rules).lower(TRACT)
    assert graph.operations[-1].name == "sigmoid"


def test_context_of_an_extractor_has_the_target() -> None:
    class ByTarget(ModuleInfoExtractor):
        MODULE_CLASS = Twice

        def convert_to_nnef(self, g, module, inputs, params):
            return g.relu(inputs[0]) if get_context().target is TRACT else g.tanh(inputs[0])

    export = ModelExport(nn.Sequential(Twice()).eval(), torch.randn(2, 3))
    for target, name in ((TRACT, "relu"), (KhronosNNEF(check_io=False), "tanh")):
        assert export.lower(target).operations[-1].name == name
