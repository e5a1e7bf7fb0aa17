"""Calls of a model with state, as a program makes them: each call takes the object that the previous call returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from t2n_core.check.sampling.sampler import sizes_of
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.op.stored.source import StoredSource, StoredWeights
from t2n_core.parity.samples import Sample
from t2n_core.torch_graph.capture.tracer import CapturedModel
from t2n_core.torch_graph.frontend.inputs import ModelInputs
from t2n_core.torch_graph.frontend.pytree.objects import part_at
from t2n_core.torch_graph.frontend.pytree.structure import Path, leaves_with_path
from t2n_core.torch_graph.frontend.results import as_tensor
from t2n_core.torch_graph.frontend.sources import Source
from t2n_core.torch_graph.frontend.state.state import ModelState

COUNT = 4
"""Calls in a row: a value that moves from place to place of a state shows only after some of them."""


def run_calls(
    source: Source,
    inputs: ModelInputs,
    captured: CapturedModel,
    samples: Sequence[Sample],
    valid_range: SizeRange,
    stored: StoredWeights,
) -> list[Sample]:
    """Return the inputs and outputs of calls of the user's own model, with the state that goes into each call.

    The other inputs come from samples of the example's sizes. There are fewer calls than `COUNT` if the sizes leave the
    range or the model refuses what it returned, and none if fewer than two are left.
    """
    state = source.state
    alike = [sample for sample in samples if sample.sizes == dict(captured.symbols)]
    if state is None or not alike:
        return []
    plain = replace(source, state=None)
    model = StoredSource(plain, stored) if stored else plain
    shapes = [value.shape for value in captured.graph.inputs]
    order = [path[0] for path in captured.results.paths]
    calls: list[Sample] = []
    objects: dict[str, Any] = {}
    for number in range(COUNT):
        tensors = [torch.from_numpy(np.array(array)) for array in alike[number % len(alike)].inputs]
        args, kwargs = inputs.arguments_with(tensors)
        objects = objects or {name: state.object_of(name, list(kwargs[name].values())) for name in state.examples}
        call_tensors = _with_state(inputs, tensors, state, objects)
        sizes = sizes_of(shapes, call_tensors)
        if not valid_range.holds(sizes):
            break
        arrays = tuple(map(_copied, call_tensors))
        try:
            with torch.no_grad():
                result = model.run(args, {**kwargs, **objects})
            following = {name: state.following(name, result, value) for name, value in objects.items()}
            named_results = {
                **state.results_of(result, [value for name, value in following.items() if value is objects[name]]),
                **{tensor.output: part_at(following[tensor.argument], tensor.path) for tensor in state.tensors},
            }
            expected = tuple(_copied(as_tensor(named_results[name])) for name in order)
        except Exception:  # a program cannot pass it back either
            break
        calls.append(Sample(arrays, expected, sizes, f"call {number + 1}"))
        objects = following
    return calls if len(calls) > 1 else []


def _with_state(
    inputs: ModelInputs, tensors: Sequence[torch.Tensor], state: ModelState, objects: Mapping[str, Any]
) -> list[torch.Tensor]:
    """Return the tensors of a call, with the state's tensors taken from its objects."""
    places = {state_tensor.input: state_tensor for state_tensor in state.tensors}
    paths = [path for path, leaf in leaves_with_path((inputs.args, inputs.kwargs)) if isinstance(leaf, torch.Tensor)]

    def current(path: Path, tensor: torch.Tensor) -> torch.Tensor:
        state_tensor = places.get(path[-1]) if path[0] == 1 and path[1] in objects else None
        return tensor if state_tensor is None else part_at(objects[state_tensor.argument], state_tensor.path)

    return list(map(current, paths, tensors))


def _copied(tensor: torch.Tensor) -> Any:
    """Return a separate array, since a later call may write into the tensor."""
    return np.array(tensor.detach().cpu().numpy())
