"""Document 000, extractors: what it states, in its order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import KhronosNNEF, ModelExport, TractNNEF
from t2n_core.errors import CaptureError, LowerError, RegistryError, T2NError
from t2n_core.op.custom_extractors import LSTMCellExtractor, LSTMExtractor, ModuleInfoExtractor
from t2n_core.op.custom_extractors.base import ExtractorWarning
from t2n_core.op.registry import load_default, op
from t2n_core.rewriter import get_context

DIFFERS = {
    "torch.jit.trace by default": "torch.export is, since it keeps dynamic axes; capture='trace' is the other way",
    "MODULE_CLASS and convert_to_nnef are enough": "not with a dynamic axis where forward reads data: a run of the "
    "example has one size, and `declare_outputs` states the others",
    "primitive operators of an LSTMCell": "so for khronos; tract gets its own fused operator where a release has it",
}
"""Item that does not hold as written -> the reason."""
TRACT = TractNNEF("0.23.9", check_io=False)


class Twice(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2.0


class Reads(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2.0 if float(x.sum()) > 0.0 else x + x


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    before = dict(ModuleInfoExtractor._registered)
    yield
    ModuleInfoExtractor._registered.clear()
    ModuleInfoExtractor._registered.update(before)


def extractor_of(module_class: Any) -> type[ModuleInfoExtractor]:
    class Extractor(ModuleInfoExtractor):
        MODULE_CLASS = module_class

        def convert_to_nnef(self, g, module, inputs, params):
            return [g.add(inputs[0], inputs[0])]

    return Extractor


def names(model: nn.Module, target: Any = TRACT) -> list[str]:
    graph = ModelExport(model.eval(), torch.randn(2, 3)).lower(target)
    return [operation.name for operation in graph.operations if operation.name != "external"]


def test_extraction_bypasses_the_expansion() -> None:
    """The mechanism controls extraction, and bypasses the full expansion of a module."""
    assert names(nn.Sequential(Twice())) == ["mul"]
    extractor_of(Twice)
    assert names(nn.Sequential(Twice())) == ["add"]


def test_jit_trace_by_default_differs() -> None:
    """By default torch.jit.trace is used: it is torch.export, and the other with `capture="trace"`."""
    with pytest.raises(CaptureError):
        _ = ModelExport(Reads().eval(), torch.ones(2, 3)).captured
    with pytest.warns(UserWarning, match="float"):
        assert ModelExport(Reads().eval(), torch.ones(2, 3), capture="trace").captured.graph.op_nodes


def test_recurrent_layers_are_encapsulated() -> None:
    """Layers such as LSTM and GRU are encapsulated, in place of many variables."""
    captured = ModelExport(nn.GRU(3, 4).eval(), torch.randn(5, 2, 3)).captured
    assert "aten::gru.input" in [op.kind for op in captured.graph.op_nodes]


def test_a_layer_that_cannot_be_captured() -> None:
    """A layer that is not serialisable is kept whole by MODULE_CLASS and convert_to_nnef alone."""
    extractor_of(Reads)
    assert names(nn.Sequential(Reads())) == ["add"]


def test_a_run_of_the_example_changes_nothing_in_the_model() -> None:
    """The run of the example for a layer that reads data leaves buffers, attributes and random numbers alone."""

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
    assert [one.name for one in ModelExport(model, x).lower(TRACT).operations if one.name != "external"] == ["add"]
    assert (float(model.calls), model.last) == (0.0, [])
    assert torch.equal(torch.get_rng_state(), state)


def test_a_layer_that_cannot_be_captured_at_any_size_differs(tmp_path: Path) -> None:
    """With a dynamic axis its sizes are those that `declare_outputs` states: a run of the example has no others."""
    extractor = extractor_of(Reads)
    export = ModelExport(nn.Sequential(Reads()), torch.randn(2, 3), dynamic_axes={"input": {1: "T"}})
    with pytest.raises(CaptureError, match="`declare_outputs` of Extractor"):
        export.to(TRACT, tmp_path / "m.tar")
    extractor.declare_outputs = lambda self, module, x: torch.empty_like(x)  # type: ignore[method-assign]
    export = ModelExport(nn.Sequential(Reads()), torch.randn(2, 3), dynamic_axes={"input": {1: "T"}})
    assert str(export.to(TRACT, tmp_path / "m.tar").range) == "T >= 1"


def test_a_refused_extractor_leaves_the_process_as_it_was() -> None:
    """A refused extractor does not make later captures fail."""
    import gc

    extractor_of(Reads)
    with pytest.raises(CaptureError):
        _ = ModelExport(Reads().eval(), torch.randn(2, 3), dynamic_axes={"x": {1: "T"}}).captured
    gc.collect()
    assert names(Twice()) == ["mul"]


def test_lstm_cell_extractor_is_a_module_info_extractor() -> None:
    """LSTMCellExtractor has the base ModuleInfoExtractor."""
    assert issubclass(LSTMCellExtractor, ModuleInfoExtractor)
    assert LSTMCellExtractor.MODULE_CLASS is nn.LSTMCell


def test_lstm_cell_is_decomposed_differs() -> None:
    """nn.LSTMCell is decomposed into primitive operators: for khronos, and for tract unless it has a fused one."""
    written = set(names(nn.LSTMCell(3, 4), KhronosNNEF(check_io=False)))
    assert {"sigmoid", "tanh", "mul", "add"} <= written
    assert written & {"matmul", "linear"}


def test_an_lstm_cell_has_one_step_and_its_inputs_are_input_h_c(tmp_path: Path) -> None:
    """An LSTMCell has a single time step, and takes (input, (h, c)) in this order, also at equal sizes."""
    state = (torch.randn(2, 3), torch.randn(2, 3))
    result = ModelExport(nn.LSTMCell(3, 3).eval(), (torch.randn(2, 3), state)).to(TRACT, tmp_path / "cell.nnef.tgz")
    assert result.assert_parity("approximate").passed


def test_the_call_of_the_original_is_a_hook() -> None:
    """`_call_original_mod_with_args` handles a module whose call expects its arguments otherwise."""

    class Pairs(nn.Module):
        def forward(self, pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
            return pair[0] + pair[1]

    class Wrapped(Pairs):
        def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
            raise AssertionError("the original is called by the extractor")

    class Own(ModuleInfoExtractor):
        MODULE_CLASS = Wrapped

        def _call_original_mod_with_args(self, module, first, second):
            return Pairs.forward(module, (first, second))

        def convert_to_nnef(self, g, module, inputs, params):
            return [g.add(inputs[0], inputs[1])]

    graph = ModelExport(Wrapped().eval(), (torch.randn(2, 3), torch.randn(2, 3))).lower(TRACT)
    assert graph.operations[-1].name == "add"


def test_ordered_args_reorders_the_inputs() -> None:
    """`ordered_args` returns the arguments with the input first; an override changes the order of `inputs`."""

    class Swapped(nn.Module):
        def forward(self, state: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return x - state

    class Own(ModuleInfoExtractor):
        MODULE_CLASS = Swapped

        def ordered_args(self, torch_graph):
            return sorted(torch_graph.inputs, key=lambda one: one.shape != (2, 3))

        def convert_to_nnef(self, g, module, inputs, params):
            return [g.sub(inputs[0], inputs[1])]

    graph = ModelExport(Swapped().eval(), {"state": torch.randn(1, 3), "x": torch.randn(2, 3)}).lower(TRACT)
    assert [graph.operations[-1].arguments[name].name for name in "xy"] == ["x", "state"]
    Own.ordered_args = lambda self, torch_graph: torch_graph.inputs[:1]
    with pytest.raises(LowerError, match="ordered_args returns other tensors"):
        ModelExport(Swapped().eval(), (torch.randn(1, 3), torch.randn(2, 3))).lower(TRACT)


def test_ordered_args_of_an_lstm_cell() -> None:
    """`LSTMCellExtractor.ordered_args` has the input first, then h and c."""
    state = (torch.randn(2, 4), torch.randn(2, 4))
    cell, x = nn.LSTMCell(3, 4).eval(), torch.randn(2, 3)
    (op,) = [one for one in ModelExport(cell, (x, state)).captured.graph.op_nodes if one.kind == "aten::lstm_cell"]
    ordered = ModuleInfoExtractor.get_by_kind("aten::lstm_cell").ordered_args(op)
    assert [one.shape for one in ordered[:3]] == [(2, 3), (2, 4), (2, 4)]


def test_subclassing_registers_and_the_later_one_acts() -> None:
    """Subclass it and set MODULE_CLASS; a second extractor of a class takes the place of the first, with a note."""
    with pytest.warns(ExtractorWarning, match="takes the place of LSTMExtractor, the extractor of LSTM"):
        mine = extractor_of(nn.LSTM)
    assert type(ModuleInfoExtractor.get_by_module(nn.LSTM(2, 3))) is mine
    mine.unregister()
    assert type(ModuleInfoExtractor.get_by_module(nn.LSTM(2, 3))) is LSTMExtractor


def test_module_class_is_none_on_the_base() -> None:
    """MODULE_CLASS is None on the base, and a class of modules on what it registers."""
    assert ModuleInfoExtractor.MODULE_CLASS is None
    with pytest.raises(RegistryError, match="is not a class of modules"):
        extractor_of(int)


def test_module_class_and_convert_to_nnef_are_enough(tmp_path: Path) -> None:
    """MODULE_CLASS and convert_to_nnef are all that a subclass needs."""
    extractor_of(Twice)
    result = ModelExport(nn.Sequential(Twice()).eval(), torch.randn(2, 3)).to(TRACT, tmp_path / "twice.nnef.tgz")
    assert result.assert_parity("exact").passed


def test_convert_to_nnef_is_the_method_to_override(tmp_path: Path) -> None:
    """convert_to_nnef is the method to override, with the arguments of torch-to-nnef by their names too."""
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
    """A body that returns no values, such as the names of fragments, is refused with what to write."""

    class Old(ModuleInfoExtractor):
        MODULE_CLASS = Twice

        def convert_to_nnef(self, g, node, name_to_tensor, **kwargs):
            return returned

    with pytest.raises(T2NError, match=r"not the values of its outputs(.|\n)*methods of g"):
        names(nn.Sequential(Twice()))


def test_rules_have_the_same_arguments() -> None:
    """convert_to_nnef is no different than the rule of an operator, which may have these arguments too."""
    rules = load_default().copy()
    rules.remove("aten::tanh")

    @op("aten::tanh", registry=rules)
    def tanh(g, node, name_to_tensor, torch_graph, inference_target, **kwargs):
        assert inference_target is TRACT
        return g.sigmoid(name_to_tensor[node.inputs[0].name])

    graph = ModelExport(nn.Tanh().eval(), torch.randn(2, 3), rules=rules).lower(TRACT)
    assert graph.operations[-1].name == "sigmoid"


def test_the_context_holds_the_target() -> None:
    """convert_to_nnef knows the target of the export."""

    class Asks(ModuleInfoExtractor):
        MODULE_CLASS = Twice

        def convert_to_nnef(self, g, module, inputs, params):
            return g.relu(inputs[0]) if get_context().target is TRACT else g.tanh(inputs[0])

    export = ModelExport(nn.Sequential(Twice()).eval(), torch.randn(2, 3))
    for target, name in ((TRACT, "relu"), (KhronosNNEF(check_io=False), "tanh")):
        assert export.lower(target).operations[-1].name == name


def test_generate_in_torch_graph_is_called_by_the_capture() -> None:
    """generate_in_torch_graph is called internally, in place of the module's forward."""
    called = []

    class Own(extractor_of(Twice)):  # type: ignore[misc]
        MODULE_CLASS = Twice

        def generate_in_torch_graph(self, call, *args, **kwargs):
            called.append(call.module)
            return super().generate_in_torch_graph(call, *args, **kwargs)

    names(nn.Sequential(Twice()))
    assert called


def test_get_by_kind() -> None:
    """get_by_kind is a class method that returns the extractor of a kind."""
    assert type(ModuleInfoExtractor.get_by_kind("aten::lstm_cell")) is LSTMCellExtractor
    with pytest.raises(RegistryError, match="no extractor has nodes of the kind aten::relu"):
        ModuleInfoExtractor.get_by_kind("aten::relu")


def test_get_by_module() -> None:
    """get_by_module is a class method that returns the extractor of a module, if there is one."""
    assert type(ModuleInfoExtractor.get_by_module(nn.LSTMCell(2, 3))) is LSTMCellExtractor
    assert ModuleInfoExtractor.get_by_module(nn.Linear(2, 3)) is None
