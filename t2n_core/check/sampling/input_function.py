"""Inputs from a user's function of sizes, instead of random inputs."""

from __future__ import annotations

import contextlib
import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from t2n_core.errors import InputError
from t2n_core.nnef.sizes.dims import Shape, evaluate
from t2n_core.parity.samples import Array
from t2n_core.torch_graph.frontend.inputs import ModelInputs


@dataclass(frozen=True, slots=True)
class InputFunction:
    """A function from the sizes of dynamic axes, by name, to arguments of the model, or None if there are none."""

    function: Callable[[Mapping[str, int]], Any]
    bind: Callable[[Any], ModelInputs]
    """Binds the function's result to the model's parameters, like the example."""

    def arrays(
        self, sizes: Mapping[str, int], turn: object, shapes: Sequence[Shape], example: ModelInputs
    ) -> list[Array] | None:
        """Return the function's inputs for these sizes.

        Each turn has a separate random seed, the same in every session.

        Raises InputError for exceptions of the function, and for inputs of other names, types or shapes.
        """
        where = ", ".join(f"{name}={size}" for name, size in sizes.items()) or "the example's sizes"
        try:
            with _seeded_generators((sorted(sizes.items()), turn)):
                returned = self.function(dict(sizes))
        except Exception as cause:
            raise InputError(f"the function of `inputs` failed at {where}: {type(cause).__name__}: {cause}") from cause
        if returned is None:
            return None
        call = self.bind(returned)
        if call.names != example.names:
            raise InputError(
                f"the function of `inputs` returned {', '.join(call.names)} at {where}; the model has "
                f"{', '.join(example.names)}"
            )
        converted = []
        for name, tensor, like, shape in zip(call.names, call.tensors, example.tensors, shapes, strict=True):
            expected = [evaluate(extent, sizes) for extent in shape]
            if list(tensor.shape) != expected:
                actual = list(tensor.shape)
                raise InputError(
                    f"the function of `inputs` returned `{name}` of shape {actual} at {where}, where it is {expected}"
                )
            if tensor.dtype == torch.bfloat16 and like.dtype == torch.float32:  # the model was widened, too
                tensor = tensor.float()
            if tensor.dtype != like.dtype:
                raise InputError(
                    f"the function of `inputs` returned `{name}` in {tensor.dtype}, the example has {like.dtype}"
                )
            converted.append(np.array(tensor.detach().cpu().numpy()))
        return converted


@contextlib.contextmanager
def _seeded_generators(words: object) -> Iterator[None]:
    """Seed the generators of torch, NumPy and Python for a block; afterwards they are as before."""
    seed = int.from_bytes(hashlib.sha256(repr(words).encode()).digest()[:4], "little")
    of_python, of_numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        try:
            yield
        finally:
            random.setstate(of_python)
            np.random.set_state(of_numpy)
