"""Transducers: an encoder, a predictor and a joint net in a greedy loop, frame by frame."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from conformance.cases.several_archives.parts import Make, Stack, built, item, zeros
from conformance.cases.several_archives.streaming import CHUNK, ChunkedEncoder, chunk_of, chunks
from t2n_core.program import Part, Program, Statement, if_, items, let, run, while_

BLANK = 7
"""The token that ends a frame; those below it are emitted."""
FEATURES, HIDDEN, JOINED = 5, 9, 10
MOST = 3
"""Most tokens of a frame."""
DURATIONS = (0, 1, 2, 4)
"""Frames that a token of a token-and-duration transducer can take."""


class Predictor(nn.Module):
    """One step over the emitted tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.cell = nn.Embedding(BLANK + 1, 8), nn.LSTMCell(8, HIDDEN)
        self.out = nn.Linear(HIDDEN, JOINED)

    def forward(self, token: Any, h: Any, c: Any) -> Any:
        h, c = self.cell(self.embedding(token), (h, c))
        return self.out(h), h, c


class Joint(nn.Module):
    """Scores of the next token, and of its duration if it has one."""

    def __init__(self, durations: int = 0) -> None:
        super().__init__()
        self.token = nn.Linear(JOINED, BLANK + 1)
        self.duration = nn.Linear(JOINED, durations) if durations else None

    def forward(self, frame: Any, predicted: Any) -> Any:
        joined = torch.tanh(frame + predicted)
        return self.token(joined) if self.duration is None else (self.token(joined), self.duration(joined))


PREDICTED = ["predicted", "h_next", "c_next"]
PREDICT = run("predictor", {"token": "token", "h": "h", "c": "c"}, dict(zip(PREDICTED, "ghc", strict=True)))
BEGIN: tuple[Statement, ...] = (
    let(h=zeros(1, HIDDEN), c=zeros(1, HIDDEN), tokens=zeros(0, dtype="int64"), token=zeros(1, dtype="int64")),
    PREDICT,
)
"""The state before the first frame: the predictor has seen token 0."""
EMIT: tuple[Statement, ...] = (let(tokens=["concat", 0, "tokens", "best"], token="best"), PREDICT)


def frame_loop() -> tuple[Statement, ...]:
    """Return the loop over the frames of `frames`."""
    return (
        let(t=0),
        while_(
            ["less", "t", ["size", "frames", 1]],
            let(
                emitted=0, more=True, frame=["reshape", ["slice", "frames", 1, "t", ["add", "t", 1]], items(1, JOINED)]
            ),
            while_(
                ["and", "more", ["less", "emitted", MOST]],
                run("joint", {"frame": "frame", "predicted": "g"}, {"logits": "logits"}),
                let(best=["argmax", "logits", -1]),
                if_(["equal", item("best"), BLANK], [let(more=False)], [let(emitted=["add", "emitted", 1]), *EMIT]),
            ),
            let(t=["add", "t", 1]),
        ),
    )


class Greedy:
    """The loop of a transducer in PyTorch."""

    def __init__(self, predictor: Any, joint: Any) -> None:
        self.predictor, self.joint = predictor, joint
        self.h = self.c = torch.zeros(1, HIDDEN)
        self.tokens: list[int] = []
        self.predict(0)

    def predict(self, token: int) -> None:
        self.g, self.h, self.c = self.predictor(torch.tensor([token]), self.h, self.c)

    def frame(self, frame: torch.Tensor) -> None:
        """Emit the tokens of one frame `[1, joined]`."""
        for _ in range(MOST):
            best = int(self.joint(frame, self.g).argmax(-1))
            if best == BLANK:
                return
            self.tokens.append(best)
            self.predict(best)

    def frame_and_duration(self, frame: torch.Tensor) -> int:
        """Emit at most one token, and return its duration."""
        scores, durations = self.joint(frame, self.g)
        best = int(scores.argmax(-1))
        if best != BLANK:
            self.tokens.append(best)
            self.predict(best)
        duration = DURATIONS[int(durations.argmax(-1))]
        return max(duration, 1) if best == BLANK else duration


def _parts(encoder: Part, predictor: nn.Module, joint: nn.Module, names: list[str]) -> dict[str, Part]:
    state = {name: torch.randn(1, HIDDEN) for name in ("h", "c")}
    frames = {name: torch.randn(1, JOINED) for name in ("frame", "predicted")}
    return {
        "encoder": encoder,
        "predictor": Part(predictor, {"token": torch.tensor([2]), **state}, {"output_names": PREDICTED}),
        "joint": Part(joint, frames, {"output_names": names}),
    }


