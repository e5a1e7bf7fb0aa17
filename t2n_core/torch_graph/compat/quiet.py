"""Silence for PyTorch's tracers."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from t2n_core.torch_graph.compat.patches import replaced


@contextmanager
def quiet() -> Iterator[None]:
    """Silence PyTorch's tracers, which warn about their internals and log each step.

    There is always a handler: pytest's, which would show the text, and a PyTorch handler that discards it. Only
    TORCH_TRACE's, which writes to a folder, is kept; without a handler no text is formatted. Warnings before an
    exception are part of our error, so they are not repeated.
    """
    log = logging.getLogger("torch.__trace")
    before = log.handlers
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log.handlers = [handler for handler in before if getattr(handler, "root_dir", None)]
        for complaining in _COMPLAINING:
            complaining.addFilter(_is_asked_for)
        try:
            with replaced("torch.export._trace.print", lambda _: _print_nothing, optional=True):  # the graph so far
                yield
        finally:
            log.handlers = before
            for complaining in _COMPLAINING:
                complaining.removeFilter(_is_asked_for)


_COMPLAINING = [logging.getLogger(f"torch.{n}") for n in ("fx.experimental.symbolic_shapes", "_subclasses.fake_tensor")]


def _is_asked_for(record: logging.LogRecord) -> bool:
    """Return whether a record is below the level of warnings, so that it appears only if TORCH_LOGS asks for it."""
    return record.levelno < logging.WARNING


def _print_nothing(*texts: object, **options: object) -> None: ...
