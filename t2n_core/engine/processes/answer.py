"""Assembly of a reply from the events of one job in a worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from t2n_core.engine.processes.death import count_memory_kills, explain_death
from t2n_core.engine.processes.wire import Frame
from t2n_core.engine.protocol import Array, ChangedCall, EngineReply, EngineStage, ReplyStatus


class Answer:
    """The events of one job, as they arrive."""

    def __init__(self, main: Answer | None = None) -> None:
        """Start an answer; `main` is the main path's answer, if this is for a further path of the same job."""
        self._main = main
        self._further: list[Answer] = []
        self.lost = False
        """True if the worker exited on its own before it sent any event of the job."""
        self.started = False
        self._memory_kills = count_memory_kills()
        self._status: ReplyStatus | None = None
        self._stage: EngineStage = "load"
        self._message = ""
        self._stderr = ""
        self._outputs: list[tuple[Array, ...]] = []
        self._refused: dict[int, str] = {}
        self._changed: list[ChangedCall] = []
        self._times: Mapping[str, float] = {}
        self._facts: Mapping[str, Any] = {}

    def take(self, frame: Frame) -> None:
        self.started = True
        event, header = frame.header["event"], frame.header
        if event == "path":
            self._last()._end_path(header["times"])
            self._further.append(Answer(self))
        elif self._further:
            self._further[-1].take(frame)
        elif event == "stage":
            self._stage = header["stage"]
        elif event == "facts":
            self._facts = {**self._facts, **header["facts"]}
        elif event == "outputs":
            self._outputs.append(tuple(frame.arrays()))
        elif event == "same" and self._main is not None:
            self._outputs.append(self._main._outputs[header["batch"]])
        elif event == "refused":
            self._refused[len(self._outputs)] = header["message"]
            self._outputs.append(())
        elif event == "changed":
            self._changed.append(ChangedCall(header["call"], tuple(frame.arrays()), header.get("message", "")))
        else:
            self._status = {"done": "ok", "oom": "oom"}.get(event, "error")  # type: ignore[assignment]
            self._message = header.get("message", "")
            self._times = header.get("times", {})

    def _last(self) -> Answer:
        """Return the answer of the path that the job is on."""
        return self._further[-1] if self._further else self

    def _end_path(self, times: Mapping[str, float]) -> None:
        self._status, self._times = "ok", times

    def take_end(self, frame: Frame) -> None:
        header, last = frame.header, self._last()
        last._stderr = header["stderr"]
        if last._status is None or header["exit"]:
            self.take_death(header["exit"], header["stderr"], killed_by_us=header["killed"])

    def take_death(self, exit_code: int | None, stderr: str, *, killed_by_us: bool) -> None:
        if self._further:
            self._further[-1].take_death(exit_code, stderr, killed_by_us=killed_by_us)
            return
        killed_for_memory = count_memory_kills() > self._memory_kills
        death = explain_death(exit_code, stderr, killed_by_us=killed_by_us, killed_for_memory=killed_for_memory)
        self._status, self._message, self._stderr = death.status, death.message, stderr

    def reply(self) -> EngineReply:
        return EngineReply(
            status=self._status or "crash",
            stage=self._stage,
            message=self._message,
            stderr=self._stderr,
            outputs=tuple(self._outputs),
            times=self._times,
            facts=self._facts,
            refused=self._refused,
            changed=tuple(self._changed),
            further=tuple(answer.reply() for answer in self._further),
        )
