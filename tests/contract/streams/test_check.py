"""Streams in real engines: the pulsed archive against PyTorch on the whole sequence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.export import Dim

from t2n_core.check.bisect import find_first_wrong_node
from t2n_core.check.exported.streaming import LONGER_PULSE
from t2n_core.errors import InputError, LowerError, PiecesError
from t2n_core.export.model import ModelExport
from t2n_core.export.result import ExportResult
from t2n_core.inference_target import KhronosNNEF, TractNNEF
from t2n_core.parity.outcome import Outcome
from tests.nets import net_of
from tests.releases import LINES, NEWEST


def strided() -> nn.Module:
    return nn.Sequential(nn.Conv1d(3, 5, 4), nn.ReLU(), nn.Conv1d(5, 2, 3, stride=2), nn.Sigmoid())


MODELS = {
    "causal": lambda: nn.Sequential(nn.ConstantPad1d((3, 0), 0.0), nn.Conv1d(3, 5, 4), nn.Tanh()),
    "centred": lambda: nn.Conv1d(3, 5, 3, padding=1),
    "strided": strided,
}


def exported(model: nn.Module, target: TractNNEF, folder: Path, steps: int = 33) -> ExportResult:
    torch.manual_seed(11)
    export = ModelExport(model.eval(), {"input": torch.randn(1, 3, steps)}, dynamic_axes={"input": {2: "S"}})
    return export.to(target, folder / "model.nnef.tar")


def streamed(name: str, version: str, folder: Path, pulse: int) -> Outcome:
    torch.manual_seed(11)
    return exported(MODELS[name](), TractNNEF(version, pulse=pulse), folder).check_parity("approximate")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("version", LINES)
def test_a_stream_gives_the_numbers_of_the_whole(version, name, tmp_path):
    outcome = streamed(name, version, tmp_path, 4)
    assert outcome.passed, outcome.describe()
    assert (outcome.facts["pulse"], outcome.facts[LONGER_PULSE]) == (4, 8)
    assert outcome.sizes == ({"S": 32},), "the stream was checked last, in whole pulses"


def recurrent(kind: str) -> nn.Module:
    return net_of(
        lambda self, input: self.rnn(input.transpose(1, 2))[0],
        rnn=getattr(nn, kind)(3, 4, num_layers=2, batch_first=True),
    )


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("version", LINES)
def test_recurrent_nets_stream(version, kind, tmp_path):
    torch.manual_seed(13)
    outcome = exported(recurrent(kind), TractNNEF(version, pulse=4), tmp_path).assert_parity("approximate")
    assert outcome.sizes == ({"S": 32},)


@pytest.mark.parametrize(("spoilt", "error"), [(4, "ParityError"), (8, "PiecesError")])
def test_a_stream_that_depends_on_its_pulse_is_a_mismatch_of_its_own(spoilt, error, tmp_path, monkeypatch):
    result = exported(MODELS["causal"](), TractNNEF(NEWEST, pulse=4), tmp_path)
    plain = type(result.target.engine()).run

    def spoils(self, archive, batches, **options):
        reply = plain(self, archive, batches, **options)
        spoil = options.get("pulse", ("", 0))[1] == spoilt
        return replace(reply, outputs=tuple((outputs[0] * 1.01,) for outputs in reply.outputs)) if spoil else reply

    monkeypatch.setattr(type(result.target.engine()), "run", spoils)
    outcome = result.check_parity("approximate")
    assert outcome.error is not None
    assert outcome.error.error_class == error
    if error == "PiecesError":
        with pytest.raises(PiecesError, match="a stream in pulses of 8 gives other outputs than the whole: output"):
            outcome.raise_for_failure()
        with pytest.raises(InputError, match="nodes cannot be searched"):
            find_first_wrong_node(result)


def with_two_axes(model: nn.Module, target: TractNNEF, folder: Path) -> ExportResult:
    torch.manual_seed(11)
    export = ModelExport(model, {"input": torch.randn(2, 3, 33)}, dynamic_axes={"input": {0: "B", 2: "S"}})
    return export.to(target, folder / "model.nnef.tar")


@pytest.mark.parametrize(("pulse", "later"), [(1, "2 steps"), (2, "1 step")])
def test_a_delay_that_tract_states_too_small(pulse, later, tmp_path):
    """Where the streamed one of two dynamic axes is not known at export, a slice begins at the length of the pulse."""
    result = with_two_axes(net_of(lambda self, input: input[:, :, 3:] * 2.0), TractNNEF(NEWEST, pulse=1), tmp_path)
    outcome = result.check_streaming(pulse, "approximate", symbol="S")
    assert outcome.error is not None
    assert outcome.error.message == f"the stream is right {later} later than tract states: output"
    assert "a pulse of 3 or more" in outcome.error.hint
    assert result.check_streaming(3, "approximate", symbol="S").passed


def test_other_numbers_in_the_stream_are_a_mismatch(tmp_path, monkeypatch):
    result = exported(MODELS["causal"](), TractNNEF("0.21.19"), tmp_path)
    engine = result.target.engine()
    plain = type(engine).run

    def late(self, archive, batches, **options):
        reply = plain(self, archive, batches, **options)
        if options.get("pulse"):  # one step too late
            reply = type(reply)("ok", "run", outputs=tuple(tuple(y[..., 1:] for y in b) for b in reply.outputs))
        return reply

    monkeypatch.setattr(type(engine), "run", late)
    result.assert_parity()
    assert result.check_streaming(4).status.value == "mismatch"


class Whole(nn.Module):
    """Looks at all steps at once."""

    def __init__(self, function: str) -> None:
        super().__init__()
        self.function = function

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return input.softmax(2) if self.function == "softmax" else input.flip(2)


def test_a_softmax_over_time_is_computed_pulse_by_pulse_and_caught(tmp_path):
    outcome = exported(Whole("softmax"), TractNNEF("0.21.19"), tmp_path).check_streaming(4)
    assert outcome.status.value == "mismatch"


def test_the_guard_of_what_cannot_be_streamed_finds_no_size(tmp_path):
    result = with_two_axes(Whole("softmax"), TractNNEF(NEWEST), tmp_path)
    outcome = result.check_streaming(4, symbol="S")
    assert (outcome.status.value, outcome.stage.value) == ("error", "run")
    assert outcome.error is not None
    assert outcome.error.message.startswith("Undetermined symbol")


def test_what_the_engine_cannot_stream_is_its_error(tmp_path):
    outcome = exported(Whole("flip"), TractNNEF("0.21.19"), tmp_path).check_streaming(4)
    assert (outcome.status.value, outcome.stage.value) in {("error", "optimise"), ("crash", "optimise")}
    assert outcome.error is not None
    assert "ulse" in outcome.error.message


def test_a_bad_pulse_is_refused(tmp_path):
    with pytest.raises(InputError, match="one step or more"):
        TractNNEF(NEWEST, pulse=0)
    fixed = ModelExport(nn.Tanh().eval(), torch.randn(2, 3)).to(TractNNEF(NEWEST), tmp_path / "a.tar")
    with pytest.raises(InputError, match="which dynamic axis is streamed"):
        fixed.check_streaming(4)
    khronos = ModelExport(nn.Tanh().eval(), torch.randn(2, 3)).to(KhronosNNEF(), tmp_path / "b.tar")
    with pytest.raises(InputError, match="has no streams"):
        khronos.check_streaming(4)


@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
@pytest.mark.parametrize(("kernel", "dilation", "pulse"), [(3, 16, 4), (9, 1, 1), (5, 2, 1), (3, 300, 2)])
def test_a_receptive_field_of_more_than_eight_pulses(kernel, dilation, pulse, version, tmp_path):
    net = nn.Conv1d(3, 2, kernel, dilation=dilation)
    steps = 3 + (kernel - 1) * dilation
    outcome = exported(net, TractNNEF(version, pulse=pulse), tmp_path, steps).check_parity("approximate")
    assert outcome.passed, outcome.describe()
    assert outcome.sizes[0]["S"] > (kernel - 1) * dilation


@pytest.mark.parametrize("version", LINES)
def test_an_axis_that_is_a_multiple_is_refused(version, tmp_path):
    """tract counts a pulse in symbols, of which a step of the axis is a part."""
    export = ModelExport(
        net_of(lambda self, x: x * 2).eval(), {"x": torch.randn(1, 16, 3)}, dynamic_axes={"x": {1: 2 * Dim("U")}}
    )
    with pytest.raises(
        LowerError, match=r"x has the shape \[1, 2\*U, 3\]: pulse= needs an axis whose size is one symbol"
    ):
        export.to(TractNNEF(version, pulse=2, check_io=False), tmp_path / "model.nnef.tar")
    assert not list(tmp_path.iterdir())
    result = export.to(TractNNEF(version, check_io=False), tmp_path / "model.nnef.tar")
    with pytest.raises(InputError, match=r"axis 1 of x has the size 2\*U: pulse= needs an axis whose size is one"):
        result.check_streaming(2)
