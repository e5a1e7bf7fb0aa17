"""What no stream has is refused at export, and what an engine alone refuses has the line of the model and a hint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import EngineOptimiseError, InputError, LowerError, UnsupportedOpsError
from t2n_core.export.result import ExportResult
from tests.nets import net_of
from tests.releases import NEWEST, OLDEST, on_each_line

VERSIONS = on_each_line(OLDEST, "0.21.19", NEWEST)
every_line = pytest.mark.parametrize("version", VERSIONS)


def export_of(model: nn.Module, axes: Any = None) -> ModelExport:
    torch.manual_seed(11)
    return ModelExport(model.eval(), torch.randn(2, 40, 3), input_names=["x"], dynamic_axes={"x": axes or {1: "T"}})


def exported(model: nn.Module, version: str, folder: Path, pulse: Any = 4, axes: Any = None) -> ExportResult:
    return export_of(model, axes).to(TractNNEF(version, pulse=pulse, check_io=False), folder / "model.nnef.tar")


def recurrent(kind: str, function: Callable[[Any], Any], **options: Any) -> nn.Module:
    rnn = getattr(nn, kind)(3, 4, batch_first=True, **options)
    return net_of(lambda self, x: function(self.rnn(x)), rnn=rnn)


LAST_STATE, ALL, BY_INDEX = "the state after the last step", "over all steps", "picking steps by their index"
MODELS: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "a flip": (lambda: net_of(lambda _, x: x.flip(1)), BY_INDEX),
    "a flip of two axes": (lambda: net_of(lambda _, x: x.flip(1, 2)), BY_INDEX),
    "a running sum from the end": (lambda: net_of(lambda _, x: x.flip(1).cumsum(1).flip(1)), BY_INDEX),
    "given steps": (lambda: net_of(lambda _, x: x[:, torch.tensor([0, 2])]), BY_INDEX),
    "windows": (lambda: net_of(lambda _, x: x.unfold(1, 4, 2).mean(-1)), BY_INDEX),
    "every second integer": (lambda: net_of(lambda _, x: (x > 0)[:, ::2]), "every 2-th step of a stream of bool"),
    "the state of an LSTM": (lambda: recurrent("LSTM", lambda result: result[1][0]), LAST_STATE),
    "outputs and state of an LSTM": (lambda: recurrent("LSTM", lambda result: (result[0], result[1][0])), LAST_STATE),
    "outputs and states of an LSTM": (lambda: recurrent("LSTM", lambda result: (result[0], *result[1])), LAST_STATE),
    "a state that is used": (lambda: recurrent("LSTM", lambda result: result[0] + result[1][1].mT.mean()), LAST_STATE),
    "the state of a GRU": (lambda: recurrent("GRU", lambda result: result), LAST_STATE),
    "the state of an RNN": (lambda: recurrent("RNN", lambda result: result), LAST_STATE),
    "both directions": (lambda: recurrent("GRU", lambda result: result[0], bidirectional=True), "from the last step"),
    "a mean": (lambda: net_of(lambda _, x: x - x.mean(1, True)), ALL),
    "a maximum": (lambda: net_of(lambda _, x: x.amax(1)), ALL),
    "a softmax": (lambda: net_of(lambda _, x: x.softmax(1)), ALL),
    "an instance norm": (lambda: net_of(lambda _, x: nn.functional.instance_norm(x.mT)), ALL),
    "a product over steps": (lambda: net_of(lambda _, x: x.mT @ x), "a product that sums over all steps"),
    "attention": (
        lambda: net_of(lambda _, x: nn.functional.scaled_dot_product_attention(x, x, x)),
        "a result of all pairs of steps",
    ),
}


@every_line
@pytest.mark.parametrize("name", MODELS)
def test_what_no_stream_has_is_refused(name: str, version: str, tmp_path: Path) -> None:
    make, reason = MODELS[name]
    with pytest.raises(UnsupportedOpsError, match=reason) as refused:
        exported(make(), version, tmp_path)
    assert "test_unstreamable.py" in str(refused.value)
    assert "hint: " in str(refused.value)
    assert not list(tmp_path.iterdir())


@every_line
def test_states_that_nobody_reads_are_no_reason(version: str, tmp_path: Path) -> None:
    exported(recurrent("LSTM", lambda result: result[0]), version, tmp_path).assert_parity("approximate")


@every_line
@pytest.mark.parametrize("axes", [{1: "T"}, {0: "B", 1: "T"}])
def test_other_axes_are_reduced_and_picked(axes: Any, version: str, tmp_path: Path) -> None:
    net = net_of(lambda _, x: (x.softmax(2) - x.sum((0, 2), True)) * x.sum(2, True))
    exported(net, version, tmp_path, {"T": 4}, axes).assert_parity("approximate")


ENGINE_ERRORS: dict[str, tuple[Callable[[Tensor], Tensor], str, str]] = {
    "a pulse that is no multiple": (lambda x: x[:, ::3] * 2, "requires pulse", "a pulse that is a multiple of 3"),
    "the first step": (lambda x: x[:, 0] * 2, "xis", "tract cannot run this pulse by pulse"),
    "the length": (lambda x: x * x.shape[1], "Undetermined symbol", "tract cannot run this pulse by pulse"),
    "two streams in a row": (lambda x: torch.cat([x, x * 2], 1), "", "tract cannot run this pulse by pulse"),
}


@every_line
@pytest.mark.parametrize("name", ENGINE_ERRORS)
def test_an_error_of_the_engine_has_the_line_of_the_model(name: str, version: str, tmp_path: Path) -> None:
    function, message, hint = ENGINE_ERRORS[name]
    outcome = exported(net_of(lambda _, x: function(x)), version, tmp_path).check_parity()
    assert outcome.status.value == "error"
    assert outcome.error is not None
    assert message in outcome.error.message
    assert hint in outcome.error.hint
    assert "test_unstreamable.py" in outcome.error.source


def test_so_has_one_of_a_stream_that_is_written(tmp_path: Path) -> None:
    target = TractNNEF(NEWEST, pulse=4, pulsed_archive=True, check_io=False)
    with pytest.raises(EngineOptimiseError, match="a pulse that is a multiple of 3"):
        export_of(net_of(lambda _, x: x[:, ::3] * 2)).to(target, tmp_path / "model.nnef.tar")


TWO = {0: "B", 1: "T"}


@every_line
def test_one_of_two_axes_is_streamed(version: str, tmp_path: Path) -> None:
    net = net_of(
        lambda self, x: self.conv(self.linear(x).mT)[:, :, 3:], linear=nn.Linear(3, 5), conv=nn.Conv1d(5, 4, 3)
    )
    outcome = exported(net, version, tmp_path, {"T": 1}, TWO).assert_parity("approximate")
    assert outcome.sizes == ({"B": 2, "T": 8},)


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_a_recurrent_net_with_a_free_batch(version: str, tmp_path: Path) -> None:
    exported(recurrent("LSTM", lambda result: result[0][:, 3:]), version, tmp_path, {"T": 1}, TWO).assert_parity(
        "approximate"
    )


@pytest.mark.parametrize("name", ["a flip", "the state of an LSTM", "a mean"])
def test_refusals_know_the_streamed_one_of_two_axes(name: str, tmp_path: Path) -> None:
    make, reason = MODELS[name]
    with pytest.raises(UnsupportedOpsError, match=reason):
        exported(make(), NEWEST, tmp_path, {"T": 4}, TWO)
    with pytest.raises(UnsupportedOpsError, match="no last step to count from"):
        exported(net_of(lambda _, x: x[:, -3:]), NEWEST, tmp_path, {"T": 4}, TWO)
    with pytest.raises(UnsupportedOpsError, match="is not possible in a stream"):
        exported(
            net_of(lambda _, x: x[:, : x.shape[1] // 4 * 4].reshape(x.shape[0], -1, 12)),
            "0.22.4",
            tmp_path,
            {"T": 4},
            TWO,
        )
    with pytest.raises(LowerError, match="needs an axis whose size is one symbol"):
        exported(net_of(lambda _, x: x), NEWEST, tmp_path, {"T": 4}, {0: "B", 1: 2 * torch.export.Dim("T")})


def test_an_axis_that_is_not_named_is_asked_for(tmp_path: Path) -> None:
    result = exported(net_of(lambda _, x: x * 2), NEWEST, tmp_path, 4, TWO)
    with pytest.raises(InputError, match="which dynamic axis is streamed") as error:
        result.check_streaming(4)
    assert "pulse={'B': 4}" in str(error.value)
    with pytest.raises(LowerError, match="pulse= names the dynamic axis X; this model has B, T"):
        exported(net_of(lambda _, x: x * 2), NEWEST, tmp_path, {"X": 4}, TWO)


@pytest.mark.parametrize("pulse", [{}, {"T": 0}, {"B": 1, "T": 2}, {"T": "4"}])
def test_what_is_no_pulse(pulse: Any) -> None:
    with pytest.raises(InputError, match="pulse="):
        TractNNEF(NEWEST, pulse=pulse)
