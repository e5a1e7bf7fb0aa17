"""The work of a peer's process: one job per line of the input, as JSON, and one answer per line of the output."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Callable
from typing import Any

from conformance.lab.processes import open_answers


def answer_jobs(work: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Until the input ends; what a job raises is its answer."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    answers = open_answers()
    for line in sys.stdin:
        try:
            answer = work(json.loads(line))
        except Exception as cause:
            answer = {"error": f"{type(cause).__name__}: {cause}"[:300]}
        print(json.dumps(answer), file=answers, flush=True)
