"""Notes on an export: options with no effect or only a partial one, and facts about the release for servers."""

from __future__ import annotations

import platform
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator

from t2n_core.errors import LowerError, SpecError
from t2n_core.inference_target import InferenceTarget, TractFeatureFlag, TractNNEF
from t2n_core.nnef.emitter import PRODUCTS
from t2n_core.nnef.graph import FLOAT16, Fragment, Graph
from t2n_core.nnef.spec import Spec
from t2n_core.rewriter.report import RewriteReport
from t2n_core.torch_graph.constraints.declared_axes import DeclaredAxes
from t2n_core.torch_graph.frontend.sources import Source
from t2n_core.torch_graph.precision.kernels import lacks_kernels

_REASONS = {
    "reify_sdpa": ("reify_sdpa_operator", "no attention of the model can be written as that operator"),
    "attention_in_f32": ("force_attention_inner_in_f32", "no float16 attention is written as the engine's operator"),
    "linear_accumulation_in_f32": ("force_linear_accumulation_in_f32", "the graph has no float16 products"),
    "norm_in_f32": ("force_norm_in_f32", "the graph has no float16 batch norm"),
    "upsample_with_debox": ("upsample_with_debox", "the model has no nearest upsampling by integer factors"),
    "keep_nan": ("keep_nan", "the model has no operator in which the engine loses a NaN"),
    "weights": ("weights", "no weight of two axes or more was chosen that can be stored so"),
}
"""Field of WritingOptions -> name of the option, and why it has no effect."""
_OPERATORS = {
    "reify_sdpa": "tract_transformers_sdpa",
    "attention_in_f32": "tract_transformers_sdpa",
    "upsample_with_debox": "debox",
}


_CONVOLUTIONS = frozenset({"conv", "deconv"})
_SCAN = "tract_core_scan"
_LOWER_BOUND = re.compile(r"tract_assert\s+(?P<name>\w+)\s*>=\s*(?P<low>\d+)")


def option_notes(target: InferenceTarget, graph: Graph, source: Source, capture: str) -> list[str]:
    """Return a line for each option that had no effect on a graph, or left weights unchanged."""
    notes = [
        *_newer_release(target.spec),
        *_choices(target, graph),
        *_unused_flags(target),
        *_unused_fragments(target.custom_fragments, graph),
        *_slow(target, graph),
        *_wider_assertions(target, graph),
    ]
    if capture != "export" and (source.is_script or source.program is not None):
        notes.append(f"capture={capture!r} had no effect: {source.name} is already a graph")
    return notes


def _newer_release(spec: Spec) -> Iterator[str]:
    """Yield a line for a release that is newer than the table of operators."""
    if spec.extrapolated:
        yield f"{spec} is newer than this version of pytest-t2n, which takes the operators and errata of {spec.newest}"


def refuse_narrower(graph: Graph, declared: DeclaredAxes) -> None:
    """Raise LowerError if the target takes fewer sizes than declared."""
    for name, (low, _) in graph.sizes.bounds.items() if graph.narrowed else ():
        declared_low = declared.range.bounds.get(name, (low, None))[0]
        if low > declared_low and declared.keeps_least(name):
            raise LowerError(
                f"{name} is declared from {declared_low} on; {_narrower(graph)}",
                hint=f'declare torch.export.Dim("{name}", min={low}, max=…), or take a release without this limit',
            )


def range_notes(graph: Graph) -> list[str]:
    """Return a line if the target takes fewer sizes than the captured graph."""
    return [_narrower(graph)] if graph.narrowed else []


def _narrower(graph: Graph) -> str:
    return f"the archive holds only for {graph.sizes}: {'; '.join(graph.narrowed[:3])}"


def state_notes(target: InferenceTarget, graph: Graph) -> list[str]:
    """Return a line if the release always keeps the final states of scans in a State for the next call."""
    keeps = target.spec.has(_SCAN) and not target.spec.has(_SCAN, "reset_every_turn")
    if not keeps or all(operation.name != _SCAN for operation in graph.operations):
        return []
    return [
        f"{target.spec} starts a scan from the final state of the last call in a State: use a fresh State for each call"
    ]


def size_notes(target: InferenceTarget, graph: Graph) -> list[str]:
    """Return a line if images have dynamic sizes, for which tract has slower kernels than for sizes set before."""
    extents = (
        extent
        for operation in graph.operations
        if operation.name in _CONVOLUTIONS and operation.outputs[0].rank > 3
        for extent in next(operation.inputs()).shape[2:]
        if not isinstance(extent, int)
    )
    symbols = sorted({str(symbol) for extent in extents for symbol in extent.free_symbols})
    if not symbols or target.spec.target != "tract":
        return []
    gain = "if a program sets these symbols before it optimises the model, a run is up to 6 times as fast"
    return [f"convolutions over {', '.join(symbols)}: {gain} (docs, `The archive in production`)"]


