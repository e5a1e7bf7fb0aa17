"""One type for all models that a user can pass: a module's method, an exported program, TorchScript, or a file."""

from __future__ import annotations

import inspect
import zipfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch.func import functional_call

from t2n_core.errors import InputError
from t2n_core.torch_graph.frontend.float64 import in_float64
from t2n_core.torch_graph.frontend.state.state import ModelState, StateOption, as_call, state_of

Model: TypeAlias = torch.nn.Module | torch.export.ExportedProgram | str | Path


@dataclass(frozen=True, slots=True)
class Source:
    """A model that can be run and captured."""

    module: torch.nn.Module
    """Module that computes the reference; for an exported program its graph as a module."""
    fn_name: str = "forward"
    program: torch.export.ExportedProgram | None = None
    state: ModelState | None = None
    """The arguments that are state; `run` takes and returns their tensors by name."""
    running: Callable[[], AbstractContextManager[None]] = nullcontext
    """Creates the context in which the model runs."""

    @property
    def name(self) -> str:
        called = "" if self.fn_name == "forward" else f".{self.fn_name}"
        return f"{type(self.module).__name__ if self.program is None else 'the exported program'}{called}"

    @property
    def is_script(self) -> bool:
        return isinstance(self.module, torch.jit.ScriptModule)

    @property
    def example(self) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Return the example arguments of an exported program."""
        return None if self.program is None else self.program.example_inputs

    def run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        with self.running():
            return self.callee(*args, **kwargs) if self.state is None else self.state.run(self.callee, args, kwargs)

    def run_with(self, weights: Mapping[str, torch.Tensor], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the model with other weights for this call; the module stays as it is."""
        return functional_call(_Called(self), {f"inner.{n}": w for n, w in weights.items()}, args, dict(kwargs))

    def run_with_float64_weights(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the model with its weights in float64; float arguments should be in float64, too.

        Tensors that the model creates keep their dtype, as an archive has those that are folded at export.
        """
        weights = {id(weight): (name, weight.detach()) for name, weight in self.weights.items()}  # tied ones once
        wide = {name: weight.double() for name, weight in weights.values() if weight.is_floating_point()}
        return self.run_with(wide, args, kwargs)

    def run_in_float64(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the model with float64 for float32 in its weights and in the tensors that it creates, casts and holds.

        Raises TypeError for a model that reads the bits of its numbers, and PyTorch's own errors.
        """
        with in_float64():
            return self.run_with_float64_weights(args, kwargs)

    @property
    def weights(self) -> dict[str, torch.Tensor]:
        """Return the parameters and buffers under all their names."""
        parameters = dict(self.module.named_parameters(remove_duplicate=False))
        return {**parameters, **dict(self.module.named_buffers(remove_duplicate=False))}

    @property
    def callee(self) -> Any:
        """Return the callable of the model: the module itself for `forward`, so that its hooks run."""
        return self.module if self.fn_name == "forward" else self.method

    @property
    def method(self) -> Any:
        return getattr(self.module, self.fn_name)

    def as_module(self) -> torch.nn.Module:
        """Return a module whose `forward` is the model: the user's own, unless another method of it is exported."""
        return self.module if self.fn_name == "forward" else _Called(self)

    def signature(self) -> inspect.Signature:
        if not self.is_script:
            return inspect.signature(self.method)
        arguments = self.method.schema.arguments[1:]
        kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
        return inspect.Signature(
            [
                inspect.Parameter(a.name, kind, default=a.default_value if a.has_default_value() else empty)
                for a in arguments
            ]
        )


class _Called(torch.nn.Module):
    """A source as a module whose weights can be replaced for one call."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.inner = source.module
        self.source = source

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.source.run(args, kwargs)


def with_state(source: Source, args: Any, kwargs: Mapping[str, Any], option: StateOption) -> Source:
    """Return a source whose state is inputs and outputs. It runs once, to observe how a call changes its state.

    Raises InputError for an invalid state, and PyTorch's own error if the model does not run.
    """
    if source.program is not None or source.is_script:
        raise InputError(f"state: {source.name} is not a Python module", hint="its state is already inputs and outputs")
    args, kwargs = as_call(args, kwargs)
    return replace(source, state=state_of(source.name, source.signature(), source.callee, args, kwargs, option))


def source_of(model: Any, fn_name: str = "forward") -> Source:
    """Return the source of a model, or of a file with one. Raises InputError if it is neither, or lacks the method."""
    if isinstance(model, str | Path):
        model = _read(Path(model))
    if isinstance(model, torch.export.ExportedProgram):
        if fn_name != "forward":
            raise InputError(f"an exported program has no method `{fn_name}`, it holds one graph")
        return Source(model.module(check_guards=False), program=model)
    if not isinstance(model, torch.nn.Module):
        raise InputError(
            f"the model must be a torch.nn.Module, not {type(model).__name__}",
            hint="also an ExportedProgram, a ScriptModule, or the path of a saved one",
        )
    if not callable(getattr(model, fn_name, None)):
        raise InputError(f"{type(model).__name__} has no method `{fn_name}`")
    return Source(model, fn_name)


def _read(path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    names = zipfile.ZipFile(path).namelist() if zipfile.is_zipfile(path) else []
    if any(name.endswith("/constants.pkl") for name in names) and any("/code/" in name for name in names):
        load: Any = torch.jit.load
        return load(str(path), map_location="cpu")
    if any(name.endswith("archive_format") for name in names):
        return torch.export.load(str(path))
    raise InputError(
        f"{path} holds neither an exported program nor TorchScript",
        hint="weights alone (torch.save) are not a model: load them into the module and pass that",
    )
