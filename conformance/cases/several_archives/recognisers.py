"""Recognisers by connectionist temporal classification: whole, and in chunks."""

from __future__ import annotations

from typing import Any

import torch

from conformance.cases.several_archives.parts import Make, Stack, built, item, zeros
from conformance.cases.several_archives.streaming import CHUNK, ChunkedEncoder, chunk_of, chunks
from t2n_core.program import Part, Program, Statement, if_, let, run, while_

BLANK, FEATURES = 0, 6
TOKENS = 9


def collapse() -> tuple[Statement, ...]:
    """Return the loop that keeps the best token of each frame unless it is blank, or the one before."""
    return (
        let(best=["argmax", "frames", -1], t=0),
        while_(
            ["less", "t", ["size", "frames", 1]],
            let(token=["reshape", ["slice", "best", 1, "t", ["add", "t", 1]], {"list": [1]}]),
            if_(
                ["and", ["not", ["equal", item("token"), BLANK]], ["not", ["equal", item("token"), item("before")]]],
                [let(tokens=["concat", 0, "tokens", "token"])],
            ),
            let(before="token", t=["add", "t", 1]),
        ),
    )


BEGIN = let(tokens=zeros(0, dtype="int64"), before=zeros(1, dtype="int64"))


def _collapse_repeats(frames: torch.Tensor) -> torch.Tensor:
    best = torch.unique_consecutive(frames[0].argmax(-1))
    return best[best != BLANK]


def ctc() -> Program:
    """Return a recogniser that sees the whole input."""
    encoder = built(Stack(FEATURES, 14, TOKENS), 3.0)
    options: dict[str, Any] = {"dynamic_axes": {"features": {1: "T"}}, "output_names": ["encoded"]}
    parts = {"encoder": Part(encoder, {"features": torch.randn(1, 7, FEATURES)}, options)}
    statements = [run("encoder", {"features": "features"}, {"encoded": "frames"}), BEGIN, *collapse()]
    examples = [{"features": torch.randn(1, size, FEATURES) * 3} for size in (12, 31)]

    @torch.no_grad()
    def reference(features: torch.Tensor) -> torch.Tensor:
        return _collapse_repeats(encoder(features))

    return Program(parts, statements, ["tokens"], reference, examples)


def streaming_ctc() -> Program:
    """Return a streaming Conformer whose tokens are collapsed from chunk to chunk."""
    encoder = built(ChunkedEncoder(FEATURES, TOKENS), 3.0)
    statements = [BEGIN, *chunks(encoder, [chunk_of(encoder), *collapse()])]
    examples = [{"features": torch.randn(1, CHUNK * count, FEATURES) * 3} for count in (3, 6)]

    @torch.no_grad()
    def reference(features: torch.Tensor) -> torch.Tensor:
        caches, heard = encoder.initial(), []
        for chunk in features.split(CHUNK, 1):
            frames, *caches = encoder(chunk, *caches)
            heard.append(frames)
        return _collapse_repeats(torch.cat(heard, 1))

    return Program({"encoder": encoder.part()}, statements, ["tokens"], reference, examples)


CASES: dict[str, Make] = {"ctc": ctc, "streaming-ctc": streaming_ctc}
