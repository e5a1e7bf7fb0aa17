"""The process of an exporter, in its environment: `python -m conformance.lab.measure.peers.worker < jobs > answers`.

A line of the input is a job in JSON, a line of the output its answer. `kind` names the module of this folder whose
`work` does the job, and `exporter` who is to export.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from importlib import import_module

from conformance.lab.processes import open_answers


def main() -> None:
    """Answer jobs until the input ends; the cause of what a job raises is its answer."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    answers = open_answers()
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer = import_module(f"{__package__}.{job['kind']}").work(job)
        except Exception as cause:
            answer = {"error": _reason(cause)}
        print(json.dumps(answer), file=answers, flush=True)


def _reason(error: BaseException) -> str:
    """Return the class and message of the first cause of an error: torch.onnx wraps it in advice."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}"[:300]


if __name__ == "__main__":
    main()
