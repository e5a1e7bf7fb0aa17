"""Stages, statuses and authors of a cell. Does not import numpy, so that reports can be read without it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

AUTHOR: Final = "author"
"""Fact of a mismatch: an `Author` as text."""


class Stage(StrEnum):
    """The stages of a cell, in order."""

    SETUP = "setup"
    INPUT = "input"
    CAPTURE = "capture"
    LOWER = "lower"
    SPEC = "spec"
    WRITE = "write"
    LOAD = "load"
    OPTIMISE = "optimise"
    RUN = "run"
    COMPARE = "compare"


class Status(StrEnum):
    """The ways in which a cell can end."""

    PASS = "pass"
    WEAK = "weak"
    """The outputs agree, but prove little: an output does not change with the inputs, or is empty."""
    MISMATCH = "mismatch"
    UNSUPPORTED = "unsupported"
    ERROR = "error"
    CRASH = "crash"
    TIMEOUT = "timeout"
    OOM = "oom"
    SKIP = "skip"
    NOT_RUN = "not_run"


PASSING: Final = (Status.PASS, Status.WEAK)
"""Statuses of cells whose outputs agree."""


class Author(StrEnum):
    """The side of a mismatch whose values differ from what the archive says."""

    EXPORTER = "exporter"
    ENGINE = "engine"
    BOTH = "both"
