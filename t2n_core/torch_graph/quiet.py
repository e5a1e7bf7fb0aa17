"""Silence for PyTorch's tracers."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """PyTorch's tracers warn of their own internals and log every step at level DEBUG, which pytest would show."""
    logger = logging.getLogger("torch.__trace")
    level = logger.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logger.setLevel(logging.WARNING)
        try:
            yield
        finally:
            logger.setLevel(level)
