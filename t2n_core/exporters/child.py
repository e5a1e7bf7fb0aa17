"""The process of an exporter: it reads a pickled exporter and request, which its own user's process wrote.

Each export runs in a fork, where the system has one, since an exporter may leave state in its process: torch.onnx
refuses the second LSTM with a dynamic length, and exports the first one.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from t2n_core.engine.processes.jobs import Answers, serve
from t2n_core.engine.processes.wire import Frame
from t2n_core.exporters.exporter import Exporter, export_by, first_cause

_WARM: Final[set[str]] = set()
"""The names of the exporters that have been warmed up."""


def answer(job: Frame) -> Answers:
    """Yield the declared sizes of an export, or why it was refused."""
    import cloudpickle
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    for name in job.header["modules"]:  # before the fork, so that the next one has them too
        with suppress(BaseException):  # a module of tests may be skipped as a whole
            import_module(name)
    request = Path(job.header["request"])
    exporter = cloudpickle.loads(request.with_suffix(".exporter").read_bytes())
    if exporter.name not in _WARM:
        _WARM.add(exporter.name)
        with suppress(Exception):
            exporter.warm_up()
        gc.freeze()  # a collection in a fork would copy the pages of what was there before
    yield (_in_fork(exporter, request) if hasattr(os, "fork") else _export(exporter, request)), []


def _in_fork(exporter: Exporter, request: Path) -> dict[str, Any]:
    """Return the event of an export in a fork of this process."""
    result = request.with_suffix(".json")
    child = os.fork()
    if not child:
        with suppress(BaseException):
            result.write_text(json.dumps(_export(exporter, request)), "utf-8")
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not result.exists():
        return {"event": "refused", "kind": "ProcessEnded", "message": f"its process ended with {status}"}
    event: dict[str, Any] = json.loads(result.read_text("utf-8"))
    return event


def _export(exporter: Exporter, path: Path) -> dict[str, Any]:
    """Return the event of an export."""
    import cloudpickle

    try:
        request = cloudpickle.loads(path.read_bytes())
        declared = export_by(exporter, request)
        bounds = {name: list(both) for name, both in declared.bounds.items()}
        return {"event": "exported", "bounds": bounds, "default": list(declared.default)}
    except Exception as error:
        cause = first_cause(error)
        return {"event": "refused", "kind": type(cause).__name__, "message": str(cause)}


if __name__ == "__main__":
    sys.exit(serve(answer))
