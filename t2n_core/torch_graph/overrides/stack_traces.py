"""Record the line of the model that each node comes from, without the cost of full tracebacks.

torch.export records Python's stack for every node. For that it looks up each frame's file, line and code, also of
pytest, this package and PyTorch, and then keeps the frames called `forward`; so a capture takes longer the deeper the
stack that it is called from. Here the other frames are skipped at once. The text is the same. A mode of fake tensors
records the stack as well, for an error between two modes; here it records none.
"""

from __future__ import annotations

import sys
import traceback
from traceback import FrameSummary, StackSummary
from types import FrameType
from typing import Any

from t2n_core.torch_graph.overrides.registry import patch

_KEPT = "forward"
"""Name of the functions whose frames torch.fx keeps."""


class ForwardFrames:
    """Replacement for `CapturedTraceback` of torch.fx that takes only the frames of the stack that torch.fx keeps."""

    def __init__(self, frames: list[FrameSummary]) -> None:
        self._frames = frames

    @staticmethod
    def extract(**_: Any) -> ForwardFrames:
        frames: list[FrameSummary] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_name == _KEPT:
                frames.append(FrameSummary(frame.f_code.co_filename, frame.f_lineno, _KEPT, lookup_line=False))
            frame = frame.f_back
        return ForwardFrames(frames[::-1])

    def summary(self) -> StackSummary:
        return StackSummary.from_list(self._frames)


@patch(
    "torch.fx.proxy.CapturedTraceback",
    reason="the full traceback of a node takes longer than its capture",
    optional=True,
)
def short_stack_traces(_: Any) -> Any:
    """Return the class that takes the lines of `forward` functions only."""
    return ForwardFrames


class _NoStack:
    """Replacement for Python's `traceback` where a mode of fake tensors records its stack."""

    extract_stack = StackSummary
    format_list = staticmethod(traceback.format_list)


@patch(
    "torch._subclasses.fake_tensor.traceback",
    reason="a mode records the stack for an error between two modes, which takes longer the deeper the stack is",
    optional=True,
)
def no_stack_of_modes(_: Any) -> Any:
    """Return the module that records no stack."""
    return _NoStack
