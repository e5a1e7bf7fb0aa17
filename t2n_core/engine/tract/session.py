"""A loaded archive that runs one step after another, so that users write their own loops.

    with engine.session(archive, state=[("in_cache_key_0", "out_cache_key_0"), …]) as session:
        (logits,) = session.run([prompt])
        while …:
            (logits,) = session.run([token])

An engine's failure is an exception here, which names the step. After a crash, a timeout or out of memory the session
has ended, and each further call raises an error; after an error of the engine (EngineRunError) it continues as before
that step.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from t2n_core.engine.processes.answer import Answer
from t2n_core.engine.processes.wire import Frame, plain_array
from t2n_core.engine.processes.worker_process import WorkerDied, WorkerProcess
from t2n_core.engine.protocol import Array, EngineReply
from t2n_core.engine.tract.out_of_range import explain
from t2n_core.engine.tract.signature import Signature
from t2n_core.errors import EngineError, EngineRunError, InputError, engine_error

_OPENED: Final = ("opened", "error", "oom", "failed", "end")
_ANSWERS: Final = ("outputs", "state", "done", "refused", "oom", "end")


class EngineSession:
    """One archive in a separate process. Threads take turns; a forked process cannot use it."""

    def __init__(
        self,
        worker: WorkerProcess,
        archive: Path,
        signature: Signature,
        state: Sequence[tuple[str, str]],
        timeout: float,
        *,
        transforms: Sequence[str] | None = None,
    ) -> None:
        """Take a started worker and the names of the archive. `timeout` is in seconds for each step.

        `transforms` are for a graph whose state the engine holds; None if it is fed.

        Raises InputError for a pair that names no input or output, or repeats another pair's.
        """
        self.inputs, self.outputs, self._pairs = signature.without(state)
        self.steps = 0
        """Steps that have run, including refused ones."""
        self.times: Mapping[str, float] = {}
        """Seconds: `load`, `optimise`, and `run` for the last step."""
        self.facts: Mapping[str, Any] = {}
        """Facts that the engine reports about the model."""
        self._names = signature.inputs
        self._state_names = tuple(name for name, _ in state)
        self._worker, self._archive, self._timeout = worker, archive.absolute(), timeout
        self._held, self._transforms = transforms is not None, tuple(transforms or ())
        self._initial: tuple[Array, ...] = ()
        self._ended: EngineError | None = None
        self._lock, self._owner = threading.Lock(), os.getpid()

    def open(
        self, symbols: Mapping[str, int], memory_limit: int, initial: Sequence[Array] | None, *, declutter: bool = True
    ) -> None:
        """Load the archive, by default decluttered, and set the state before the first step.

        Raises EngineLoadError, EngineOptimiseError, EngineCrash, EngineTimeout, EngineOutOfMemory, InputError.
        """
        session = {"state": self._pairs, "held": self._held, "transforms": self._transforms}
        header = {
            "session": session,
            "archive": str(self._archive),
            "symbols": dict(symbols),
            "declutter": declutter,
            "memory_limit": memory_limit,
        }
        answer = Answer()
        frame: Frame | None = None
        try:
            first = self._worker.wait_ready()
            if first.header["event"] == "ready":
                frame = self._worker.converse(header, (), timeout=self._timeout, on_event=answer.take, until=_OPENED)
                if frame.header["event"] == "end":
                    answer.take_end(frame)
            else:
                answer.take(first)
        except WorkerDied as death:
            answer.take_death(death.exit_code, death.stderr, killed_by_us=death.killed_by_us)
        if frame is None or frame.header["event"] != "opened":
            if frame is not None and frame.header["event"] in ("error", "oom"):
                answer.take(frame)
            reply = answer.reply()
            raise self._end(engine_error(reply.status, reply.stage)(reply.message))
        self.facts, self.times = answer.reply().facts, frame.header["times"]
        if self._held:
            if initial is not None:
                raise InputError("state that the engine keeps starts empty: pass no initial=")
            return
        self._initial = self._checked_state(initial) if initial is not None else self._empty(symbols)
        self.reset()

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Run one step on the regular inputs, and return the regular outputs, both in the order of the graph.

        Raises:
            InputError: an array that cannot be sent to any engine.
            EngineRunError: the engine refused the inputs; the state is as before the step.
            EngineCrash, EngineTimeout, EngineOutOfMemory: the session has ended.
        """
        with self._lock:
            self.steps += 1
            frame = self._ask("run", arrays)
        self.times = {**self.times, "run": frame.header["seconds"]}
        return frame.arrays()

    @property
    def shapes(self) -> dict[str, tuple[int | str, ...]]:
        """Return the extents of all inputs, state included, by name; dynamic ones are symbols."""
        return {name: shape for name, (shape, _) in zip(self._names, self._facts(), strict=True)}

    def state(self) -> tuple[Array, ...]:
        """Return the current state, in the order of the pairs. Raises EngineRunError if the engine keeps it."""
        with self._lock:
            return tuple(self._ask("read", ()).arrays())

    def set_state(self, arrays: Sequence[Array]) -> None:
        """Replace the state by one from `state`.

        Raises InputError for another number of arrays, EngineRunError for state that the engine keeps.
        """
        if self._held:
            raise EngineRunError("the engine takes no state, since it keeps its own", hint=_HELD)
        state = self._checked_state(arrays)
        with self._lock:
            self._ask("write", state)

    def reset(self) -> None:
        """Go back to the state before the first step."""
        with self._lock:
            self._ask("write", self._initial)

    def close(self) -> None:
        """End the process; do nothing if it has ended."""
        if self._ended is None:
            self._ended = EngineRunError("the session is closed")
        self._worker.close()

    def _ask(self, step: str, arrays: Sequence[Array]) -> Frame:
        if self._owner != os.getpid():
            raise InputError("this session belongs to the process that opened it; open another one here")
        if self._ended is not None:
            raise self._ended
        try:
            plain = [plain_array(array) for array in arrays]
        except TypeError as cause:
            raise InputError(str(cause)) from cause
        try:
            frame = self._worker.converse({"step": step}, plain, timeout=self._timeout, until=_ANSWERS)
        except WorkerDied as death:
            answer = Answer()
            answer.take_death(death.exit_code, death.stderr, killed_by_us=death.killed_by_us)
            raise self._end(self._failure(answer.reply())) from None
        except BaseException:
            self._ended = EngineRunError("the session was interrupted, and has ended")
            raise
        event = frame.header["event"]
        if event == "refused":
            refused = EngineReply("error", "run", frame.header["message"])
            raise EngineRunError(f"{self._where}: {explain(refused, self._archive, [plain]).message}")
        if event in ("oom", "end"):
            answer = Answer()
            answer.take_end(frame) if event == "end" else answer.take(frame)
            raise self._end(self._failure(answer.reply()))
        return frame

    @property
    def _where(self) -> str:
        return f"step {self.steps}"

    def _failure(self, reply: EngineReply) -> EngineError:
        return engine_error(reply.status, "run")(f"{self._where}: {reply.message}")

    def _end(self, error: EngineError) -> EngineError:
        """Record why the session ended, and return the error."""
        self._ended = type(error)(f"the session has ended: {error.message}")
        self._worker.kill()
        return error

    def _checked_state(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        if len(arrays) != len(self._pairs):
            raise InputError(f"{len(arrays)} arrays of state passed, the session has {len(self._pairs)}")
        return tuple(np.array(array) for array in arrays)

    def _facts(self) -> list[tuple[tuple[int | str, ...], np.dtype[Any]]]:
        return [_shape_and_dtype(fact) for _, fact in self.facts["input"]]

    def _empty(self, symbols: Mapping[str, int]) -> tuple[Array, ...]:
        """Return zeros for each state, empty along the axes that the regular inputs do not have.

        Raises InputError for a state whose shape the graph does not determine.
        """
        facts = self._facts()
        places = [index for index, _ in self._pairs]
        regular_sizes = {name for index, (shape, _) in enumerate(facts) if index not in places for name in shape}
        zeros = []
        for name, index in zip(self._state_names, places, strict=True):
            shape, dtype = facts[index]
            sizes = [size if isinstance(size, int) else symbols.get(size, size) for size in shape]
            unknown = [
                size for size in sizes if isinstance(size, str) and (size in regular_sizes or not size.isidentifier())
            ]
            if unknown:
                raise InputError(f"`{name}` has no initial size: axis {unknown[0]} is dynamic", hint="pass initial=")
            zeros.append(np.zeros([size if isinstance(size, int) else 0 for size in sizes], dtype))
        return tuple(zeros)


_HELD = "a session without held_by_engine=True can return to an earlier state"


def _shape_and_dtype(fact: str) -> tuple[tuple[int | str, ...], np.dtype[Any]]:
    """Return extents and type of an engine's fact such as `1,2,P,8,f32`."""
    *extents, word = fact.split(",")
    kind = word.strip().lower()
    digits = re.sub(r"\D", "", kind)
    dtype = np.dtype("?" if kind == "bool" else f"{kind[0]}{int(digits) // 8}")
    return tuple(int(extent) if extent.isdigit() else extent for extent in extents), dtype
