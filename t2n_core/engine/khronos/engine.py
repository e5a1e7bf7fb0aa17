"""The Khronos tools as engines for strict NNEF: two oracles in separate processes, and the two together.

KhronosInterpreter   nnef_tools' interpreter with its wrong operators replaced: correct but for regions of interest
KhronosSession       the C++ executor of the `nnef` wheel: independent, but it cannot run every graph
KhronosEngine        both: the interpreter's outputs, or an error if the executor computes something else
"""

from __future__ import annotations

import atexit
import dataclasses
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from t2n_core.engine.processes.memory import memory_limit
from t2n_core.engine.processes.worker_engine import WorkerEngine
from t2n_core.engine.protocol import Array, EngineReply

VERSION: Final = "1.0.5"
"""The version of the NNEF standard."""
AGREEMENT_RTOL: Final = 1e-4
AGREEMENT_ATOL: Final = 1e-5
"""Tolerances between the two oracles. The absolute one is scaled by an output's largest magnitude, if above 1."""
SESSION_TIMEOUT: Final = 20.0
"""Time limit of the C++ executor, in seconds: its loops are naive, and it is only the second oracle."""
_CHILD: Final = "t2n_core.engine.khronos.child"


class _Oracle(WorkerEngine):
    """One Khronos tool in a persistent process. Implements `Engine`."""

    name: ClassVar[str]
    role: ClassVar[str]
    version = VERSION
    kept_states = None

    def __init__(self) -> None:
        super().__init__(_CHILD, self.role, f"--memory={memory_limit()}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def run(self, archive: Path, batches: Sequence[Sequence[Array]], *, timeout: float = 60.0) -> EngineReply:
        """Check `archive` (directory, .tar or .tgz) and run each batch, inputs in graph order.

        `timeout` is in seconds for the whole job. A wrong graph or input results in an `error` in the reply. Integer
        outputs are int64 (interpreter) or int32 (session). Raises InputError for arrays that cannot be sent to any
        engine.
        """
        return self._work(archive, batches, {}, timeout)


class KhronosInterpreter(_Oracle):
    """The interpreter of nnef_tools; it checks the inferred against the actual shape of every tensor."""

    name = "khronos-interpreter"
    role = "interpreter"

    def run_double(self, archive: Path, batches: Sequence[Sequence[Array]], *, timeout: float = 60.0) -> EngineReply:
        """Run in float64 throughout: a value that is wrong there too is an error of the graph, not a rounding error.

        Literals of the text stay float32, so expect differences of about 1e-8 from references in float64.
        """
        return self._work(archive, batches, {"double": True}, timeout)


class KhronosSession(_Oracle):
    """The C++ executor; it aborts on some graphs (see `session_objection`), which is a reply with status `crash`."""

    name = "khronos-session"
    role = "session"


class KhronosEngine:
    """The two oracles as one engine; implements `Engine`."""

    name = "khronos"
    version = VERSION
    kept_states = None

    def __init__(self) -> None:
        self.interpreter = KhronosInterpreter()
        self.session = KhronosSession()

    @staticmethod
    def shared() -> KhronosEngine:
        """Return the engine of this process, which starts with its first job; a forked process has its own."""
        with _shared_lock:
            if not _shared:
                _shared.append(KhronosEngine())
            return _shared[0]

    @staticmethod
    def close_shared() -> None:
        """End the processes of the shared engine; `shared` returns a fresh one afterwards."""
        with _shared_lock:
            engines = list(_shared)
            _shared.clear()
        for engine in engines:
            engine.close()

    def __repr__(self) -> str:
        return "KhronosEngine()"

    def run(self, archive: Path, batches: Sequence[Sequence[Array]], *, timeout: float = 60.0) -> EngineReply:
        """Return the interpreter's reply, or an error if the C++ executor can judge the graph and disagrees.

        The facts state which oracles ran: `judged_by`, a list; `session_max_error`, the largest difference between
        executor and interpreter; `session`, why the executor could not judge, or empty. `timeout` is in seconds, for
        each of them; an executor that needs more than SESSION_TIMEOUT is ignored.
        """
        reply = dataclasses.replace(self.interpreter.run(archive, batches, timeout=timeout), widened=True)
        if reply.status != "ok":
            return reply
        facts = {**reply.facts, "judged_by": ["interpreter"], "session": reply.facts["session_objection"]}
        del facts["session_objection"]
        if facts["session"] or not batches:
            return dataclasses.replace(reply, facts=facts)
        other = self.session.run(archive, batches, timeout=min(timeout, SESSION_TIMEOUT))
        if other.status != "ok":
            facts["session"] = f"the C++ executor: {other.status}: {other.message}"
            return dataclasses.replace(reply, facts=facts)
        facts["judged_by"] = ["interpreter", "session"]
        facts["session_max_error"] = _largest_error(reply, other)
        problem = _disagreement(reply, other)
        if problem:
            message = f"the two Khronos oracles disagree: {problem}"
            return dataclasses.replace(reply, status="error", message=message, outputs=(), facts=facts)
        return dataclasses.replace(reply, facts=facts)

    def close(self) -> None:
        self.interpreter.close()
        self.session.close()


_shared: list[KhronosEngine] = []
_shared_lock = threading.Lock()


def _forget() -> None:
    global _shared_lock
    _shared_lock = threading.Lock()  # another thread of the parent may have locked it
    for engine in _shared:
        engine.interpreter.abandon()
        engine.session.abandon()
    _shared.clear()


atexit.register(KhronosEngine.close_shared)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _pairs(reply: EngineReply, other: EngineReply) -> list[tuple[str, Array, Array]]:
    return [
        (f"batch {b}, output {o}", mine, theirs)
        for b, (first, second) in enumerate(zip(reply.outputs, other.outputs, strict=True))
        for o, (mine, theirs) in enumerate(zip(first, second, strict=True))
    ]


def _largest_error(reply: EngineReply, other: EngineReply) -> float:
    """Return the largest difference among the elements that are finite in both replies."""
    largest = 0.0
    for _, mine, theirs in _pairs(reply, other):
        if mine.shape == theirs.shape:
            both = np.isfinite(mine) & np.isfinite(theirs)
            difference = np.abs(mine[both].astype(np.float64) - theirs[both].astype(np.float64))
            largest = max(largest, float(difference.max(initial=0.0)))
    return largest


def _disagreement(reply: EngineReply, other: EngineReply) -> str:
    """Describe the first output that differs by more than rounding; return an empty text if none does."""
    for label, mine, theirs in _pairs(reply, other):
        if mine.dtype.kind != theirs.dtype.kind:
            return f"{label} is {mine.dtype} in the interpreter and {theirs.dtype} in the C++ executor"
        if mine.shape != theirs.shape:
            return f"{label} has shape {mine.shape} in the interpreter and {theirs.shape} in the C++ executor"
        if mine.dtype.kind != "f":
            agreed = np.array_equal(mine, theirs)
        else:
            finite = np.abs(mine[np.isfinite(mine)])
            scale = max(1.0, float(finite.max(initial=0.0)))
            agreed = np.allclose(theirs, mine, rtol=AGREEMENT_RTOL, atol=AGREEMENT_ATOL * scale, equal_nan=True)
        if not agreed:
            return f"{label} differs by up to {_largest_error(reply, other):.3g}"
    return ""
