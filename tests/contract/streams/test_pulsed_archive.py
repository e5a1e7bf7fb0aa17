"""Streams as archives of their own: what the engine writes of them, loaded again and run pulse by pulse."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pytest_t2n.cli.exports.export import _prove
from t2n_core import export_model_to_nnef
from t2n_core.check.exported.pulsed import PulsedArchive, pulsed_path
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.errors import EngineLoadError, EngineOptimiseError, InputError, ParityError, UnsupportedOpsError
from t2n_core.export.model import ModelExport
from t2n_core.export.result import ExportResult
from t2n_core.inference_target import KhronosNNEF, TractNNEF
from tests.nets import net_of
from tests.releases import NEWEST

LINES = ["0.21.19", "0.22.4", NEWEST]
every_line = pytest.mark.parametrize("version", LINES)


class Spectrum(nn.Module):
    """The power of a short-time Fourier transform, as a convolution with fixed filters."""

    def __init__(self, size: int = 16, hop: int = 8) -> None:
        super().__init__()
        self.hop, self.bins = hop, size // 2 + 1
        angles = 2 * math.pi / size * torch.arange(self.bins)[:, None] * torch.arange(size)
        filters = torch.cat([angles.cos(), angles.sin()]) * torch.hann_window(size)
        self.register_buffer("filters", filters[:, None])

    def forward(self, input: Tensor) -> Tensor:
        waves = F.conv1d(input[:, :1], self.filters, stride=self.hop)
        return waves[:, : self.bins] ** 2 + waves[:, self.bins :] ** 2


def causal() -> nn.Module:
    first = nn.ConstantPad1d((3, 0), 0.0), nn.Conv1d(3, 5, 4), nn.Tanh()
    return nn.Sequential(*first, nn.ConstantPad1d((4, 0), 0.0), nn.Conv1d(5, 4, 3, dilation=2))


def recurrent(kind: type[nn.RNNBase]) -> nn.Module:
    return net_of(lambda self, input: self.rnn(input.mT)[0], rnn=kind(3, 4, num_layers=2, batch_first=True))


def stft(input: Tensor, center: bool) -> Tensor:
    window = torch.hann_window(16)
    return torch.view_as_real(torch.stft(input[:, 0], 16, 8, window=window, center=center, return_complex=True))


MODELS: dict[str, Any] = {
    "causal": (causal, 0),
    "strided": (lambda: nn.Sequential(nn.Conv1d(3, 5, 4), nn.ReLU(), nn.Conv1d(5, 2, 3, stride=2)), 2),
    "centred": (lambda: nn.Conv1d(3, 5, 3, padding=1), 1),
    "gru": (lambda: recurrent(nn.GRU), 0),
    "lstm": (lambda: recurrent(nn.LSTM), 0),
    "spectrum": (Spectrum, 1),
    "stft": (lambda: net_of(lambda self, input: stft(input, False)), 1),
    "residual": (
        lambda: net_of(lambda self, input: input + self.conv(F.pad(input, (2, 0))), conv=nn.Conv1d(3, 3, 3)),
        0,
    ),
    "largest": (lambda: nn.MaxPool1d(2), 0),
    "average": (lambda: nn.AvgPool1d(4, 2), 1),
    "norm": (lambda: net_of(lambda self, input: self.norm(input.mT).softmax(-1), norm=nn.LayerNorm(3)), 0),
    "a difference of neighbours": (lambda: net_of(lambda self, input: input[:, :, 1:] - input[:, :, :-1]), 1),
    "every second step": (lambda: net_of(lambda self, input: input[:, :, ::2] * 2), 0),
    "running": (lambda: net_of(lambda self, input: input.cumsum(2) - input.cummax(2)[0] + input.logcumsumexp(2)), 0),
    "running, late": (lambda: net_of(lambda self, input: self.conv(input).cumsum(2), conv=nn.Conv1d(3, 2, 4)), 3),
}
"""Nets, with the steps of the output by which pulses of 8 are late."""


def exported(model: nn.Module, target: TractNNEF, path: Path, **options: Any) -> ExportResult:
    torch.manual_seed(11)
    export = ModelExport(model.eval(), {"input": torch.randn(1, 3, 33)}, dynamic_axes={"input": {2: "S"}}, **options)
    return export.to(target, path)


def run_steps(engine: TractEngine, pulsed: PulsedArchive, signal: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return what a program with no other knowledge than the statement computes of a signal."""
    size, axis, late = pulsed.stream.size, pulsed.stream.input_axes[0], pulsed.stream.delays[0]
    steps = np.split(signal, signal.shape[axis] // size, axis)
    reply = engine.run(pulsed.archive, [[step] for step in steps], one_state=True)
    assert reply.status == "ok", reply.message
    output = np.concatenate([outputs[0] for outputs in reply.outputs], pulsed.stream.output_axes[0])
    return np.take(output, range(late, output.shape[pulsed.stream.output_axes[0]]), pulsed.stream.output_axes[0])


@every_line
@pytest.mark.parametrize("name", MODELS)
def test_pulsed_archive(version, name, tmp_path):
    torch.manual_seed(11)
    make, late = MODELS[name]
    model = make().eval()
    target = TractNNEF(version, pulse=8, pulsed_archive=True)
    result = exported(model, target, tmp_path / "model.nnef.tgz")
    pulsed = result.pulsed
    assert pulsed is not None
    assert pulsed.archive == tmp_path / "model.pulsed.nnef.tgz"
    assert (pulsed.symbol, pulsed.stream.size, list(pulsed.stream.delays)) == ("S", 8, [late])
    assert pulsed.describe() in result.notes
    assert result.check_parity("approximate").passed, "the archive of the whole sequence is as without the option"

    signal = torch.randn(1, 3, 120)
    got = run_steps(TractEngine(target.resolved), pulsed, signal.numpy())
    with torch.no_grad():
        expected = model(signal).numpy()
    steps = min(got.shape[axis := pulsed.stream.output_axes[0]], expected.shape[axis])
    assert steps >= expected.shape[axis] - 2
    first, second = (np.take(array, range(steps), axis) for array in (got, expected))
    np.testing.assert_allclose(first, second, atol=1e-4, rtol=1e-5)


@every_line
def test_a_running_sum_of_a_stream_does_not_drift(version, tmp_path):
    model = net_of(lambda self, input: input.cumsum(2))
    target = TractNNEF(version, pulse=8, pulsed_archive=True)
    pulsed = exported(model, target, tmp_path / "model.tar").pulsed
    assert pulsed is not None
    signal = torch.full((1, 3, 16_000), 0.1)
    np.testing.assert_allclose(
        run_steps(TractEngine(target.resolved), pulsed, signal.numpy()), signal.cumsum(2).numpy(), rtol=2e-7
    )


@every_line
def test_upsampling_is_streamed_from_0_23_on(version, tmp_path):
    model = net_of(lambda self, input: F.interpolate(input, scale_factor=2.0))
    target = TractNNEF(version, pulse=8, pulsed_archive=True)
    if version == LINES[-1]:
        pulsed = exported(model, target, tmp_path / "model.tar").pulsed
        assert pulsed is not None
        assert pulsed.archive == tmp_path / "model.pulsed.tar"
        assert pulsed.outcome.passed
    else:
        with pytest.raises(EngineOptimiseError, match="in: Translating node"):
            exported(model, target, tmp_path / "model.tar")
        assert not list(tmp_path.iterdir()), "nothing is left"


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "transposed": (lambda: nn.ConvTranspose1d(3, 4, 4, stride=2), EngineOptimiseError, "No serializer found"),
    "reflected": (lambda: net_of(lambda self, input: stft(input, True)), EngineOptimiseError, "Reflect padding"),
    "mean": (lambda: net_of(lambda self, input: input - input.mean(2, True)), UnsupportedOpsError, "over all steps"),
    "flip": (lambda: net_of(lambda self, input: input.flip(2)), UnsupportedOpsError, "picking steps by their index"),
    "softmax": (lambda: net_of(lambda self, input: input.softmax(2)), UnsupportedOpsError, "over all steps"),
    "the first step": (lambda: net_of(lambda self, input: input - input[:, :, :1]), ParityError, "output"),
    "both directions": (
        lambda: net_of(
            lambda self, input: self.rnn(input.mT)[0], rnn=nn.GRU(3, 4, bidirectional=True, batch_first=True)
        ),
        UnsupportedOpsError,
        "from the last step to the first",
    ),
}


