"""What is known of programs that releases do not compute rightly: the pass that fails, on which paths, and where."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from packaging.version import Version

from conformance.dialect.judge import Status
from conformance.dialect.passes.judging import PassVerdict
from conformance.dialect.passes.program import Program
from t2n_core.engine.paths import EnginePath
from t2n_core.nnef.releases import Releases

BOTH: Final = (EnginePath.DECLUTTER, EnginePath.OPTIMISE_ONLY)


def _every(program: Program) -> bool:
    return True


@dataclass(frozen=True)
class KnownPass:
    """Programs that a pass makes wrong, or fails on, in some releases."""

    name: str
    """The rewrite in tract's source."""
    reason: str
    error: str = ""
    """A pattern of the engine's error; empty for results that differ."""
    statuses: tuple[Status, ...] = ("refused",)
    paths: tuple[EnginePath, ...] = BOTH
    when: Callable[[Program], bool] = _every
    since: str | None = None
    before: str | None = None

    def explains(self, verdict: PassVerdict) -> bool:
        """Return whether a verdict that is not `right` is one of these."""
        return (
            verdict.status in self.statuses
            and verdict.path in self.paths
            and Version(verdict.release) in Releases.of(self.since, self.before)
            and re.search(self.error, verdict.reason) is not None
            and self.when(verdict.program)
        )


def explanation(verdict: PassVerdict) -> KnownPass | None:
    """Return the known cause of a verdict that is not `right`, or None."""
    return next((entry for entry in KNOWN if entry.explains(verdict)), None)


def _has_rows_as_filter(program: Program) -> bool:
    """Return whether a convolution reads a filter whose unit axis was inserted."""
    filters = [step.arguments["filter"].text for step in program.steps if step.op == "conv"]
    return any(made is not None and made.op in ("unsqueeze", "reshape") for made in map(program.maker, filters))


_DECLUTTER: Final = (EnginePath.DECLUTTER,)
KNOWN: Final = (
    KnownPass(
        "Downsample: pull_downsample_over_axis_op",
        "the stride of a slice is moved before the `reshape` that makes its axis, which is no axis of the input",
        r'Downsample over #\d+ "[^"]*" Reshape\s+\d+: Invalid axis',
    ),
    KnownPass(
        "Downsample: pull_downsample_up",
        "the stride of a slice is moved before a `tile` of an axis of one element, whose result keeps its extents",
        r'Downsample over #\d+ "[^"]*" MultiBroadcastTo\s+\d+: Trying to substitute',
        since="0.23",
    ),
    KnownPass(
        "Downsample: pull_downsample_over_scan",
        "the stride of a slice of one result of a scan is moved into it, although nothing reads another result",
        r"downsample/scan\.rs:\d+:\d+: index out of bounds",
        statuses=("crashed",),
        paths=_DECLUTTER,
        since="0.21.6",
    ),
    KnownPass(
        "EinSum: declutter_broadcast",
        "a product with 0 of a dynamic extent becomes one value that is repeated, which has too few axes for a product "
        "of matrices",
        r'declutter node #\d+ "[^"]*" EinSum(.|\n)*self\.axes\.rank\(InOut::In\(ix\)\)',
        paths=_DECLUTTER,
        since="0.21.13",
    ),
    KnownPass(
        "depth_wise",
        "the rows of a depthwise filter are located by the stride of its unit axis, which is wrong if that axis was "
        "inserted into a tensor",
        statuses=("wrong",),
        when=_has_rows_as_filter,
        since="0.21",
    ),
    KnownPass(
        "ChangeAxes",
        "a `reshape` before or after a scan is moved into it, over the scanned axis or into a body with other axes",
        r"running pass ChangeAxes(.|\n)*Incompatible reshape",
        paths=_DECLUTTER,
        before="0.23.9",
    ),
    KnownPass(
        "PushSliceUp",
        "several slices of one result that leave out its first elements are moved before the statement that computes "
        "it, which asks for all elements (sonos/tract#2247)",
        r"running pass PushSliceUp\s+Caused by:\s+Condition failed: `boundaries\[0\]",
        paths=_DECLUTTER,
        since="0.21.11",
        before="0.23",
    ),
    KnownPass(
        "TypedModelPatch",
        "a statement that a rewrite moves keeps its name, which another one has",
        r"Patch created duplicate name",
        since="0.21.6",
        before="0.21.7",
    ),
    KnownPass(
        "the rewrites of outputs",
        "two outputs that a rewrite finds to be one value are refused",
        r"Duplicate usage of node as output",
        before="0.21.6",
    ),
    KnownPass(
        "LirMatMulUnary",
        "a size of a dynamic axis stays a symbol in the product of a convolution whose filter is computed",
        r"Undetermined symbol in expression",
        since="0.21.2",
        before="0.21.4",
    ),
    KnownPass(
        "the reader of conv",
        "a filter that statements compute is refused",
        r"argument `filter'(.|\n)*Not a const|No valid deserializer found for Identifier\(\"conv\"\)",
        before="0.21",
    ),
    KnownPass(
        "Gather: declutter",
        "a `gather` of one index becomes a slice without the axis of the index",
        r'declutter node #\d+ "[^"]*" Gather\s+\d+: Trying to substitute',
        before="0.20.19",
    ),
    KnownPass(
        "Downsample: pull_downsample_up",
        "the stride of a slice is moved before a product with a constant, which it takes along",
        r'Downsample over #\d+ "[^"]*" (Mul|Const)',
        before="0.20",
    ),
    KnownPass(
        "ChangeAxes",
        "the axes of a scan's operand are changed, and not those of its state: `Inconsistent matmul`",
        r"running pass ChangeAxes(.|\n)*Inconsistent matmul",
        paths=_DECLUTTER,
        before="0.20",
    ),
    KnownPass(
        "PushSliceUp",
        "slices of one result are moved before the operation that computes it, by bounds that its input does not have",
        r"split-\d+-over-(.|\n)*Invalid range \d+\.\.\d+ for slicing|PushSliceUp(.|\n)*`end <= len`",
        paths=_DECLUTTER,
        before="0.20.18",
    ),
)
"""Known passes, newest releases first."""
