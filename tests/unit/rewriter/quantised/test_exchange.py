"""A quantised model while it holds integers, and afterwards."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.ao.quantization as ao
from torch import nn
from torch.ao.quantization import quantize_fx as fx

from t2n_core import ModelExport
from t2n_core.errors import CaptureError, InputError
from t2n_core.rewriter.quantised.exchange import integer_weights
from tests.nets import net_of


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = ao.QuantStub(), ao.DeQuantStub()
        self.conv, self.fc = nn.Conv2d(3, 4, 3), nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> Any:
        return self.dequant(self.fc(self.conv(self.quant(x)).mean([2, 3])))


def quantised() -> nn.Module:
    model = Net().eval()
    model.qconfig = ao.get_default_qconfig("x86")  # type: ignore[assignment]
    prepared = ao.prepare(model)
    prepared(torch.randn(2, 3, 6, 6))
    quantised_model: nn.Module = ao.convert(prepared)
    return quantised_model


def state_of(model: nn.Module) -> Any:
    """Return the parts of a model that an exchange touches, in their order."""
    states = [(name, list(vars(m)), list(m._buffers.items()), dict(vars(m))) for name, m in model.named_modules()]
    return states, list(model.state_dict())


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_the_model_is_as_it_was(capture: Any) -> None:
    model, x = quantised(), torch.randn(2, 3, 6, 6)
    before, expected = state_of(model), model(x)
    export = ModelExport(model, x, capture=capture)
    assert [op.kind for op in export.captured.graph.op_nodes].count("t2n_numbers::dequantised") == 2
    after = state_of(model)
    for old, new in zip(before[0], after[0], strict=True):
        assert old[:2] == new[:2]
        assert [(n, id(b)) for n, b in old[2]] == [(n, id(b)) for n, b in new[2]]
        assert all(new[3][name] is value for name, value in old[3].items())
    assert before[1] == after[1]
    assert torch.equal(model(x), expected)


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_weights_have_the_names_of_their_layers(capture: Any) -> None:
    graph = ModelExport(quantised(), torch.randn(2, 3, 6, 6), capture=capture).captured.graph
    dtypes = {w.label: w.data.dtype for w in graph.weights if w.data is not None and w.label.endswith("weight")}
    assert dtypes == {"conv.weight": torch.int8, "fc.weight": torch.int8}


def test_names_of_recurrent_weights_are_those_of_the_float_model() -> None:
    net = net_of(
        lambda self, tokens: self.cell(self.net(self.words(tokens))[0][0]),
        words=nn.Embedding(7, 4),
        net=nn.LSTM(4, 3, 2, bidirectional=True),
        cell=nn.GRUCell(6, 3),
    )
    model = net.eval()
    floats = {name for name in model.state_dict() if "weight" in name}
    model.words.qconfig = ao.float_qparams_weight_only_qconfig  # type: ignore[assignment]
    model = ao.quantize_dynamic(ao.convert(ao.prepare(model)), {nn.LSTM, nn.GRUCell})
    with integer_weights(model) as exchange:
        assert exchange is not None
        assert {label for label in exchange.labels.values() if "weight" in label} == floats


def test_a_graph_of_fx() -> None:
    functions = net_of(
        lambda self, x: nn.functional.linear(x, self.weight) + 1.0, weight=nn.Parameter(torch.randn(3, 4))
    )
    prepared = fx.prepare_fx(functions.eval(), ao.get_default_qconfig_mapping("x86"), (torch.randn(2, 4),))
    prepared(torch.randn(2, 4))
    model, x = fx.convert_fx(prepared), torch.randn(2, 4)
    with integer_weights(model) as exchange:
        assert exchange is not None
        assert "_packed_weight_0.weight" in exchange.labels.values()
        with exchange.running():
            ours = model(x)
    assert torch.equal(ours, model(x))


def test_a_float_model_is_left_alone() -> None:
    with integer_weights(Net()) as exchange:
        assert exchange is None


def test_quantised_inputs_and_outputs_are_refused() -> None:
    model = quantised()
    model.dequant = nn.Identity()
    with pytest.raises(CaptureError, match=r"returns a quantised tensor \(the result\)") as wrong:
        _ = ModelExport(model, torch.randn(2, 3, 6, 6)).captured
    assert "DeQuantStub" in str(wrong.value)
    with pytest.raises(InputError, match="`x` of Net is a quantised tensor"):
        ModelExport(model, torch.quantize_per_tensor(torch.randn(2, 3, 6, 6), 0.1, 0, torch.quint8))


@pytest.mark.parametrize("make", [torch.jit.script, lambda model: torch.jit.trace(model, torch.randn(2, 4))])
def test_quantised_layers_in_torchscript_are_refused(make: Any) -> None:
    model = nn.Sequential(ao.QuantStub(), nn.Linear(4, 3), ao.DeQuantStub()).eval()
    model.qconfig = ao.get_default_qconfig("x86")  # type: ignore[assignment]
    prepared = ao.prepare(model)
    prepared(torch.randn(2, 4))
    with pytest.raises(CaptureError, match="cannot be exported from TorchScript") as wrong:
        _ = ModelExport(make(ao.convert(prepared)), torch.randn(2, 4)).captured
    assert "pass the module" in str(wrong.value)


def test_a_layer_that_holds_a_quantised_tensor_is_refused() -> None:
    """PyTorch's kernel of PReLU is many steps off what its slopes say."""
    model = nn.Sequential(torch.ao.nn.quantized.PReLU(0.05, 100))
    with pytest.raises(CaptureError, match=r"PReLU holds a quantised tensor, `0\.weight`"), integer_weights(model):
        pass


def test_a_free_time_axis_of_a_recurrent_layer_is_refused() -> None:
    model = ao.quantize_dynamic(nn.Sequential(nn.LSTM(4, 3)), {nn.LSTM})
    with pytest.raises(CaptureError, match="time axis of a dynamic quantised LSTM"):
        _ = ModelExport(model, torch.randn(5, 2, 4), dynamic_axes={"input": {0: "T"}}).captured


def test_without_builtin_rewriters_it_is_refused() -> None:
    with pytest.raises(CaptureError):
        _ = ModelExport(quantised(), torch.randn(2, 3, 6, 6), builtin_rewriters=False).captured
