"""Voice: synthesisers whose length follows from the text, or from the model itself."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from conformance.cases.several_archives.parts import Make, built, item, zeros
from t2n_core.program import Part, Program, items, let, run, text, while_

LETTERS, WIDTH, BANDS = 11, 8, 6
LAST = 40
"""Most frames of a sentence."""
ENOUGH = 0.55
"""A frame with a larger value is the last one."""


class Text(nn.Module):
    """Letters as vectors, with the logarithm of the frames that each takes."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.mix = nn.Embedding(LETTERS, WIDTH), nn.Conv1d(WIDTH, WIDTH, 3, padding=1)
        self.length = nn.Linear(WIDTH, 1)

    def forward(self, letters: Any) -> Any:
        mixed = torch.tanh(self.mix(self.embedding(letters).transpose(1, 2))).transpose(1, 2)
        return mixed, self.length(mixed).squeeze(-1)


class Spoken(nn.Module):
    """The sound of frames: an upsampling net with residual convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv1d(WIDTH, 12, 5, padding=2)
        self.up = nn.ConvTranspose1d(12, 6, 8, stride=4, padding=2)
        self.mix, self.leave = nn.Conv1d(6, 6, 3, padding=2, dilation=2), nn.Conv1d(6, 1, 7, padding=3)

    def forward(self, frames: Any) -> Any:
        x = self.up(nn.functional.leaky_relu(self.enter(frames.transpose(1, 2)), 0.1))
        x = x + self.mix(nn.functional.leaky_relu(x, 0.1))
        return torch.tanh(self.leave(x)).squeeze(1)


def length_regulator() -> Program:
    """Return a synthesiser like VITS and FastSpeech: each letter's vector is repeated by its duration."""
    letters, spoken = built(Text()), built(Spoken(), 1.0)

    @torch.no_grad()
    def reference(text: torch.Tensor) -> torch.Tensor:
        vectors, lengths = letters(text)
        counts = torch.clamp(torch.round(torch.exp(lengths[0])), min=1).long()
        return spoken(torch.repeat_interleave(vectors, counts, 1))  # type: ignore[no-any-return]

    parts = {
        "text": Part(
            letters,
            {"letters": torch.randint(0, LETTERS, (1, 7))},
            {"dynamic_axes": {"letters": {1: "L"}}, "output_names": ["vectors", "lengths"]},
        ),
        "sound": Part(
            spoken,
            {"frames": torch.randn(1, 9, WIDTH)},
            {"dynamic_axes": {"frames": {1: "F"}}, "output_names": ["sound"]},
        ),
    }
    statements = [
        run("text", {"letters": "text"}, {"vectors": "vectors", "lengths": "lengths"}),
        let(
            counts=["cast", ["max", ["round", ["exp", ["reshape", "lengths", items(-1)]]], 1.0], text("int64")],
            frames=["repeat", "vectors", "counts", 1],
        ),
        run("sound", {"frames": "frames"}, {"sound": "sound"}),
    ]
    examples = [{"text": torch.randint(0, LETTERS, (1, size))} for size in (5, 12)]
    return Program(parts, statements, ["sound"], reference, examples)


class Frame(nn.Module):
    """One frame after the frames before it: attention over the text, a cell, and whether it is the last one."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.query = nn.GRUCell(BANDS + WIDTH, 10), nn.Linear(10, WIDTH)
        self.out, self.stop = nn.Linear(10 + WIDTH, BANDS), nn.Linear(10 + WIDTH, 1)

    def forward(self, vectors: Any, frame: Any, hidden: Any) -> Any:
        weights = torch.softmax(torch.einsum("bw,blw->bl", self.query(hidden), vectors), -1)
        attended = torch.einsum("bl,blw->bw", weights, vectors)
        hidden = self.cell(torch.cat([frame, attended], -1), hidden)
        both = torch.cat([hidden, attended], -1)
        return torch.tanh(self.out(both)), hidden, torch.sigmoid(self.stop(both))


def frame_by_frame() -> Program:
    """Return a synthesiser like Tacotron, which decides itself when a sentence ends."""
    letters, frames = built(Text()), built(Frame())

    @torch.no_grad()
    def reference(text: torch.Tensor) -> torch.Tensor:
        vectors, _ = letters(text)
        frame, hidden, spoken = torch.zeros(1, BANDS), torch.zeros(1, 10), []
        for _ in range(LAST):
            frame, hidden, last = frames(vectors, frame, hidden)
            spoken.append(frame)
            if float(last) > ENOUGH:
                break
        return torch.cat(spoken)

    example = {"vectors": torch.randn(1, 6, WIDTH), "frame": torch.randn(1, BANDS), "hidden": torch.randn(1, 10)}
    parts = {
        "text": Part(
            letters,
            {"letters": torch.randint(0, LETTERS, (1, 7))},
            {"dynamic_axes": {"letters": {1: "L"}}, "output_names": ["vectors", "lengths"]},
        ),
        "frame": Part(
            frames, example, {"dynamic_axes": {"vectors": {1: "L"}}, "output_names": ["next", "following", "last"]}
        ),
    }
    inputs = {"vectors": "vectors", "frame": "frame", "hidden": "hidden"}
    statements = [
        run("text", {"letters": "text"}, {"vectors": "vectors"}),
        let(frame=zeros(1, BANDS), hidden=zeros(1, 10), spoken=zeros(0, BANDS), more=True),
        while_(
            ["and", "more", ["less", ["size", "spoken", 0], LAST]],
            run("frame", inputs, {"next": "frame", "following": "hidden", "last": "last"}),
            let(spoken=["concat", 0, "spoken", "frame"], more=["less_equal", item("last"), ENOUGH]),
        ),
    ]
    examples = [{"text": torch.randint(0, LETTERS, (1, size))} for size in (4, 9)]
    return Program(parts, statements, ["spoken"], reference, examples)


CASES: dict[str, Make] = {"length-regulator": length_regulator, "frame-by-frame": frame_by_frame}
