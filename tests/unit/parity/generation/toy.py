"""A language model of numbers alone, as an engine with sessions and as the reference: it can be made wrong anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from t2n_core.engine.protocol import Array
from t2n_core.errors import EngineOptimiseError, EngineRunError
from t2n_core.parity.generation.continuation import Continuation
from t2n_core.parity.state_pairs import StatePair

VOCABULARY = 11
TABLE = np.random.default_rng(3).normal(size=(61, VOCABULARY)).astype("f4")
STATE = (StatePair("past", "next", np.zeros((1, 0), "f4"), (1,)),)
Logits = Callable[[Array], Array]


def logits_of(ids: Array) -> Array:
    """Return the logits `[batch, vocabulary]` behind all of these tokens `[batch, size]`."""
    places = np.arange(1, ids.shape[1] + 1)
    return TABLE[(ids.astype(np.int64) * places).sum(1) % len(TABLE)]


def continuation(prompt: Sequence[int], steps: int = 6, logits: Logits = logits_of) -> Continuation:
    ids, step_logits = np.array([prompt]), []
    for _ in range(steps):
        step_logits.append(logits(ids)[0])
        ids = np.concatenate([ids, [[step_logits[-1].argmax()]]], 1)
    return Continuation(np.array([prompt]), ids[0, len(prompt) :], np.array(step_logits))


class ToySession:
    """A session whose state is all tokens that came."""

    inputs, outputs = ("ids",), ("logits",)

    def __init__(self, engine: ToyEngine, *, held: bool) -> None:
        self.times, self.facts = {"load": 0.1, "optimise": 0.2}, {"input": []}
        self.engine, self.held, self.past = engine, held, np.zeros((1, 0), "f4")
        self.shapes = {"ids": engine.shape, "past": (engine.shape[0], "P")}

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        (ids,) = arrays
        if not isinstance(self.shapes["ids"][1], str) and ids.shape[1] != self.shapes["ids"][1]:
            raise EngineRunError("another number of tokens")
        self.past = np.concatenate([self.past, ids.astype("f4")], 1)
        self.past = self.engine.spoil(self.past, ids.shape[1], self.held)
        return [self.engine.logits(self.past)]

    def state(self) -> tuple[Array, ...]:
        return (self.past.copy(),)

    def set_state(self, arrays: Sequence[Array]) -> None:
        if self.engine.takes(arrays[0]):
            (self.past,) = arrays

    def reset(self) -> None:
        self.past = np.zeros((1, 0), "f4")


class ToyEngine:
    """An engine of one model. `logits` computes it, `spoil` changes its state behind each step."""

    name, version, paths = "toy", "1", ()

    def __init__(
        self,
        logits: Logits = logits_of,
        spoil: Callable[[Array, int, bool], Array] = lambda past, new, in_engine: past,
        *,
        shape: tuple[int | str, int | str] = ("B", "S"),
        holds: bool | str = True,
        takes: Callable[[Array], bool] = lambda past: True,
    ) -> None:
        """Make an engine of these logits.

        `holds` is False for an engine that never holds state, or its reason why it does not hold this one; `takes`
        returns whether the engine accepts a state.
        """
        self.logits, self.spoil, self.shape, self.holds, self.takes = logits, spoil, shape, holds, takes
        self.holds_state = holds is not False

    @contextmanager
    def session(self, archive: Path, *, held_by_engine: bool = False, **options: Any) -> Iterator[ToySession]:
        if held_by_engine and isinstance(self.holds, str):
            raise EngineOptimiseError(self.holds)
        yield ToySession(self, held=held_by_engine)
