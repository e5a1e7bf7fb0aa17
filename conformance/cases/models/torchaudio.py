"""Architectures of torchaudio: recognition, separation, enhancement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torchaudio
import torchaudio.models as ta
from torch import nn

from conformance.cases.models.case import Inputs, ModelCase, image


class WithLengths(nn.Module):
    """A model that takes the lengths of its sequences, which an exported graph must know."""

    def __init__(self, model: nn.Module, lengths: Sequence[int]) -> None:
        super().__init__()
        self.model, self.lengths = model, list(lengths)

    def forward(self, input: torch.Tensor) -> Any:
        return self.model(input, torch.tensor(self.lengths))


def _wave(*shape: int, name: str = "waveforms") -> Inputs:
    return {name: 0.3 * torch.randn(shape)}


def _wav2vec2(mode: str, norm_first: bool) -> nn.Module:
    return ta.wav2vec2_model(
        mode, [(16, 10, 5), (16, 3, 2), (24, 3, 2)], mode == "layer_norm", 32, 0.0, 16, 4, 2, 4, 0.0, 48, 0.0, 0.0,
        norm_first, 0.0, 11,
    )  # fmt: skip


def _wavlm() -> nn.Module:
    return ta.wavlm_model(
        "group_norm", [(16, 10, 5), (16, 3, 2), (24, 3, 2)], False, 32, 0.0, 16, 4, 2, 4, 32, 64, 0.0, 48, 0.0, 0.0,
        False, 0.0, 11,
    )  # fmt: skip


def _wav2letter() -> nn.Module:
    """Return the net with weights by which rectifiers do not shrink activations: there are twelve, and no norms."""
    model = ta.Wav2Letter(9, "mfcc", 13)
    for module in model.modules():
        if isinstance(module, nn.Conv1d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
    return model


def _squim_objective() -> nn.Module:
    """Return the net with an encoder and heads whose activations are large compared with the biases after them."""
    model = ta.squim_objective_model(16, 8, 16, 2, 8, 1, "LSTM", 20, 10)
    model.encoder.conv1d.weight.data *= 30
    for layer in model.branches.modules():
        if isinstance(layer, nn.Sequential) and isinstance(layer[0], nn.Linear):
            for linear in (module for module in layer if isinstance(module, nn.Linear)):
                linear.weight.data *= 3
    return model


CASES = {
    "conformer": ModelCase(
        lambda: WithLengths(ta.Conformer(16, 4, 24, 2, 5), [17, 11]), image(2, 17, 16, name="input")
    ),
    "wav2letter": ModelCase(_wav2letter, image(2, 13, 40), {"x": {0: "B"}}),
    "deepspeech": ModelCase(lambda: ta.DeepSpeech(20, 24, 9), image(2, 1, 13, 20), {"x": {0: "B", 2: "T"}}),
    "conv_tasnet": ModelCase(
        lambda: ta.ConvTasNet(2, 8, 16, 3, 12, 16, 3, 2), lambda: _wave(2, 1, 200, name="input"), {"input": {0: "B"}}
    ),
    "wav2vec2": ModelCase(lambda: _wav2vec2("group_norm", False), lambda: _wave(2, 800), {"waveforms": {0: "B"}}),
    "wav2vec2_layer_norm": ModelCase(
        lambda: _wav2vec2("layer_norm", True), lambda: _wave(2, 800), {"waveforms": {0: "B", 1: "T"}}
    ),
    "wavlm": ModelCase(_wavlm, lambda: _wave(2, 800), {"waveforms": {0: "B"}}),
    "emformer": ModelCase(
        lambda: WithLengths(ta.Emformer(16, 4, 24, 2, 4, left_context_length=4, right_context_length=2), [16, 12]),
        image(2, 18, 16, name="input"),
    ),
    "hdemucs": ModelCase(
        lambda: ta.HDemucs(["voice", "rest"], channels=8, depth=3, nfft=256), lambda: _wave(1, 2, 2048, name="input")
    ),
    "mel_spectrogram": ModelCase(
        lambda: torchaudio.transforms.MelSpectrogram(16000, 128, hop_length=50, n_mels=20),
        lambda: _wave(2, 900, name="waveform"),
        {"waveform": {1: "T"}},
    ),
    "mfcc": ModelCase(
        lambda: torchaudio.transforms.MFCC(16000, 12, melkwargs={"n_fft": 128, "hop_length": 50, "n_mels": 20}),
        lambda: _wave(2, 900, name="waveform"),
    ),
    "squim_objective": ModelCase(_squim_objective, lambda: _wave(1, 400, name="x")),
    "wavernn": ModelCase(
        lambda: ta.WaveRNN(
            [3, 2], 8, 6, n_res_block=2, n_rnn=16, n_fc=16, kernel_size=3, n_freq=10, n_hidden=12, n_output=8
        ),
        lambda: {"waveform": torch.randn(2, 1, 24), "specgram": torch.randn(2, 1, 10, 6)},
    ),
}
