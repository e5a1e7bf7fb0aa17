"""The result of a capture."""

from __future__ import annotations

from dataclasses import dataclass, field

from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.torch_graph.constraints.narrowing import SizeDecision
from t2n_core.torch_graph.frontend.results import Results
from t2n_core.torch_graph.graph.ir import TorchModuleIRGraph


@dataclass(slots=True)
class CapturedModel:
    """Result of a capture: the graph, and the range of its symbols."""

    graph: TorchModuleIRGraph
    symbols: dict[str, int] = field(default_factory=dict)
    """Symbol -> size in the example."""
    results: Results = field(default_factory=Results)
    """The paths of the outputs in the model's result, and its other results."""
    range: SizeRange = field(default_factory=SizeRange)
    """The sizes for which the graph is valid."""
    decisions: tuple[SizeDecision, ...] = ()
    """Decisions that made the range smaller than declared."""
    dropped: tuple[SizeDecision, ...] = ()
    """Decisions that did not: the captured program is right on their other side, too."""
    captured_at: dict[str, int] = field(default_factory=dict)
    """Symbol -> size at which the model was captured: the example's, or another where that is, or leads to, 0 or 1."""
