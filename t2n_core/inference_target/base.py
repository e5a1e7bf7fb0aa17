"""Base class of targets: the allowed operators, the engine that checks archives, and hooks for a user's own target."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from t2n_core.engine.protocol import Engine
from t2n_core.level import DEFAULT_LEVEL, TractCheckTolerance
from t2n_core.nnef.graph import Fragment, Graph
from t2n_core.nnef.options.writing_options import PLAIN, WritingOptions
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.spec import Spec

if TYPE_CHECKING:
    import torch

    from t2n_core.torch_graph.graph.ir import TorchModuleIRGraph


class InferenceTarget(ABC):
    """A consumer of NNEF archives, of one kind and version; the base class of all targets.

    Args:
        version: of the engine or the standard.
        check_io: run the archive after export and compare with PyTorch; if that fails the archive is removed. In a
            marker also called `check`.
        dynamic_axes: `{"x": {1: "T"}}`, or `{"x": [1]}` for symbols named after input and axis; negative axes count
            from the end; several inputs may share a symbol. In place of a symbol a `torch.export.Dim` with bounds,
            `Dim("T", min=2, max=16)`, or a multiple of one, `2 * Dim("T")`.
        check_io_tolerance: the level that must hold: `exact`, `close`, `approximate`, `very`, `super`, `ultra`. In a
            marker also called `tolerance`.
    """

    name: ClassVar[str]
    pulse: int | None = None
    """Steps of the time axis that the check streams at a time; None for a target or export without streams."""

    def __init__(
        self,
        version: str,
        *,
        check_io: bool = True,
        dynamic_axes: Any = None,
        check_io_tolerance: str | TractCheckTolerance = DEFAULT_LEVEL,
    ) -> None:
        self.requested_version = version
        self.check_io = check_io
        self.dynamic_axes = dict(dynamic_axes or {})
        self.check_io_tolerance = TractCheckTolerance.parse(check_io_tolerance)

    @property
    def version(self) -> str:
        """Return the exact version."""
        return self.requested_version

    @property
    @abstractmethod
    def spec(self) -> Spec:
        """Return the table of the operators that may be written."""

    @property
    def writing(self) -> WritingOptions:
        """Return the choices between lowerings that this target makes."""
        return PLAIN

    def folds_norm(self, channels: int, elements: int) -> bool:
        """Return whether a norm is folded into a preceding filter with so many output channels and elements."""
        return True

    @property
    def custom_fragments(self) -> Sequence[Fragment]:
        """Return the fragments that are in the archive from the beginning, for rules to call by name."""
        return ()

    def size_range(self, sizes: SizeRange) -> SizeRange:
        """Return the part of a range that an archive of this target is valid for. Raises InputError if it is empty."""
        return sizes

    @abstractmethod
    def engine(self) -> Engine:
        """Return the engine that checks archives of this target. Raises EngineResolveError or EngineProvisionError."""

    @property
    def has_dynamic_axes(self) -> bool:
        """Return whether dynamic axes were declared."""
        return bool(self.dynamic_axes)

    # hooks of a user's own target, all optional, in the order of their calls; each may raise T2NError to refuse
    def pre_trace(  # noqa: B027
        self, model: torch.nn.Module, input_names: Sequence[str], output_names: Sequence[str]
    ) -> None:
        """Inspect a model before capture. An override may refuse it, but not change it.

        `input_names` are those of the archive; `output_names` those that the user passed, possibly empty.
        """

    def post_capture(self, graph: TorchModuleIRGraph) -> None:  # noqa: B027
        """Inspect the captured graph of torch operators. An override may refuse it, or edit this copy of it."""

    def specific_fragments(self, model: torch.nn.Module) -> Sequence[Fragment]:
        """Return fragments to add to the archive of a model, for operations that `post_trace` writes."""
        return ()

    def post_trace(self, graph: Graph, active_extensions: list[str]) -> None:  # noqa: B027
        """Inspect the NNEF graph before it is checked and written. An override may refuse or edit it.

        `active_extensions` are the lines of its `extension` declarations, to which an override may add.
        """

    def post_export(  # noqa: B027
        self,
        model: torch.nn.Module,
        graph: Graph,
        args: Sequence[torch.Tensor],
        exported_filepath: Path,
        debug_bundle_path: Path | None,
    ) -> None:
        """Inspect a written archive. It is removed if an override raises an exception.

        `args` are the example's tensors in the order of the inputs; `debug_bundle_path` is the folder that the user
        requested, to which an override may add files.
        """

    def __str__(self) -> str:
        return f"{self.name} {self.version}"
