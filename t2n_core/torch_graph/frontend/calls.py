"""Wrap a method of a model as a function of flat tensors, which nests the arguments and flattens the results."""

from __future__ import annotations

from typing import Any

import torch

from t2n_core.torch_graph.frontend.inputs import ModelInputs
from t2n_core.torch_graph.frontend.results import Results, as_tensor
from t2n_core.torch_graph.frontend.sources import Source
from t2n_core.torch_graph.naming import ROOT

_jit: Any = torch.jit


class FlatCall(torch.nn.Module):
    """Module whose `forward(*tensors)` is the example call with these tensors instead of the example's."""

    def __init__(self, source: Source, inputs: ModelInputs) -> None:
        super().__init__()
        self.training = source.module.training
        self.add_module(ROOT, source.module)
        self.source, self.inputs = source, inputs
        self.results = Results()

    def forward(self, *tensors: torch.Tensor) -> tuple[Any, ...]:
        args, kwargs = self.inputs.arguments_with(tensors)
        outputs = self.results.flat(self.source.run(args, kwargs))
        return tuple(map(as_tensor, outputs)) if _jit.is_tracing() else outputs  # a trace returns only tensors
