"""The logger `t2n_core`: what an export and its check do, and how long each stage takes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.engine import close_all
from tests.releases import NEWEST


class Messages(logging.Handler):
    """Keeps the messages of all records."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@pytest.fixture
def messages() -> Iterator[list[str]]:
    logger, handler = logging.getLogger("t2n_core"), Messages()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler.texts
    logger.setLevel(before)
    logger.removeHandler(handler)


def test_captures_stages_and_processes_are_logged(messages: list[str], tmp_path: Path) -> None:
    close_all()
    x = (torch.randn(2, 3), torch.randn(2, 3))
    ModelExport(nn.PairwiseDistance(), x).to(TractNNEF(NEWEST), tmp_path / "m").assert_parity()
    for beginning in (
        "capture of PairwiseDistance at [(2, 3), (2, 3)]",
        "capture took ",
        "decomposition of aten::pairwise_distance into ",
        "lower took ",
        "write took ",
        "reference took ",
        "the worker t2n_core.engine.tract.worker starts",
    ):
        assert any(text.startswith(beginning) for text in messages), messages