def operator_notes(graph: Graph) -> list[str]:
    """Return a line for each reason why calls that the target has an operator for are written without it."""
    return [
        f"{f'{count} mixtures' if count > 1 else 'a mixture'} of experts without the engine's operator: {reason}"
        for reason, count in Counter(graph.declined.get("operators", ())).items()
    ]


def assertion_notes(graph: Graph) -> list[str]:
    """Return a line for each assertion of the model that the archive does not check."""
    return [f"the archive does not check {line}" for line in graph.declined.get("assertions", ())]


def rewriter_notes(report: RewriteReport) -> list[str]:
    """Return a line for each rewriter that never applied."""
    return [f"{rewriter} had no effect: {reason}" for rewriter, reason in report.unapplied.items()]


def _choices(target: InferenceTarget, graph: Graph) -> Iterator[str]:
    ineffective = {choice for choice in _REASONS if getattr(target.writing, choice)} - graph.effects
    for choice, (option, reason) in _REASONS.items():
        declined = Counter(graph.declined.get(choice, ()))
        reasons = "; ".join(f"{why}{f' ({count} times)' if count > 1 else ''}" for why, count in declined.items())
        if choice in ineffective:
            yield f"{option} had no effect: {_lack(choice, target.spec) or reason}{f': {reasons}' if reasons else ''}"
        elif declined:
            yield f"{option} had a partial effect: {reasons}"


def _lack(choice: str, spec: Spec) -> str:
    operator = _OPERATORS.get(choice)
    if operator is None or spec.has(operator):
        return ""
    try:
        spec.operator(operator)
    except SpecError as why:
        return why.message
    return f"{spec} has no `{operator}`"


def _slow(target: InferenceTarget, graph: Graph) -> Iterator[str]:
    """Yield a line if the float16 operators of a plan take longer than in float32 on this machine."""
    if target.writing.precision is None or not lacks_kernels():
        return
    without = f"tract has no float16 kernels on {platform.machine()}"
    if target.writing.accumulates_in_f32:
        if "linear_accumulation_in_f32" in graph.effects:
            yield f"{without}: products are computed in float32, and with the casts a run takes 1.1 to 5 times as long"
        return
    of_float16 = Counter(op.name for op in graph.operations if op.name in PRODUCTS and op.outputs[0].dtype == FLOAT16)
    if of_float16:
        convolutions = sum(count for name, count in of_float16.items() if "conv" in name)
        others = of_float16.total() - convolutions
        slower = [f"{convolutions} convolutions 10 to 400 times"] if convolutions else []
        slower += [f"{others} other products about twice"] if others else []
        yield f"{without}: {' and '.join(slower)} as slow as in float32"


def _unused_flags(target: InferenceTarget) -> Iterator[str]:
    if (
        isinstance(target, TractNNEF)
        and target.registries is None
        and target.feature_flags - {TractFeatureFlag.DEFAULT}
    ):
        yield (
            "feature_flags had no effect: the releases of tract have all of them; "
            "`registries` limits an archive to those of your engine"
        )


def _unused_fragments(fragments: Iterable[Fragment], graph: Graph) -> Iterator[str]:
    called = {word for op in graph.operations for word in (op.name, *op.arguments.values()) if isinstance(word, str)}
    called |= {name for fragment in graph.fragments.values() for name in fragment.uses}
    for fragment in fragments:
        if fragment.name not in called:
            yield f"custom_fragments had no effect: nothing calls `{fragment.name}`"


def _wider_assertions(target: InferenceTarget, graph: Graph) -> Iterator[str]:
    """Yield a line for each asserted lower bound below the range, which an assertion cannot widen."""
    for line in target.custom_extensions if isinstance(target, TractNNEF) else ():
        match = _LOWER_BOUND.fullmatch(line)
        if match is None or match["name"] not in graph.sizes.bounds:
            continue
        low, asserted_low = graph.sizes.bounds[match["name"]][0], int(match["low"])
        if asserted_low < low:
            yield (
                f"custom_extensions: `{line}` had no effect: the archive is valid for {match['name']} >= {low}; "
                f'declare Dim("{match["name"]}", min={asserted_low}, max=…) in dynamic_axes'
            )


def warn_user(warning: UserWarning) -> None:
    """Give a warning that shows the line of the user."""
    warnings.warn(warning, stacklevel=_frames_of_this_package())


def _frames_of_this_package() -> int:
    """Return the number of stack frames inside this package, so that a warning shows the user's line."""
    frame, count = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("t2n_core."):
        frame, count = frame.f_back, count + 1
    return count
