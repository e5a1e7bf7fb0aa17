"""The state of an archive: pairs of inputs and the outputs that are their next values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from t2n_core.parity.state_pairs import StatePair
from t2n_core.torch_graph.frontend.inputs import ModelInputs
from t2n_core.torch_graph.frontend.pytree.structure import leaves_with_path
from t2n_core.torch_graph.frontend.results import Results
from t2n_core.torch_graph.frontend.state.first_call import zeros_of
from t2n_core.torch_graph.frontend.state.state import ModelState


def state_pairs(
    state: ModelState, inputs: ModelInputs, results: Results, input_names: Sequence[str], output_names: Sequence[str]
) -> tuple[StatePair, ...]:
    """Return the pairs of a graph with these names of inputs and outputs, in the order of the inputs.

    An input that a call does not change, or that the graph does not read, is in no pair.
    """
    tensors = {one.input: one for one in state.tensors}
    paths = [path for path, leaf in leaves_with_path((inputs.args, inputs.kwargs)) if isinstance(leaf, torch.Tensor)]
    after = {path[0]: name for path, name in zip(results.paths, output_names, strict=True)}
    pairs = []
    for path, name in zip(paths, inputs.names, strict=True):
        one = tensors.get(path[-1]) if path[:1] == (1,) and path[1] in state.examples else None
        if one is not None and not one.is_kept and name in input_names:
            initial = np.asarray(zeros_of(one).numpy())  # the example's state is not an initial one
            pairs.append(StatePair(name, after[one.output], initial, one.growing))
    return tuple(pairs)
