"""Diagnosis of a process that ended without an answer: a status and a reason from its exit code and last output."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_NEW_PANIC = re.compile(
    r"thread '(?P<thread>[^']*)'[^\n]*? panicked at (?P<place>[^'\n]+?:\d+:\d+):\n(?P<message>.*?)"
    r"(?=\n(?:note: |stack backtrace:|thread '|fatal runtime error)|\n*\Z)",
    re.DOTALL,
)
_OLD_PANIC = re.compile(
    r"thread '(?P<thread>[^']*)'[^\n]*? panicked at '(?P<message>.*?)', (?P<place>[^\s',]+:\d+:\d+)", re.DOTALL
)
_NO_MEMORY = re.compile(
    r"memory allocation of \d+ bytes failed"  # Rust's own
    r"|failed to allocate Layout \{[^\n]*"  # tract's, 0.21 and later
    r"|assertion failed: !(?:ptr|self\.data)\.is_null\(\)"  # tract's, where the message is missing
)
_MEMORY_KILLS = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)
_LONGEST = 2000
FROM_OUTSIDE = "from outside"
"""The end of the reason of a death that no job caused."""
_SENT = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
"""Signals that no fault of a process raises."""


@dataclass(frozen=True, slots=True)
class Death:
    status: Literal["crash", "timeout", "oom"]
    message: str


def explain_death(exit_code: int | None, stderr: str, *, killed_by_us: bool, killed_for_memory: bool = False) -> Death:
    """Return status and reason of a death. `exit_code` is negative for a signal, as in subprocess; None if unknown.

    `killed_for_memory` states that the system killed a process meanwhile because memory ran out: a signal has no
    reason. A panic takes precedence over a kill from here: no process survives a panic, but it can hang while it
    panics.
    """
    if match := _NO_MEMORY.search(stderr):
        return Death("oom", match[0])
    if panic := first_panic(stderr):
        return Death("crash", panic)
    if killed_by_us:
        return Death("timeout", "killed, since it did not answer in time")
    if exit_code is not None and exit_code < 0:
        name = _signal_name(-exit_code)
        if name == "SIGKILL" and killed_for_memory:
            return Death("oom", "killed by the system, which ran out of memory")
        if name in _SENT:
            return Death("crash", f"killed by {name} {FROM_OUTSIDE}")
        return Death("crash", f"died of {name}{_last_line(stderr)}")
    return Death("crash", f"exited with status {exit_code} without an answer{_last_line(stderr)}")


def count_memory_kills() -> int:
    """Return how many processes the system has killed because memory ran out; 0 if it does not report that."""
    try:
        text = Path("/proc/vmstat").read_text()
    except OSError:
        return 0
    match = _MEMORY_KILLS.search(text)
    return int(match[1]) if match else 0


def first_panic(stderr: str) -> str:
    """Return the first Rust panic as `thread '<unnamed>' panicked at FILE:LINE:COLUMN: message`, in every version."""
    panics = [match for pattern in (_NEW_PANIC, _OLD_PANIC) if (match := pattern.search(stderr))]
    if not panics:
        return ""
    first = min(panics, key=lambda match: match.start())
    text = f"thread '{first['thread']}' panicked at {first['place']}: {first['message'].strip()}"
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " […]"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_line(stderr: str) -> str:
    lines = stderr.strip().splitlines()
    return f": {lines[-1][:_LONGEST]}" if lines else ""
