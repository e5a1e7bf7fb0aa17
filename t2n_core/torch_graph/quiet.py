"""Silence for PyTorch's tracers."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """PyTorch's tracers warn of their own internals, and write each step as text for whoever listens to their log.

    Somebody always does: pytest, which would show it, and a handler of PyTorch that throws it away. Only that of
    TORCH_TRACE, which writes to a folder, is wanted; without a handler no text is made.
    """
    log = logging.getLogger("torch.__trace")
    before = log.handlers
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log.handlers = [one for one in before if getattr(one, "root_dir", None)]
        try:
            yield
        finally:
            log.handlers = before
