"""The two pipes of a worker to its parent."""

from __future__ import annotations

import io
import os

from t2n_core.engine.processes.bound import end_with_parent
from t2n_core.engine.processes.wire import widen_pipe


def claim_channel() -> tuple[io.FileIO, io.FileIO]:
    """Return files over descriptors 0 and 1, which nothing else in this process can use from then on.

    On Linux this process ends with its parent, also while it is stopped and so cannot notice the end of the pipe.
    """
    end_with_parent()
    requests = os.fdopen(os.dup(0), "rb", buffering=0)
    channel = os.fdopen(os.dup(1), "wb", buffering=0)
    for pipe in (requests, channel):
        widen_pipe(pipe.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, channel