@every_line
@pytest.mark.parametrize("name", REFUSED)
def test_what_no_release_streams_leaves_nothing(version, name, tmp_path):
    make, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        exported(make(), TractNNEF(version, pulse=8, pulsed_archive=True), tmp_path / "model.nnef.tgz")
    assert not list(tmp_path.iterdir())


def test_by_hand_with_several_outputs_and_a_folder(tmp_path):
    both = net_of(lambda self, input: (self.conv(input).relu(), self.strided(input)), conv=nn.Conv1d(3, 5, 4),
                  strided=nn.Conv1d(3, 2, 2, stride=2))  # fmt: skip
    result = exported(both, TractNNEF(NEWEST), tmp_path / "model", output_names=["near", "half"])
    assert result.pulsed is None
    pulsed = result.write_pulsed(tmp_path / "stream", 4)
    assert (pulsed.archive / "graph.nnef").is_file()
    assert list(pulsed.stream.delays) == [3, 0]
    assert pulsed.outcome.passed
    assert pulsed.outcome.facts["pulse"] == 4
    assert pulsed.describe() == (
        "stream takes 4 steps of S at a time: axis 2 of `input`; "
        "`near` is 3 steps late along axis 2, `half` is 0 steps late along axis 2"
    )


@pytest.mark.parametrize("fault", ["delay", "state"])
def test_the_proof_reads_the_written_archive(fault, tmp_path, monkeypatch):
    """A wrong delay, or pulses that each run in a new State, are found."""
    result = exported(causal(), TractNNEF("0.21.19"), tmp_path / "model.tar")
    plain, write = TractEngine.run, TractEngine.write

    def wrong_delay(self, *arguments, **options):
        reply = write(self, *arguments, **options)
        return replace(reply, facts={**reply.facts, "stream": {**reply.facts["stream"], "delays": [1]}})

    def new_states(self, archive, batches, *, one_state=False, **options):
        return plain(self, archive, batches, **options)

    monkeypatch.setattr(TractEngine, *(("write", wrong_delay) if fault == "delay" else ("run", new_states)))
    with pytest.raises(ParityError):
        result.write_pulsed(tmp_path / "stream.tar", 4)
    assert [path.name for path in tmp_path.iterdir()] == ["model.tar"]


