"""Silence for PyTorch's tracers."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from t2n_core.torch_graph.compat.patches import replaced


@contextmanager
def quiet() -> Iterator[None]:
    """Silence PyTorch's tracers, which warn of their own internals and write each step to their log.

    Someone always does: pytest, which would show it, and a handler of PyTorch that throws it away. Only that of
    TORCH_TRACE, which writes to a folder, is wanted; without a handler no text is made. What they complain of before
    they raise an exception is in our error, so it is not said twice.
    """
    log = logging.getLogger("torch.__trace")
    before = log.handlers
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log.handlers = [one for one in before if getattr(one, "root_dir", None)]
        for complaining in _COMPLAINING:
            complaining.addFilter(_is_asked_for)
        try:
            with replaced("torch.export._trace.print", lambda _: _unprinted, optional=True):  # of the graph so far
                yield
        finally:
            log.handlers = before
            for complaining in _COMPLAINING:
                complaining.removeFilter(_is_asked_for)


_COMPLAINING = [logging.getLogger(f"torch.{n}") for n in ("fx.experimental.symbolic_shapes", "_subclasses.fake_tensor")]


def _is_asked_for(record: logging.LogRecord) -> bool:
    """Return whether a record is below the level of warnings, so that it appears only if TORCH_LOGS asks for it."""
    return record.levelno < logging.WARNING


def _unprinted(*texts: object, **options: object) -> None: ...
