"""Replacement of packed weights in a model while it is captured, and their restoration."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from t2n_core.errors import CaptureError
from t2n_core.rewriter.quantised.calls import QuantisedCalls
from t2n_core.rewriter.quantised.grid import QuantisedTensor
from t2n_core.rewriter.quantised.packed import unpack
from t2n_core.torch_graph.compat.private import FunctionModifiers
from t2n_core.torch_graph.graph.from_export import memory_key

_GRIDS = re.compile(r"(\w*_)?(scale|zero_point)(_\d+)?")
"""Names of buffers with a scale or a zero point, in modules of torch.ao and in graphs of FX."""
_STEM = "t2n_"
Undo = list[Callable[[], None]]


@dataclass(frozen=True, slots=True)
class Quantised:
    """A quantised model that runs on integers."""

    labels: dict[Any, str]
    """Place of a stored tensor -> its name in the archive."""
    engine: str

    @contextmanager
    def running(self) -> Iterator[None]:
        """While active, calls of the model compute with integers."""
        calls = QuantisedCalls(self.engine)
        before, QuantisedTensor.of_calls = QuantisedTensor.of_calls, calls.call
        try:
            with calls:
                yield
        finally:
            QuantisedTensor.of_calls = before


@contextmanager
def integer_weights(model: torch.nn.Module) -> Iterator[Quantised | None]:
    """While active, a model of torch.ao has int8 buffers for packed weights. Yield None for a model without any.

    Raises CaptureError for packed objects that are not supported.
    """
    named_modules = list(model.named_modules())
    if isinstance(model, torch.jit.ScriptModule) or not any(_is_quantised(module) for _, module in named_modules):
        yield None
        return
    undo: Undo = []
    labels: dict[Any, str] = {}
    paths = dict(named_modules)
    try:
        for path, module in named_modules:
            if isinstance(module, torch.fx.GraphModule) or _is_quantised(module):
                _put(vars(module), "_buffers", dict(module._buffers), undo)  # keeps the order of its own buffers
                _open(path, module, paths, labels, undo)
                _fix_grids(module, undo)
        yield Quantised(labels, torch.backends.quantized.engine)
    finally:
        for step in reversed(undo):
            step()


def _is_quantised(module: torch.nn.Module) -> bool:
    if any(isinstance(value, torch.ScriptObject) for value in vars(module).values()):
        return True
    return type(module).__module__.startswith(("torch.ao.nn.quantized", "torch.ao.nn.intrinsic.quantized"))


def _open(
    path: str, module: torch.nn.Module, paths: dict[str, torch.nn.Module], labels: dict[Any, str], undo: Undo
) -> None:
    tensor_names = [
        name for name, value in vars(module).items() if isinstance(value, torch.Tensor) and value.is_quantized
    ]
    if tensor_names:
        raise CaptureError(
            f"a {type(module).__name__} holds a quantised tensor, `{path}.{tensor_names[0]}`, which is not supported",
            hint="keep this layer in float: qconfig = None before the conversion",
        )
    packed_objects = {name: value for name, value in vars(module).items() if isinstance(value, torch.ScriptObject)}
    # PyTorch's own would read the tensors of the packed object
    _put(vars(module), "_save_to_state_dict", functools.partial(torch.nn.Module._save_to_state_dict, module), undo)
    for name in _compiled_methods(type(module)):  # torch.jit.trace would compile them, with the packed objects
        _put(vars(module), name, functools.partial(getattr(module, name)), undo)
    for name, packed in packed_objects.items():
        unpacked = unpack(packed, module, f"{_STEM}{name}_")
        _put(vars(module), name, unpacked.replacement, undo)
        for buffer, tensor in unpacked.tensors.items():
            module._buffers[buffer] = tensor
            word = buffer.removeprefix(f"{_STEM}{name}_")
            labels[memory_key(tensor)] = label_of(path, name, word, paths)


def _compiled_methods(kind: type[torch.nn.Module]) -> tuple[str, ...]:
    """Return the methods of a class that are marked with torch.jit.export."""
    marked = FunctionModifiers.EXPORT
    return tuple(n for n in dir(kind) if getattr(getattr(kind, n, None), "_torchscript_modifier", None) is marked)


def label_of(path: str, attribute: str, word: str, paths: dict[str, torch.nn.Module]) -> str:
    """Return the name in the archive of a tensor from the packed object `path.attribute`.

    It names the layer's own weight: `fc.weight` for `fc._packed_params._packed_params`, `rnn.weight_ih_l0` for a
    recurrent one.
    """
    *parents, last = path.split(".")
    if len(parents) > 1 and parents[-1] == "_all_weight_values":
        layer = paths[".".join(parents[:-1])]
        index, reverse = divmod(int(last), 2 if getattr(layer, "bidirectional", False) else 1)
        which, _, parameter = word.partition("_")
        return ".".join([*parents[:-1], f"{parameter}_{which}_l{index}{'_reverse' if reverse else ''}"])
    if last == "_packed_params":
        return ".".join([*parents, word])
    if attribute in ("_packed_params", "_packed_weight"):
        return f"{path}.{word}".lstrip(".")
    if attribute.startswith("_packed_weight_") and not attribute.rpartition("_")[2].isdigit():
        return f"{path}.{word}_{attribute.rpartition('_')[2]}".lstrip(".")
    return f"{path}.{attribute}.{word}".lstrip(".")


def _fix_grids(module: torch.nn.Module, undo: Undo) -> None:
    """Replace the buffers with a scale or a zero point by Python numbers."""
    for name, buffer in list(module._buffers.items()):
        if buffer is not None and buffer.numel() == 1 and _GRIDS.fullmatch(name):
            del module._buffers[name]
            _put(vars(module), name, buffer.item(), undo)


def _put(holder: Any, key: str, value: Any, undo: Undo) -> None:
    if key in holder:
        undo.append(functools.partial(holder.__setitem__, key, holder[key]))
    else:
        undo.append(functools.partial(holder.pop, key, None))
    holder[key] = value
