"""Trace a model at the sizes of its example, and compare the trace with traces at other sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch.overrides import TorchFunctionMode

from t2n_core.errors import CaptureError, FrozenDecisionWarning, InputError
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.torch_graph.capture.containers import preserve_containers
from t2n_core.torch_graph.capture.errors import refusal_to_trace, with_source_line
from t2n_core.torch_graph.capture.trace_comparison import Bounds, frozen_sizes
from t2n_core.torch_graph.constraints.capture_sizes import Axes, example_sizes, resize_example
from t2n_core.torch_graph.frontend.calls import FlatCall
from t2n_core.torch_graph.frontend.inputs import ModelInputs
from t2n_core.torch_graph.frontend.sources import Source
from t2n_core.torch_graph.frontend.torchscript.traces import trace_call
from t2n_core.torch_graph.proofs.compared_numbers import compared_numbers

_LARGEST = 1 << 22
"""Most elements of the inputs of a trace that is compared."""


@dataclass(frozen=True, slots=True)
class Tracing:
    """A model, its example and its dynamic axes, for traces with any tensors of these axes."""

    source: Source
    inputs: ModelInputs
    modes: Sequence[TorchFunctionMode]
    axes: Axes

    def trace(
        self, tensors: Sequence[torch.Tensor], call: FlatCall | None = None
    ) -> tuple[torch.jit.ScriptModule, list[FrozenDecisionWarning]]:
        """Return a trace with these tensors, and a warning for each line that reads an element.

        `call` is traced instead of a new one, and then holds the structure of the results. Raises CaptureError.
        """
        try:
            with preserve_containers(self.source.module):
                return trace_call(call or FlatCall(self.source, self.inputs), tensors, self.modes)
        except CaptureError as refused:
            raise with_source_line(refused) from refused.__cause__
        except Exception as cause:
            raise refusal_to_trace(cause, self.source.name) from cause

    def trace_and_compare(
        self, tensors: Sequence[torch.Tensor], call: FlatCall, declared: SizeRange
    ) -> tuple[torch.jit.ScriptModule, list[FrozenDecisionWarning], dict[str, Bounds]]:
        """Return a trace as `trace` does, with further warnings for lines that differ in traces at other sizes.

        The last result are the ranges of the sizes at which the trace is right, where they are narrower. Raises
        CaptureError, also for a trace that is right at one size of a dynamic axis alone.
        """
        script, frozen = self.trace(tensors, call)

        def trace_at(sizes: Mapping[str, int]) -> torch.jit.ScriptModule:
            others = resize_example(self.axes, self.inputs.names, tensors, sizes)
            if sum(tensor.numel() for tensor in others) > _LARGEST:
                raise InputError(f"inputs of {sizes} are too large for a further trace")
            return self.trace(others)[0]

        example = example_sizes(self.axes, self.inputs.names, tensors)
        numbers = compared_numbers(self.source.module)
        size_warnings, limits = frozen_sizes(script, trace_at, example, declared.bounds, frozen, numbers)
        fixed = [name for name, (low, high) in limits.items() if low == high]
        if fixed:
            raise CaptureError(
                f"the axis `{fixed[0]}` is not free in a trace: {size_warnings[0] if size_warnings else frozen[0]}",
                hint='keep the axis static, or leave capture="trace" out',
            )
        return script, [*frozen, *size_warnings], limits
