"""Running sums over long axes, phases, points sampled by a distribution, and the best places of a heat map."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from conformance.cases.reported.case import Function, ReportedNet, Sizes


def _harmonics(_: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return sines of nine harmonics of a pitch in Hz at 24 kHz, and their phases in cycles."""
    phase = torch.cumsum(x.unsqueeze(-1) * torch.arange(1, 10, dtype=torch.float32) / 24000, dim=1)
    return torch.sin(2 * math.pi * phase), phase


class Source(nn.Module):
    """The source of a vocoder: sines of a pitch whose phase is summed at a lower rate, zero where there is no pitch."""

    def __init__(self, rate: int = 8000, hop: int = 20, harmonics: int = 4) -> None:
        super().__init__()
        self.rate, self.hop = rate, hop
        self.register_buffer("multiples", torch.arange(1.0, harmonics + 1)[None, None])
        self.mix = nn.Linear(harmonics, 1)

    def forward(self, pitch: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        each = F.interpolate(pitch.unsqueeze(1), scale_factor=float(self.hop), mode="nearest").transpose(1, 2)
        turns = (each * self.multiples / self.rate) % 1
        slow = F.interpolate(turns.transpose(1, 2), scale_factor=1 / self.hop, mode="linear").transpose(1, 2)
        phase = torch.cumsum(slow, dim=1) * 2 * math.pi
        phase = F.interpolate(phase.transpose(1, 2) * self.hop, scale_factor=float(self.hop), mode="linear")
        voiced = (each > 10).float()
        sines = torch.sin(phase.transpose(1, 2)) * 0.1 * voiced + (1 - voiced) * 0.03
        wrapped = torch.cumsum(each / self.rate, 1) % 1
        back = torch.zeros_like(wrapped)
        back[:, 1:] = ((wrapped[:, 1:] - wrapped[:, :-1]) < 0).float() * -1
        return torch.tanh(self.mix(sines)), torch.sin(torch.cumsum(each / self.rate + back, 1) * 2 * math.pi), voiced


def _pitches(sizes: Sizes) -> dict[str, Tensor]:
    pitch = torch.rand(sizes["B"], sizes["T"]) * 300 + 80
    return {"pitch": torch.where(torch.rand_like(pitch) < 0.2, 0, pitch)}


class Importance(nn.Module):
    """Sample rays where weights are large: invert the piecewise linear distribution function of the bins."""

    def forward(self, bins: Tensor, weights: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        shares = (weights + 1e-5) / torch.sum(weights + 1e-5, -1, keepdim=True)
        total = torch.cat([torch.zeros_like(shares[..., :1]), torch.cumsum(shares, -1)], -1)
        u = places.expand([*total.shape[:-1], places.shape[-1]]).contiguous()
        above = torch.searchsorted(total, u, right=True)
        low = torch.max(torch.zeros_like(above - 1), above - 1)
        high = torch.min((total.shape[-1] - 1) * torch.ones_like(above), above)
        both = torch.stack([low, high], -1)
        shape = [*both.shape[:2], total.shape[-1]]
        ends = torch.gather(total.unsqueeze(1).expand(shape), 2, both)
        edges = torch.gather(bins.unsqueeze(1).expand(shape), 2, both)
        span = ends[..., 1] - ends[..., 0]
        span = torch.where(span < 1e-5, torch.ones_like(span), span)
        return edges[..., 0] + (u - ends[..., 0]) / span * (edges[..., 1] - edges[..., 0]), above


def _rays(sizes: Sizes) -> dict[str, Tensor]:
    weights = torch.rand(sizes["R"], sizes["K"])
    return {
        "bins": torch.sort(torch.rand(sizes["R"], sizes["K"] + 1), -1)[0],
        "weights": torch.where(torch.rand_like(weights) < 0.3, 0, weights),
        "places": torch.rand(1, sizes["S"]),
    }


class Keypoints(nn.Module):
    """Places, scores and descriptors of the eight best peaks of a heat map in cells of eight by eight."""

    def __init__(self) -> None:
        super().__init__()
        self.features, self.scores, self.descriptors = nn.Conv2d(1, 8, 3, 8, 1), nn.Conv2d(8, 65, 1), nn.Conv2d(8, 6, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        features = F.relu(self.features(x))
        scores = F.softmax(self.scores(features) * 5, 1)[:, :-1]
        batch, _, height, width = scores.shape
        scores = scores.permute(0, 2, 3, 1).reshape(batch, height, width, 8, 8).permute(0, 1, 3, 2, 4)
        scores = _peaks(scores.reshape(batch, 1, height * 8, width * 8)).squeeze(1)
        scores[:, :4] = -1
        scores[:, :, :4] = -1
        scores[:, -4:] = -1
        scores[:, :, -4:] = -1
        best, index = torch.topk(scores.flatten(1), 8)
        line = width * 8
        points = torch.stack([index % line, torch.div(index, line, rounding_mode="floor")], -1).to(scores.dtype)
        span = torch.tensor([line - 4.5, height * 8 - 4.5])
        grid = ((points - 3.5) / span.to(points)[None] * 2 - 1).view(batch, 1, -1, 2)
        descriptors = F.normalize(self.descriptors(features), dim=1)
        sampled = F.grid_sample(descriptors, grid, align_corners=True).reshape(batch, 6, -1)
        return points, best, F.normalize(sampled, dim=1)


def _peaks(scores: Tensor) -> Tensor:
    """Return the scores with zeros within two places of a larger one, in two rounds."""
    zeros = torch.zeros_like(scores)
    peak_mask = scores == F.max_pool2d(scores, 5, 1, 2)
    for _ in range(2):
        covered = F.max_pool2d(peak_mask.float(), 5, 1, 2) > 0
        rest = torch.where(covered, zeros, scores)
        peak_mask = peak_mask | ((rest == F.max_pool2d(rest, 5, 1, 2)) & (~covered))
    return torch.where(peak_mask, scores, zeros)


class Phase(nn.Module):
    """The phase of a spectrum without its last bin, whose imaginary part is rounding noise."""

    def __init__(self, by_parts: bool) -> None:
        super().__init__()
        self.by_parts = by_parts
        self.register_buffer("window", torch.hann_window(16))
        self.mix = nn.Conv1d(8, 4, 3, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        spectrum = torch.stft(x, 16, 4, window=self.window, center=False, return_complex=True)[:, :8]
        phase = torch.atan2(spectrum.imag, spectrum.real) if self.by_parts else torch.angle(spectrum)
        return phase, spectrum.abs()


def _phase(by_parts: bool) -> ReportedNet:
    return ReportedNet(
        lambda: Phase(by_parts),
        lambda s: {"x": torch.randn(s["B"], s["T"])},
        {"x": {0: "B", 1: "T"}},
        [{"B": b, "T": t} for b, t in ((2, 64), (1, 16), (3, 20), (1, 65), (1, 300))],
    )


CASES: dict[str, ReportedNet] = {
    "running sum of a long axis": ReportedNet(
        lambda: Function(lambda _, x: x.cumsum(1)),
        lambda s: {"x": 0.1 + 0.01 * torch.rand(1, s["T"])},
        {"x": {1: "T"}},
        [{"T": t} for t in (50, 1000, 10000, 40000, 100000)],
    ),
    "phase of harmonics": ReportedNet(
        lambda: Function(_harmonics),
        lambda s: {"x": 180 + 40 * torch.rand(s["B"], s["T"])},
        {"x": {0: "B", 1: "T"}},
        [{"B": b, "T": t} for b, t in ((2, 50), (1, 300), (1, 10000), (1, 42000), (1, 240000))],
    ),
    "source of a vocoder": ReportedNet(
        Source, _pitches, {"pitch": {0: "B", 1: "T"}},
        [{"B": b, "T": t} for b, t in ((1, 12), (1, 1), (3, 2), (1, 40), (2, 333))],
    ),
    "importance sampling": ReportedNet(
        Importance,
        _rays,
        {"bins": {0: "R", 1: torch.export.Dim("K") + 1}, "weights": {0: "R", 1: "K"}, "places": {1: "S"}},
        [{"R": r, "K": k, "S": s} for r, k, s in ((3, 8, 5), (1, 1, 1), (2, 4, 7), (5, 33, 16))],
    ),
    "peaks of a heat map": ReportedNet(
        Keypoints, lambda s: {"x": torch.rand(s["B"], 1, s["H"], s["W"])}, {"x": {0: "B", 2: "H", 3: "W"}},
        [{"B": b, "H": h, "W": w} for b, h, w in ((2, 32, 40), (1, 24, 24), (1, 40, 64), (2, 33, 41))],
    ),
    "phase of a spectrum": _phase(by_parts=False),
    "phase of parts": _phase(by_parts=True),
}  # fmt: skip