def test_what_has_no_stream_is_refused(tmp_path):
    with pytest.raises(InputError, match="pulsed_archive=True needs pulse="):
        exported(causal(), TractNNEF(NEWEST, pulsed_archive=True), tmp_path / "model.tar")
    assert not list(tmp_path.iterdir())
    result = exported(causal(), TractNNEF(NEWEST), tmp_path / "model.tar")
    with pytest.raises(InputError, match="the archive itself"):
        result.write_pulsed(tmp_path / "model.tar", 4)
    fixed = ModelExport(nn.Tanh().eval(), torch.randn(2, 3)).to(KhronosNNEF(), tmp_path / "b.tar")
    with pytest.raises(InputError, match="has no streams"):
        fixed.write_pulsed(tmp_path / "c.tar", 4)


def test_an_engine_without_the_operators_of_streams_is_respected(tmp_path):
    few = TractNNEF(NEWEST, pulse=8, pulsed_archive=True, registries=[])
    with pytest.raises(InputError, match="needs tract_pulse, which the target's `registries` exclude"):
        exported(causal(), few, tmp_path / "model.tar")
    assert not list(tmp_path.iterdir())
    assert exported(recurrent(nn.GRU), few, tmp_path / "model.tar").pulsed is not None, "only the state is kept"


def test_what_the_engine_writes_and_cannot_read_is_found(tmp_path):
    """It writes 4-bit weights of a convolution in a shape that it refuses."""
    torch.manual_seed(11)
    export = ModelExport(nn.Conv1d(32, 64, 3).eval(), torch.randn(1, 32, 40), dynamic_axes={"input": {2: "S"}})
    with pytest.raises(EngineLoadError, match="block_len"):
        export.to(TractNNEF(NEWEST, pulse=8, pulsed_archive=True, weights="q4_0"), tmp_path / "model.tar")
    assert not list(tmp_path.iterdir())


def test_a_failed_check_leaves_neither(tmp_path, monkeypatch):
    options = {"pulse": 8, "pulsed_archive": True}
    path, args = tmp_path / "model.tar", {"input": torch.randn(1, 3, 33)}
    result = export_model_to_nnef(
        causal().eval(), args, path, TractNNEF(NEWEST, dynamic_axes={"input": {2: "S"}}), **options
    )
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model.pulsed.tar", "model.tar"]
    monkeypatch.setattr(ExportResult, "assert_parity", lambda self: (_ for _ in ()).throw(ParityError("wrong")))
    with pytest.raises(ParityError, match="wrong"):
        _prove(result)
    assert not list(tmp_path.iterdir())


def test_the_pulsed_archive_of_an_earlier_export_does_not_stay(tmp_path):
    path = tmp_path / "model.tar"
    pulsed_path(path).write_bytes(b"of an earlier export")
    make, error, _ = REFUSED["transposed"]
    with pytest.raises(error):
        exported(make(), TractNNEF(NEWEST, pulse=8, pulsed_archive=True), path)
    assert not list(tmp_path.iterdir())
