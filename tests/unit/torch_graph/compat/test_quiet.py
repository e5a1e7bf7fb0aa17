"""Nobody hears what PyTorch's tracers say, unless TORCH_TRACE asks for it."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.capture.tracer import TorchModuleTracer
from t2n_core.torch_graph.compat.quiet import quiet
from t2n_core.torch_graph.frontend.inputs import bind_inputs

LOG = logging.getLogger("torch.__trace")


class Listener(logging.Handler):
    """`root_dir` is what PyTorch's own handler has for TORCH_TRACE."""

    def __init__(self, root_dir: Path | None = None) -> None:
        super().__init__()
        self.root_dir = root_dir
        self.heard: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(record)


def capture(*listeners: Listener) -> None:
    before = LOG.handlers
    LOG.handlers = list(listeners)
    try:
        model = nn.Linear(3, 2).eval()
        TorchModuleTracer(model, args=bind_inputs(model, (torch.randn(4, 3),))).trace()
        assert LOG.handlers == list(listeners)
    finally:
        LOG.handlers = before


def test_the_trace_is_written_only_for_a_folder(tmp_path: Path) -> None:
    plain, tracing = Listener(), Listener(tmp_path)
    capture(plain)
    assert not plain.heard
    capture(plain, tracing)
    assert not plain.heard
    assert any("describe_tensor" in vars(record).get("metadata", {}) for record in tracing.heard)


def test_the_handlers_come_back_after_a_failure() -> None:
    before = LOG.handlers
    with pytest.raises(ZeroDivisionError), warnings.catch_warnings(), quiet():
        raise ZeroDivisionError
    assert LOG.handlers is before


class Undecided(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Undecided(), "has Python control flow that depends on values in a tensor"),
        (nn.Linear(5, 2), "must have same reduction dim"),
    ],
)
def test_a_failure_is_said_once(
    model: nn.Module, message: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = Listener()
    for name in ("torch", "torch.fx.experimental.symbolic_shapes", "torch._subclasses.fake_tensor"):
        log = logging.getLogger(name)
        monkeypatch.setattr(log, "handlers", [*log.handlers, listener])
    with pytest.raises(CaptureError, match=message) as wrong:
        TorchModuleTracer(model, args=bind_inputs(model, (torch.randn(4, 3),))).trace()
    assert capfd.readouterr() == ("", "")
    assert not listener.heard
    if isinstance(model, Undecided):
        assert wrong.value.origin is not None
        assert wrong.value.origin.source.endswith("in forward: `return x if x.sum() > 0 else -x`")
