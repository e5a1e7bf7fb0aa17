"""The value of a check: an archive, the samples and the criteria by which its outputs pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from t2n_core.parity.judging.interface import Interface
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.samples import Array, Sample

if TYPE_CHECKING:
    from t2n_core.nnef.sizes.ranges import SizeRange  # needs sympy, which judging does not
    from t2n_core.parity.sensitivity import Sensitivity

PYTORCH: Final = "PyTorch"
"""The reference of exports, as messages name it."""
Answer: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]
"""Returns the model's outputs for inputs; raises an exception if it refuses them."""
Pairs: TypeAlias = Sequence[tuple[int, int]]
"""The indices of an input that is state, and of the output that is its next value."""


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """One archive to check, in whichever engine."""

    archive: Path
    samples: Sequence[Sample]
    output_names: Sequence[str] = ()
    criteria: Judgement = field(default_factory=Judgement)
    timeout: float = 60.0
    """Seconds for a job of the engine."""
    range: SizeRange | str = ""
    """The sizes for which the archive is valid."""
    outside: Sequence[Sample] = ()
    """Inputs of sizes just outside the range, which the engine has to refuse."""
    constant_outputs: Collection[str] = ()
    """Outputs that no input reaches: they need not change from sample to sample."""
    carries: bool = False
    """True for a stream, whose state is carried from call to call."""
    state: Pairs = ()
    calls: Sequence[Sample] = ()
    """Calls of the model in a row, each with the state that the previous call returned."""
    model: Answer | None = None
    """The model to run if the engine differs from itself; None if there is none."""
    sensitivity: Sequence[Sensitivity] | None = None
    """The sensitivity of each output, if the samples do not show it; None to measure it."""
    reference: str = PYTORCH
    """The source of the expected outputs, as messages name it."""
    metric_reference: str = ""
    """The weights that metrics compare with, as messages name them; empty if the model has the archive's."""
    indifferent: Mapping[str, str] | None = None
    """Metrics that accept the outputs of other inputs, with the reason; None to find them."""
    interface: Interface | None = None
    """The declared inputs and outputs, which the archive must have; None if none were declared."""
