"""The pipes of a worker, which nothing else in its process can use."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import t2n_core
from t2n_core.engine.processes.wire import encode_frame


def test_only_frames_get_on_the_channel() -> None:
    script = """
        import os, sys
        from t2n_core.engine.processes.channel import claim_channel
        from t2n_core.engine.processes.wire import read_frame, write_frame
        requests, channel = claim_channel()
        os.write(1, b"engine prints")
        print("python prints", flush=True)
        assert os.read(0, 1) == b""
        write_frame(channel, {"got": read_frame(requests).header["n"]})
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        input=b"".join(map(bytes, encode_frame({"n": 5}))),
        capture_output=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(t2n_core.__file__).parents[1])},
    )
    assert done.stdout == b"".join(map(bytes, encode_frame({"got": 5})))
    assert b"engine prints" in done.stderr
    assert b"python prints" in done.stderr
