"""Which other release loads a file that one did not load in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from t2n_core.engine.protocol import EngineReply
from t2n_core.errors import EngineProvisionError
from t2n_core.parity.outcomes import failure_outcome
from t2n_core.releases.loading import with_hint_on_loading, with_loading_release
from tests.releases import RECENT

LATE = EngineReply("timeout", "load", "killed, since it did not answer in time")
REFUSED = EngineReply("error", "load", "no such operator")
LOADED = EngineReply("ok", "run")
ARCHIVE = Path("model.nnef.tgz")


class Machine:
    """Releases on a machine, with what each replies; one without a reply is damaged."""

    def __init__(self, **replies: EngineReply) -> None:
        self.replies = {Version(name.lstrip("v").replace("_", ".")): reply for name, reply in replies.items()}
        self.cached = sorted([*self.replies, Version("0.22.3"), Version("0.23.8")])
        self.asked: list[str] = []

    def engine(self, release: Version) -> Any:
        if release not in self.replies:
            raise EngineProvisionError("damaged")
        self.asked.append(str(release))
        reply = self.replies[release]

        class Engine:
            def run(self, archive: Path, batches: Any, *, timeout: float) -> EngineReply:
                assert (archive, batches, timeout) == (ARCHIVE, [], 10.0)
                return reply

        return Engine()


@pytest.mark.parametrize(
    ("replies", "asked", "hint"),
    [
        ({"v0_22_4": LOADED, "v0_21_19": LOADED}, ["0.22.4"], "tract 0.22.4 loads the same file in 0.1 s"),
        (
            {"v0_22_4": LATE, "v0_21_19": LOADED, "v0_21_13": REFUSED},
            ["0.22.4", "0.21.19"],
            "tract 0.22.4 does not load it either (not in 10 s); tract 0.21.19 loads the same file in 0.1 s",
        ),
        (
            {"v0_21_19": REFUSED, "v0_20_22": LATE, "v0_19_15": LOADED},
            ["0.21.19", "0.20.22"],
            "tract 0.21.19 does not load it either (error at load)",
        ),
        ({}, [], "`t2n bisect-releases` names the releases that load it"),
    ],
)
def test_hint_of_a_time_out_at_load(replies: dict[str, EngineReply], asked: list[str], hint: str) -> None:
    machine = Machine(**replies)
    outcome = with_loading_release(failure_outcome(LATE, (), {}, 60), ARCHIVE, RECENT, machine)
    assert machine.asked == asked
    assert outcome.error is not None
    assert outcome.error.hint.startswith(hint)
    assert "give it more time: --timeout of `t2n`, or of a test --t2n-timeout" in outcome.error.hint


@pytest.mark.parametrize("reply", [REFUSED, EngineReply("timeout", "run", "killed"), EngineReply("crash", "load", "")])
def test_other_failures_try_no_release(reply: EngineReply) -> None:
    outcome = failure_outcome(reply, (), {}, 60)
    assert with_hint_on_loading(outcome, ARCHIVE, RECENT, Path("/nowhere")) is outcome
    assert outcome.error is not None
    assert "bisect-releases" not in outcome.error.hint
