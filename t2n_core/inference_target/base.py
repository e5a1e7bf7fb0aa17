"""The base of all targets: which operators may be written, which engine judges, and hooks for a user's own target."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from t2n_core.check.tolerance import DEFAULT_LEVEL, TractCheckTolerance
from t2n_core.engine.protocol import Engine
from t2n_core.nnef.graph import Fragment, Graph
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.spec import Spec
from t2n_core.nnef.writing_options import PLAIN, WritingOptions

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
            from the end; one symbol may stand at several inputs. In place of a symbol a `torch.export.Dim` with bounds,
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
        """Return the choices between forms of an operator that this target makes."""
        return PLAIN

    @property
    def custom_fragments(self) -> Sequence[Fragment]:
        """Return the fragments that are in the archive from the beginning, for rules to call by name."""
        return ()

    def size_range(self, sizes: SizeRange) -> SizeRange:
        """Return the part of a range that an archive of this target holds for. Raises InputError if there is none."""
        return sizes

    @abstractmethod
    def engine(self) -> Engine:
        """Return the engine that judges archives of this target. Raises EngineResolveError or EngineProvisionError."""

    # hooks of a user's own target, all optional; each may raise T2NError to refuse
    def pre_trace(self, model: torch.nn.Module, tensors: list[torch.Tensor]) -> None:  # noqa: B027
        """Look at a model and its example inputs before capture. An override may refuse them, not change them."""

    def post_trace(self, graph: TorchModuleIRGraph) -> None:  # noqa: B027
        """Look at the captured graph before it is lowered. An override may refuse it, or edit this copy of it."""

    def post_export(self, graph: Graph) -> None:  # noqa: B027
        """Look at the NNEF graph before it is checked and written. An override may refuse or edit it."""

    def specific_fragments(self, graph: Graph) -> list[Fragment]:
        """Return fragments to add to the archive, for statements that `post_export` writes."""
        return []

    def __str__(self) -> str:
        return f"{self.name} {self.version}"
