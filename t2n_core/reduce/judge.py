"""The judge of candidates, which decides whether a candidate fails in the same way as the original program."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from t2n_core.engine.protocol import Array, Engine, EngineReply
from t2n_core.engine.provision.resolved import ResolvedEngine
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.parity.further_runs.kept_states import REPEATED, last_kept_call
from t2n_core.reduce.failure import Failure, difference, failure_of
from t2n_core.reduce.oracles import Oracle, ReleaseOracle
from t2n_core.reduce.program import Program

TOLERANCE: Final = 1e-2
"""Share of the largest value from which on a difference is wrong: rounding is far below, real errors are far above."""
_FINEST: Final = 1e-5
_REPEATS: Final = 5
_DEADLY: Final = ("crash", "timeout", "oom")
WRONG_VALUES: Final = "mismatch"


class AdaptiveEngine:
    """A release of tract whose jobs run in the worker itself, ten times as fast, until one kills it; then forked."""

    name = "tract"

    def __init__(self, resolved: ResolvedEngine) -> None:
        self.version = resolved.version
        self._inside, self._forked = TractEngine(resolved, fork=False), TractEngine(resolved)
        self.kept_states, self.paths = self._forked.kept_states, self._forked.paths
        self._deaths, self._tried = 0, False

    def run(
        self, archive: Path, batches: Sequence[Sequence[Array]], *, timeout: float = 60.0, **options: Any
    ) -> EngineReply:
        inside = self._tried and not self._deaths  # the first run has a memory limit, so it is safe
        reply = (self._inside if inside else self._forked).run(archive, batches, timeout=timeout, **options)
        self._tried = True
        self._deaths += reply.status in _DEADLY
        return reply

    def close(self) -> None:
        self._inside.close()
        self._forked.close()


class SecondCalls:
    """An engine that runs each batch twice in one State, and returns the outputs of the second call."""

    kept_states = None

    def __init__(self, engine: AdaptiveEngine) -> None:
        self.name, self.version = engine.name, engine.version
        self._engine = engine

    def run(self, archive: Path, batches: Sequence[Sequence[Array]], *, timeout: float = 60.0) -> EngineReply:
        return last_kept_call(self._engine.run(archive, batches, timeout=timeout, calls=REPEATED))

    def close(self) -> None:
        """Do nothing: the caller closes the engine itself."""


class Judge:
    """The engine that fails, and the oracle of the right values."""

    def __init__(
        self,
        engine: Engine,
        oracle: Oracle | None,
        folder: Path,
        *,
        timeout: float = 10.0,
        seconds: float = 60.0,
        tolerance: float = TOLERANCE,
    ) -> None:
        """Create a judge; `seconds` is for the whole reduction, `timeout` for one run. `folder` is for candidates."""
        self.engine, self.oracle, self.tolerance = engine, oracle, tolerance
        self.runs = 0
        """Runs of the engine so far."""
        self._folder, self._timeout = folder / "candidate", timeout
        self._sources = [*([oracle] if oracle else []), ReleaseOracle(engine, folder, timeout)]
        self._started = time.monotonic()
        self._seconds = seconds
        self._repeats = 1
        self._trusts_engine = False
        self._known: dict[bytes, Failure | None] = {}

    @property
    def is_over(self) -> bool:
        """Return whether the time for the reduction is used up."""
        return time.monotonic() - self._started > self._seconds

    def first(self, program: Program) -> Failure | None:
        """Return the failure of the program to reduce, and set from it how to judge others.

        For a failure that is not reproduced every time, each candidate runs several times. An oracle that cannot run
        this program, for example because all releases crash on it, is not used.
        """
        worst = 0.0
        endings: list[Failure | None] = []
        want = self._right(program)
        if want is None:
            self.oracle = None
        for _ in range(_REPEATS):
            reply = self.run(program)
            if reply.status != "ok":
                endings.append(failure_of(reply))
                if reply.status in _DEADLY:
                    break  # crashes are slow, and hardly ever random
                continue
            worst = self._error(want, reply, program)
            fine = max(_FINEST, worst / 4)
            endings.append(Failure(WRONG_VALUES, "compare") if worst > _FINEST else None)
            self.tolerance = min(self.tolerance, fine) if worst > _FINEST else self.tolerance
        failures = [ending for ending in endings if ending is not None]
        self._trusts_engine = bool(failures) and failures[0].status != WRONG_VALUES
        if len(set(endings)) > 1:
            self._repeats = _REPEATS
        return failures[0] if failures else None

    def failure(self, program: Program) -> Failure | None:
        """Return how a candidate fails; None if it is right or invalid."""
        key = _key(program)
        if key not in self._known:
            self._known[key] = self._judge(program)
        return self._known[key]

    def _judge(self, program: Program) -> Failure | None:
        if any(program.signatures.problem(assignment) for assignment in program.assignments):
            return None
        want = self._right(program)
        if want is None and self.oracle is not None:
            return None
        for _ in range(self._repeats):
            reply = self.run(program)
            if reply.status != "ok":
                return failure_of(reply)
            if self._error(want, reply, program) > self.tolerance:
                return Failure(WRONG_VALUES, "compare")
        return None

    def run(self, program: Program) -> EngineReply:
        """Return the engine's reply."""
        self.runs += 1
        archive = program.write(self._folder)
        return self.engine.run(archive, [list(program.inputs.values())], timeout=self._timeout)

    def values(self, program: Program, names: Sequence[str]) -> Mapping[str, Array] | None:
        """Return right values of these names; None without an oracle that can compute them.

        If the engine fails otherwise than by wrong values, what it computes before the failure is right too.
        """
        for source in self._sources[: None if self._trusts_engine else -1]:
            if (values := source.values(program, names)) is not None:
                return values
        return None

    def _right(self, program: Program) -> Mapping[str, Array] | None:
        return None if self.oracle is None else self.oracle.values(program, program.outputs)

    def _error(self, want: Mapping[str, Array] | None, reply: EngineReply, program: Program) -> float:
        if want is None:
            return 0.0
        pairs = zip(program.outputs, reply.outputs[0], strict=False)
        return max((difference(want[name], got) for name, got in pairs if name in want), default=0.0)


def _key(program: Program) -> bytes:
    digest = hashlib.sha256(program.text().encode())
    for array in (*program.inputs.values(), *program.weights.values()):
        digest.update(array.data if isinstance(array.data, bytes) else array.tobytes())
    return digest.digest()
