from __future__ import annotations

import pytest

from t2n_core.engine.processes.death import explain_death
from t2n_core.engine.processes.excerpt import HEAD, TAIL, Excerpt

OLD = """thread '<unnamed>' panicked at 'index out of bounds: the len is 2', core/src/model/fact.rs:92:9
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
fatal runtime error: failed to initiate panic, error 5
"""
NEW = """
thread '<unnamed>' (4711) panicked at core/src/ops/array/concat.rs:17:23:
assertion `left == right` failed: shapes
  left: 1
 right: 2
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

thread '<unnamed>' (4711) panicked at /rustc/abc/library/core/src/panicking.rs:225:5:
panic in a function that cannot unwind
stack backtrace:
   0: somewhere
"""


BLOB = "thread '<unnamed>' panicked at data/src/blob.rs:76:13:\n"
NO_ROOM = "failed to allocate Layout { size: 9, align: 1 }"
NULL = "assertion failed: !self.data.is_null()"
RUST = "memory allocation of 216000000 bytes failed"
OLD_TOLD = "thread '<unnamed>' panicked at core/src/model/fact.rs:92:9: index out of bounds: the len is 2"
NEW_TOLD = """thread '<unnamed>' panicked at core/src/ops/array/concat.rs:17:23: \
assertion `left == right` failed: shapes
  left: 1
 right: 2"""


@pytest.mark.parametrize(
    ("exit_code", "stderr", "killed", "status", "message"),
    [
        (-6, OLD, False, "crash", OLD_TOLD),
        (-6, NEW, False, "crash", NEW_TOLD),
        (-6, NEW + OLD, False, "crash", NEW_TOLD),
        (-6, OLD + NEW, False, "crash", OLD_TOLD),
        (101, NEW.replace(" (4711)", ""), False, "crash", NEW_TOLD),
        (-6, "thread 'main' panicked at a.rs:1:2:\nshort", False, "crash", "thread 'main' panicked at a.rs:1:2: short"),
        (-6, f"{RUST}\n", False, "oom", RUST),
        (-6, f"{BLOB}{NO_ROOM}\n", False, "oom", NO_ROOM),
        (-6, f"{BLOB}{NULL}\n", False, "oom", NULL),
        (-9, "", False, "crash", "killed by SIGKILL from outside"),
        (-15, "", False, "crash", "killed by SIGTERM from outside"),
        (-2, "some warning\n", False, "crash", "killed by SIGINT from outside"),
        (-9, "", True, "timeout", "killed, since it did not answer in time"),
        (-9, "some warning\n", True, "timeout", "killed, since it did not answer in time"),
        (-9, NEW, True, "crash", NEW_TOLD),
        (-9, f"{BLOB}{NO_ROOM}\n", True, "oom", NO_ROOM),
        (-11, "", False, "crash", "died of SIGSEGV"),
        (-6, "", False, "crash", "died of SIGABRT"),
        (-127, "last words\n", False, "crash", "died of signal 127: last words"),
        (3, "one\ntwo\n", False, "crash", "exited with status 3 without an answer: two"),
        (0, "", False, "crash", "exited with status 0 without an answer"),
    ],
)
def test_every_death_has_a_status_and_a_reason(
    exit_code: int, stderr: str, killed: bool, status: str, message: str
) -> None:
    death = explain_death(exit_code, stderr, killed_by_us=killed)
    assert (death.status, death.message) == (status, message)


def test_a_kill_is_for_want_of_memory_where_the_system_says_so() -> None:
    death = explain_death(-9, "", killed_by_us=False, killed_for_memory=True)
    assert (death.status, death.message) == ("oom", "killed by the system, which ran out of memory")
    assert explain_death(-9, "", killed_by_us=True, killed_for_memory=True).status == "timeout"
    assert explain_death(-11, "", killed_by_us=False, killed_for_memory=True).status == "crash"


def test_an_endless_panic_message_is_cut() -> None:
    death = explain_death(-6, f"thread 'x' panicked at a.rs:1:1:\n{'y' * 100_000}\n", killed_by_us=False)
    assert 1000 < len(death.message) < 3000


@pytest.mark.parametrize("step", [1, 7, 4096])
def test_an_excerpt_keeps_both_ends(step: int) -> None:
    data = bytes(range(32, 127)) * 2000
    excerpt = Excerpt()
    for start in range(0, len(data), step):
        excerpt.add(data[start : start + step])
    text = excerpt.text().encode()
    dropped = len(data) - HEAD - TAIL
    assert text.startswith(data[:HEAD])
    assert text.endswith(data[-TAIL:])
    assert f"{dropped} bytes left out".encode() in text[HEAD:-TAIL]


def test_a_short_stream_is_kept_whole() -> None:
    excerpt = Excerpt()
    excerpt.add(b"a" * HEAD)
    excerpt.add(b"b" * TAIL)
    assert excerpt.text() == "a" * HEAD + "b" * TAIL
