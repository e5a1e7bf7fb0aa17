"""Reading of captured programs: the graph of a model, and the range of sizes for which it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import torch

from t2n_core.errors import InputError
from t2n_core.nnef.sizes.ranges import LEAST, SizeRange
from t2n_core.torch_graph.capture.errors import fixed_axis, refuse_smaller_range
from t2n_core.torch_graph.capture.trace_comparison import Bounds
from t2n_core.torch_graph.constraints.capture_sizes import Axes
from t2n_core.torch_graph.constraints.declared_axes import DeclaredAxes
from t2n_core.torch_graph.constraints.guards import Decisions
from t2n_core.torch_graph.constraints.implied import decide_all_counts, implied_decisions
from t2n_core.torch_graph.constraints.input_sizes import sizes_in, table_of
from t2n_core.torch_graph.constraints.narrowing import narrow_range, of_emptiness, with_user_symbols
from t2n_core.torch_graph.frontend.inputs import ModelInputs
from t2n_core.torch_graph.frontend.results import Results
from t2n_core.torch_graph.frontend.sources import Source
from t2n_core.torch_graph.graph.captured import CapturedModel
from t2n_core.torch_graph.graph.from_export import build_graph, user_fakes
from t2n_core.torch_graph.graph.multiples import multiples
from t2n_core.torch_graph.proofs.regions import Recaptured, Regions


@dataclass(frozen=True, slots=True)
class ProgramReader:
    """Reads the programs that are captured of one model."""

    source: Source
    inputs: ModelInputs
    declared: DeclaredAxes

    def read(
        self,
        program: torch.export.ExportedProgram,
        axes: Axes,
        results: Results,
        again: Callable[[Mapping[str, int], frozenset[str]], Recaptured | None] | None,
        tensors: Sequence[torch.Tensor],
        size_decisions: Decisions,
        limits: Mapping[str, Bounds] = MappingProxyType({}),
    ) -> CapturedModel:
        """Return the model that a program describes. Raises CaptureError where it holds for fewer sizes than declared.

        Args:
            program: a functional program, with these dynamic axes.
            axes: the dynamic axes of the inputs.
            results: the results of the model, in order.
            again: captures the model at other sizes, for proofs; None if it cannot be captured again.
            tensors: the tensors the capture ran with.
            size_decisions: the decisions on sizes that it made.
            limits: bounds of the range known from elsewhere.
        """
        results = replace(results)  # calls at other sizes, which test decisions, record their own paths
        fakes = user_fakes(program)
        if len(fakes) != len(tensors):
            raise InputError(f"{self.source.name} has {len(fakes)} input tensors, the example has {len(tensors)}")
        declared = self.declared.range
        names, is_program = self.inputs.names, self.source.program is not None
        table = table_of(names, is_program, declared, fakes, axes)
        example = sizes_in(names, table, fakes, axes, self.inputs.tensors)
        captured_at = sizes_in(names, table, fakes, axes, tensors)
        sizes = SizeRange({n: declared.bounds.get(n, (min(LEAST, size), None)) for n, size in example.items()})
        sizes = sizes.narrowed(**{name: limit for name, limit in limits.items() if name in sizes.bounds})
        table.range = sizes
        decide_all_counts(program, table)
        decisions = with_user_symbols([*size_decisions.all(), *implied_decisions(program)], table)
        of_capture = of_emptiness(sizes) if again is not None else []
        regions = None if again is None else Regions(program, table, captured_at, again)

        def proves(region: Any, sizes: SizeRange) -> bool:
            return regions is not None and regions.prove([region], sizes)

        sizes, causes, dropped = narrow_range(sizes, [*decisions, *of_capture], captured_at, proves)
        dropped = [decision for decision in dropped if decision not in of_capture]  # the program is right there
        for name, (low, high) in sizes.bounds.items():
            if low == high and declared.bounds.get(name) != (low, high):
                raise fixed_axis(name, low, causes)
        if causes and self.declared.explicit:
            refuse_smaller_range(self.declared, sizes, causes)
        graph = build_graph(program, names, table_of(names, is_program, sizes, fakes, axes))
        extents = [extent for node in graph.data_nodes for extent in node.shape]
        required = [cause.condition for cause in causes if cause.required]
        sizes, forms = multiples(sizes, [*extents, *graph.bounds(), *required], captured_at)
        if forms:
            graph = build_graph(program, names, table_of(names, is_program, sizes, fakes, axes), forms)
        return CapturedModel(graph, example, results, sizes, tuple(causes), tuple(dropped), captured_at)
