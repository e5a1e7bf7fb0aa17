"""What stands before a speech encoder: features of a batch of waves, of which each is as long as `lengths` says."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from conformance.cases.programs.program import Program


class Filterbank(nn.Module):
    """Logarithms of energies in bands, normalised over the frames of each wave; frames beyond its end are 0."""

    def __init__(self, size: int = 32, hop: int = 8, bands: int = 6) -> None:
        super().__init__()
        self._size, self._hop = size, hop
        self.register_buffer("window", torch.hann_window(size))
        self.register_buffer("bands", torch.rand(bands, size // 2 + 1))

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        frames = lengths // self._hop + 1
        x = torch.cat((x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]), 1)
        spectrum = torch.stft(x, self._size, self._hop, window=self.window, return_complex=True, pad_mode="constant")
        energies = torch.log(self.bands @ torch.view_as_real(spectrum).pow(2).sum(-1) + 2**-10)
        inside = (torch.arange(energies.shape[-1]) < frames[:, None])[:, None]
        count = frames[:, None, None]
        mean = (energies * inside).sum(-1, keepdim=True) / count
        spread = (((energies - mean) * inside).pow(2).sum(-1, keepdim=True) / count).sqrt()
        return (energies - mean) / (spread + 1e-3) * inside, frames


PROGRAMS: dict[str, Program] = {
    "filterbank": Program(
        Filterbank,
        lambda: (torch.randn(2, 90), torch.tensor([90, 61])),
        axes={"x": {0: "B", 1: "T"}, "lengths": {0: "B"}},
        in_standard=False,
    ),
    "filterbank_of_one_size": Program(
        Filterbank, lambda: (torch.randn(2, 90), torch.tensor([90, 61])), in_standard=False
    ),
}
