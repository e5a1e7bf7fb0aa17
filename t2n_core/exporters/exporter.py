"""The interface of an exporter: a request with a model and its call, and a class that writes the file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import ClassVar, Final, Literal, TypeAlias

import torch

from t2n_core.torch_graph.frontend.inputs import ModelInputs
from t2n_core.torch_graph.frontend.results import tensors_of

FileFormat: TypeAlias = Literal["nnef", "onnx"]
SUFFIXES: Final[Mapping[str, str]] = {"nnef": ".nnef.tgz", "onnx": ".onnx"}
"""Format -> the suffix of the file."""


class FlatModel(torch.nn.Module):
    """A model that takes the tensors of its call by position, and returns a tuple of tensors."""

    def __init__(self, model: torch.nn.Module, inputs: ModelInputs) -> None:
        super().__init__()
        self.model = model
        self._inputs = inputs

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        args, kwargs = self._inputs.arguments_with(tensors)
        return tuple(tensors_of(self.model(*args, **kwargs)))


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """A model, its call, and the file to write."""

    model: torch.nn.Module
    """A copy in evaluation mode, which the exporter may change."""
    inputs: ModelInputs
    """The example call: `args`, `kwargs`, and the names of their tensors in order."""
    output_names: tuple[str, ...]
    """A name for each tensor that the model returns, in the order of its result."""
    dynamic_axes: Mapping[str, Mapping[int, str]]
    """Input -> axis -> symbol."""
    release: str
    """The release of tract that is to read the file."""
    path: Path
    """The path of the file to write."""
    source: Path | None = None
    """The file of the exporter that this one `converts`."""

    @property
    def input_names(self) -> tuple[str, ...]:
        """Return the names of the tensors of the call, in order."""
        return self.inputs.names

    @property
    def takes_tensors(self) -> bool:
        """Return whether the model is called with tensors by position alone."""
        return not self.inputs.kwargs and all(isinstance(argument, torch.Tensor) for argument in self.inputs.args)

    def flat(self) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
        """Return a module that takes tensors by position, and the tensors: the model itself if it does."""
        tensors = tuple(self.inputs.tensors)
        return (self.model if self.takes_tensors else FlatModel(self.model, self.inputs).eval()), tensors


@dataclass(frozen=True, slots=True)
class DeclaredSizes:
    """The sizes of dynamic axes for which an exporter declares its file to be valid."""

    bounds: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    """Symbol -> smallest and largest size; None for no largest one."""
    default: tuple[int, int | None] = (1, None)
    """The bounds of other symbols."""

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Return whether these sizes are declared."""
        limits = ((size, *self.bounds.get(name, self.default)) for name, size in sizes.items())
        return all(low <= size and (high is None or size <= high) for size, low, high in limits)


class Exporter(ABC):
    """An exporter from PyTorch to a file that tract reads. A subclass has a name and `export`."""

    name: ClassVar[str]
    """The name in test ids, options and records: letters, digits, `-` and `_`."""
    format: ClassVar[FileFormat] = "nnef"
    requirements: ClassVar[tuple[str, ...]] = ()
    """Distributions for pip. With any, the exporter runs in a separate process, in an environment that has them."""
    converts: ClassVar[str] = ""
    """The name of the exporter whose file this one converts, instead of a model; empty for an exporter of models."""
    follows_release: ClassVar[bool] = True
    """False if one file is for all releases of tract."""
    writes_standard: ClassVar[bool] = False
    """True if its archives hold NNEF 1.0 alone, so that the Khronos tools read them as well."""
    has_dynamic_axes: ClassVar[bool] = True
    """False if the exporter writes fixed sizes alone; models with dynamic axes are then refused for it."""
    distribution: ClassVar[str] = ""
    """The distribution whose version is the exporter's."""

    @property
    def suffix(self) -> str:
        """Return the suffix of its files."""
        return SUFFIXES[self.format]

    @property
    def version(self) -> str:
        """Return the version of the exporter in this environment; empty if it has none."""
        try:
            return metadata.version(self.distribution) if self.distribution else ""
        except metadata.PackageNotFoundError:
            return ""

    def warm_up(self) -> None:
        """Do what its process needs once, before the first export: imports, mostly."""
        return

    @abstractmethod
    def export(self, request: ExportRequest) -> DeclaredSizes | None:
        """Write the file, and return the sizes that it is declared for; None for every size from 1 on.

        Any exception counts as a refusal of the model.
        """


def export_by(exporter: Exporter, request: ExportRequest) -> DeclaredSizes:
    """Let an exporter write its file, and return the sizes that it declares. Raises TypeError if it returns others."""
    with torch.no_grad():
        declared = exporter.export(request)
    if declared is not None and not isinstance(declared, DeclaredSizes):
        raise TypeError(f"`export` returned {declared!r}, not DeclaredSizes or None")
    return DeclaredSizes() if declared is None else declared


def first_cause(error: BaseException) -> BaseException:
    """Return the error that began a chain: exporters wrap it in advice."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error
