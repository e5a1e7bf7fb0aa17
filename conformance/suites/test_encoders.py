"""Suite `encoders`: a real speech encoder and a transformer encoder, with a dynamic time axis."""

from __future__ import annotations

import pytest
import torch
from torch import nn


class SpeechEncoder(nn.Module):
    """Spectrogram frames to log-probabilities: convolutional front end, bidirectional GRU stack, linear, log-softmax.

    `features` is [batch, time, mel bands]; the front end divides time by 4.
    """

    def __init__(self, bands: int = 40, width: int = 48, labels: int = 29, layers: int = 3) -> None:
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(bands, width, 5, stride=2, padding=2),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Conv1d(width, width, 5, stride=2, padding=2),
            nn.BatchNorm1d(width),
            nn.ReLU(),
        )
        self.rnn = nn.GRU(width, width, num_layers=layers, bidirectional=True, batch_first=True, dropout=0.1)
        self.norm = nn.LayerNorm(2 * width)
        self.out = nn.Linear(2 * width, labels)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        frames = self.front(features.transpose(1, 2)).transpose(1, 2)
        return self.out(self.norm(self.rnn(frames)[0])).log_softmax(-1)


class TransformerEncoder(nn.Module):
    """Tokens to contextual vectors: embedding with learned positions, transformer layers, masked attention.

    `tokens` is [batch, time].
    """

    def __init__(
        self, vocabulary: int = 61, width: int = 32, heads: int = 4, layers: int = 2, longest: int = 64
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(longest, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 3 * width, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        position = torch.arange(tokens.shape[1], device=tokens.device)
        return self.layers(self.tokens(tokens) + self.positions(position))


FRAMES = pytest.mark.nnef_export(target="tract", dynamic_axes={"features": {0: "B", 1: "T"}}, tolerance="approximate")
TEXT = pytest.mark.nnef_export(target="tract", dynamic_axes={"tokens": {0: "B", 1: "T"}}, tolerance="approximate")


def _speech(batch: int, frames: int) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    torch.manual_seed(1)
    return SpeechEncoder().eval(), {"features": torch.randn(batch, frames, 40)}


def _text(batch: int, words: int) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    torch.manual_seed(2)
    return TransformerEncoder().eval(), {"tokens": torch.randint(0, 61, (batch, words))}


@FRAMES
def test_speech_encoder() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    return _speech(2, 50)


@FRAMES
@pytest.mark.parametrize("frames", [1, 50])
def test_speech_encoder_traced_at_1(frames: int) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    return _speech(1, frames)


@TEXT
def test_transformer_encoder() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    return _text(2, 9)


@TEXT
@pytest.mark.parametrize("words", [1, 9])
def test_transformer_encoder_traced_at_1(words: int) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    return _text(1, words)
