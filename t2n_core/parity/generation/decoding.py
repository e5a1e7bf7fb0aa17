"""Feed tokens to an archive, in one session of an engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from t2n_core.engine.protocol import Array
from t2n_core.engine.tract.session import EngineSession
from t2n_core.errors import InputError
from t2n_core.level import TractCheckTolerance
from t2n_core.parity.comparison import compare
from t2n_core.parity.generation.continuation import Continuation
from t2n_core.parity.generation.outcome import GeneratedStep, Verdict
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.state_pairs import StatePair
from t2n_core.parity.tolerance import bounds_of


class Decoder:
    """Feeds tokens to a session, whose first regular input they are, and takes the first regular output as logits."""

    def __init__(self, session: EngineSession, state: Sequence[StatePair]) -> None:
        """Take an open session and its initial state; no state if the engine holds it.

        Raises InputError for an archive that takes no tokens `[batch, count]`.
        """
        self.session, self._state = session, tuple(state)
        shapes = session.shapes
        name = session.inputs[0] if session.inputs else ""
        if not name or len(shapes[name]) != 2:
            raise InputError(f"the first input of this archive is not a batch of tokens: {name or 'it has none'}")
        self.batch, self.width = shapes[name]
        """Extents of the tokens: an integer, or the symbol of a dynamic size."""

    @property
    def takes_one_token(self) -> bool:
        return self.width == 1

    @property
    def has_free_batch(self) -> bool:
        return isinstance(self.batch, str)

    def start(self, rows: int = 1) -> None:
        """Reset to the initial state for this number of rows. Raises InputError if the archive needs another number."""
        if not self.has_free_batch and self.batch != rows:
            raise InputError(f"the archive takes batches of {self.batch}, and prompts are fed one by one")
        if self.has_free_batch and self._state:
            self.session.set_state([self._in_rows(pair, rows) for pair in self._state])
        else:
            self.session.reset()

    def _in_rows(self, pair: StatePair, rows: int) -> Array:
        """Return the initial value with its first row repeated along the axis of the batch."""
        array = pair.initial
        for axis, size in enumerate(self.session.shapes[pair.input]):
            if size == self.batch:
                array = np.repeat(array.take([0], axis), rows, axis)
        return array

    def _together(self, name: str, arrays: Sequence[Array]) -> Array:
        """Return the rows of a fixed input, along the axis of the batch."""
        axes = [axis for axis, size in enumerate(self.session.shapes[name]) if size == self.batch]
        return np.concatenate(list(arrays), axes[0]) if axes and self.has_free_batch else arrays[0]

    def feed(self, ids: Array, fixed: Mapping[str, Array]) -> Array:
        """Return the logits after the last of these tokens, `[batch, vocabulary]`. Raises EngineError, InputError."""
        for part in np.split(ids, ids.shape[1], 1) if self.takes_one_token else [ids]:
            logits = self._run(part, fixed)
        return logits[:, -1]

    def all_logits(self, ids: Array, fixed: Mapping[str, Array]) -> Array:
        """Return the logits after each of these tokens `[1, S]`, as `[S, vocabulary]`. Raises EngineError, InputError.

        They are fed at once if the archive returns all of their logits, otherwise one by one, from the initial state.
        """
        if not self.takes_one_token:
            logits = self._run(ids, fixed)
            if logits.shape[1] == ids.shape[1]:
                return np.asarray(logits[0])
            self.start()
        return np.concatenate([self._run(token, fixed)[0] for token in np.split(ids, ids.shape[1], 1)])

    def _run(self, ids: Array, fixed: Mapping[str, Array]) -> Array:
        """Return the logits of one step, `[batch, 1 or S, vocabulary]`."""
        if not ids.shape[1]:
            raise InputError("a prompt needs one token or more")
        try:
            others = [fixed[name] for name in self.session.inputs[1:]]
        except KeyError as missing:
            raise InputError(f"there is no value for the input {missing} of the archive") from None
        logits = self.session.run([ids, *others])[0]
        return logits if logits.ndim == 3 else logits[:, None]

    def follow(
        self,
        continuations: Mapping[int, Continuation],
        level: TractCheckTolerance,
        *,
        chunks: Sequence[int] = (),
        begin: int = 0,
        steps: int | None = None,
    ) -> Iterator[GeneratedStep]:
        """Yield each step of some continuations, fed as the rows of one batch, until a token is wrong.

        `continuations` has them by the index of their prompt. The prompt is fed at once, or in parts that begin at
        `chunks`; with `begin` it has already been fed, and this many tokens have followed. A tie feeds PyTorch's token.
        """
        rows = list(continuations.values())
        fixed = {name: self._together(name, [row.fixed[name] for row in rows]) for name in rows[0].fixed}
        end = min(row.steps for row in rows) if steps is None else min(begin + steps, *(row.steps for row in rows))
        if begin:
            parts = [np.array([[row.tokens[begin - 1]] for row in rows])]
        else:
            parts = np.split(np.concatenate([row.prompt for row in rows]), list(chunks), 1)
        for step in range(begin, end):
            for part in parts:
                logits = self.feed(part, fixed)
            generated = [
                _judge(number, step, row, logits[index], level)
                for index, (number, row) in enumerate(continuations.items())
            ]
            yield from generated
            if any(result.verdict is Verdict.WRONG for result in generated):
                return
            parts = [np.array([[row.tokens[step]] for row in rows])]


def _judge(number: int, step: int, row: Continuation, got: Array, level: TractCheckTolerance) -> GeneratedStep:
    """Return one step of one prompt, judged by the engine's logits `[vocabulary]`."""
    expected_logits = as_type_of(row.logits[step], got)
    comparison = compare(expected_logits, got, name="logits", criteria=Judgement(level))
    expected, token = int(row.tokens[step]), int(np.argmax(got))
    verdict = Verdict.RIGHT
    if token != expected:
        is_tie = comparison.passed and is_within(expected_logits, expected, token, level)
        verdict = Verdict.TIE if is_tie else Verdict.WRONG
    return GeneratedStep(number, step, expected, token, verdict, comparison)


def is_within(logits: Array, token: int, other: int, level: TractCheckTolerance) -> bool:
    """Return whether two logits can swap ranks if each is as wrong as the level allows."""
    bounds, pair = bounds_of(level, logits.dtype), logits[[token, other]].astype(np.float64)
    return bool(abs(pair[0] - pair[1]) <= (bounds.atol + bounds.rtol * np.abs(pair)).sum())


def as_type_of(expected: Array, got: Array) -> Array:
    """Return the expected logits in the engine's type, if it can represent them: `generate` widens float16."""
    with np.errstate(over="ignore"):
        narrow = expected.astype(got.dtype)
    return narrow if np.array_equal(narrow.astype(expected.dtype), expected, equal_nan=True) else expected