def _whole_encoder(encoder: nn.Module) -> Part:
    options = {"dynamic_axes": {"features": {1: "T"}}, "output_names": ["encoded"]}
    return Part(encoder, {"features": torch.randn(1, 6, FEATURES)}, options)


def rnnt() -> Program:
    """Return a transducer whose encoder sees the whole input."""
    encoder, predictor, joint = built(Stack(FEATURES, 12, JOINED)), built(Predictor()), built(Joint())

    @torch.no_grad()
    def reference(features: torch.Tensor) -> torch.Tensor:
        greedy = Greedy(predictor, joint)
        for frame in encoder(features)[0]:
            greedy.frame(frame[None])
        return torch.tensor(greedy.tokens)

    statements = [run("encoder", {"features": "features"}, {"encoded": "frames"}), *BEGIN, *frame_loop()]
    examples = [{"features": torch.randn(1, size, FEATURES) * 2} for size in (9, 14, 23)]
    return Program(
        _parts(_whole_encoder(encoder), predictor, joint, ["logits"]), statements, ["tokens"], reference, examples
    )


def streaming_rnnt() -> Program:
    """Return a transducer whose encoder takes chunks, with caches."""
    encoder, predictor, joint = built(ChunkedEncoder(FEATURES, JOINED)), built(Predictor()), built(Joint())

    @torch.no_grad()
    def reference(features: torch.Tensor) -> torch.Tensor:
        greedy = Greedy(predictor, joint)
        caches = encoder.initial()
        for chunk in features.split(CHUNK, 1):
            frames, *caches = encoder(chunk, *caches)
            for frame in frames[0]:
                greedy.frame(frame[None])
        return torch.tensor(greedy.tokens)

    statements = [*BEGIN, *chunks(encoder, [chunk_of(encoder), *frame_loop()])]
    examples = [{"features": torch.randn(1, CHUNK * count, FEATURES) * 2} for count in (3, 5)]
    return Program(_parts(encoder.part(), predictor, joint, ["logits"]), statements, ["tokens"], reference, examples)


def tdt() -> Program:
    """Return a token-and-duration transducer: each token says how many frames it takes."""
    encoder, predictor, joint = built(Stack(FEATURES, 12, JOINED)), built(Predictor()), built(Joint(len(DURATIONS)))

    @torch.no_grad()
    def reference(features: torch.Tensor) -> torch.Tensor:
        greedy, frames = Greedy(predictor, joint), encoder(features)
        t = emitted = 0
        while t < frames.shape[1]:
            before = len(greedy.tokens)
            step = greedy.frame_and_duration(frames[:, t])
            emitted = emitted + len(greedy.tokens) - before if step == 0 else 0
            if emitted >= MOST:
                step, emitted = 1, 0
            t += step
        return torch.tensor(greedy.tokens)

    statements = [
        run("encoder", {"features": "features"}, {"encoded": "frames"}),
        *BEGIN,
        let(t=0, emitted=0, durations=items(*DURATIONS)),
        while_(
            ["less", "t", ["size", "frames", 1]],
            let(frame=["reshape", ["slice", "frames", 1, "t", ["add", "t", 1]], items(1, JOINED)]),
            run("joint", {"frame": "frame", "predicted": "g"}, {"logits": "logits", "lengths": "lengths"}),
            let(
                best=["argmax", "logits", -1],
                step=["gather", "durations", largest("lengths"), 0],
                blank=["equal", item("best"), BLANK],
            ),
            if_("blank", [let(step=["max", "step", 1])], EMIT),
            let(
                emitted=["where", ["equal", "step", 0], ["add", "emitted", 1], 0],
                full=["less_equal", MOST, "emitted"],
                step=["where", "full", 1, "step"],
            ),
            let(emitted=["where", "full", 0, "emitted"], t=["add", "t", "step"]),
        ),
    ]
    examples = [{"features": torch.randn(1, size, FEATURES) * 2} for size in (11, 17, 26)]
    parts = _parts(_whole_encoder(encoder), predictor, joint, ["logits", "lengths"])
    return Program(parts, statements, ["tokens"], reference, examples)


def largest(scores: str) -> Any:
    """Return the expression of the place of the largest score."""
    return ["reshape", ["argmax", scores, -1], items()]


CASES: dict[str, Make] = {"rnnt": rnnt, "streaming-rnnt": streaming_rnnt, "tdt": tdt}
