"""The lowering of one captured model for one target: the torch graph is simplified, then written as legal NNEF."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from t2n_core.errors import InputError, LowerError, UnsupportedOpsError
from t2n_core.inference_target.base import InferenceTarget, fragments_of
from t2n_core.nnef.graph import Graph
from t2n_core.nnef.legality import check_graph
from t2n_core.op.lower import has_rule, lower
from t2n_core.op.registry import Registry, load_default
from t2n_core.op.stored.choice import Rounded, with_stored
from t2n_core.rewriter.builtin.experts import notes_of_layers
from t2n_core.rewriter.captures import Capture
from t2n_core.rewriter.context import CAPTURE_LOCK, Session
from t2n_core.rewriter.functions import operator_bodies
from t2n_core.rewriter.report import RewriteReport
from t2n_core.rewriter.selection import Selection
from t2n_core.torch_graph.capture.tracer import CapturedModel
from t2n_core.torch_graph.choices import NamingScheme
from t2n_core.torch_graph.frontend.sources import Source
from t2n_core.torch_graph.graph.ir import TorchModuleIRGraph, TorchOp
from t2n_core.torch_graph.precision.apply import in_precision
from t2n_core.torch_graph.simplify.norms import fold_norms
from t2n_core.torch_graph.simplify.open_masks import open_masks
from t2n_core.torch_graph.simplify.passes import simplify
from t2n_core.torch_graph.simplify.routers import ROUTED, with_routers


@dataclass(frozen=True, slots=True)
class TargetLowering:
    """Writes one captured model for one target; made once for each export to a target."""

    target: InferenceTarget
    source: Source
    capture: Capture
    selection: Selection
    """The rewriters that fit the target."""
    session: Session
    """Counts the calls of rewriters that act on operators."""
    rules: Registry
    naming: NamingScheme
    rounded: Rounded
    """Rounded weights, shared by all targets of an export."""

    @property
    def captured(self) -> CapturedModel:
        """Return the captured model."""
        return self.capture.model

    def simplified(self) -> TorchModuleIRGraph:
        """Return the simplified torch graph for the target. Raises LowerError."""
        target, rules, ours = self.target, self.rules, load_default()
        traced = self.captured.graph.copy()  # a hook's changes must not reach other targets
        target.post_capture(traced)
        choice = target.writing.weights
        if choice:
            traced = with_stored(traced, choice, target.storage_refusal, self.source.weights, self.rounded)
        has_form = has_rule(rules, target.spec, target.writing)
        if rules.find(ROUTED, target.spec, target.writing) is not None:
            traced = with_routers(traced)
            others = notes_of_layers(self.source.module)
            traced = replace(traced, operator_notes=(*traced.operator_notes, *others))
        with CAPTURE_LOCK:  # decompositions are traced like models
            simple = simplify(traced, has_form, operator_bodies(self.selection, self.session))

        def is_plain(op: TorchOp) -> bool:
            key = (op.kind, target.spec, target.writing)
            return rules.find(*key) is ours.find(*key)

        simple = fold_norms(simple, is_plain, target.folds_norm)
        plan = target.writing.precision
        if plan is not None:
            simple = in_precision(simple, lambda unit: plan.of(*unit) == "float16")
        return replace(simple, open_masks=open_masks(simple))

    def write(self, simple: TorchModuleIRGraph, names: Sequence[str]) -> Graph:
        """Lower a simplified torch graph to NNEF, with these output names. Raises UnsupportedOpsError, SpecError."""
        target, symbols = self.target, self.captured.symbols
        sizes = target.size_range(self.captured.range)
        if not sizes.holds(symbols):
            example = ", ".join(f"{name}={size}" for name, size in symbols.items())
            raise InputError(f"the example's sizes {example} are outside of the range {sizes}")
        fragments = target.custom_fragments
        writing = (target.writing, fragments, self.naming, sizes, target)
        graph = lower(simple, target.spec, self.rules, list(names), *writing)
        if graph.sizes.bounds and not graph.sizes.holds(symbols):
            raise LowerError(
                f"the archive would hold for {graph.sizes} alone, without the sizes of the example",
                target=str(target),
                hint="this release fails on a tensor without elements that the model has there: give a larger example",
            )
        for fragment in fragments_of(target.specific_fragments(self.source.module), "specific_fragments"):
            graph.fragments.setdefault(fragment.name, fragment)
        target.post_trace(graph, graph.extensions)
        problems = check_graph(graph, target.spec)
        if problems:
            raise problems[0] if len(problems) == 1 else UnsupportedOpsError(problems, target=str(target))
        return graph

    def report(self) -> RewriteReport:
        """Return how often each rewriter applied up to now."""
        return RewriteReport.of(self.selection, self.capture.hits + self.session.hits)
