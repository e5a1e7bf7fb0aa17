"""The check of an exported model that generates, in the engine of its target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import nn

from t2n_core.check.exported.archive import ExportedArchive
from t2n_core.check.generation.reference import Prompts, Stepper, continuations_of, is_divisible
from t2n_core.engine.pool import TractRunner
from t2n_core.engine.protocol import Array
from t2n_core.errors import InputError
from t2n_core.parity.generation.check import check_generation
from t2n_core.parity.generation.outcome import GenerationOutcome
from t2n_core.parity.outcome import Outcome, Stage
from t2n_core.parity.state_pairs import StatePair
from t2n_core.parity.tolerance import TractCheckTolerance


def check_result(
    result: ExportedArchive,
    prompts: Prompts = None,
    steps: int = 32,
    tolerance: str | TractCheckTolerance | None = None,
    *,
    model: nn.Module | None = None,
    state: Sequence[StatePair] | None = None,
    fixed: Mapping[str, Array] | None = None,
    most: int | None = None,
    timeout: float = 60.0,
) -> GenerationOutcome:
    """Return the outcome of generating `steps` tokens after each prompt.

    `timeout` is in seconds for each step; all other options but `tolerance` are as in `continuations_of`.

    Raises:
        InputError: an unknown level, prompts that the model cannot take, or a target without an engine that generates.
    """
    level = TractCheckTolerance.parse(tolerance if tolerance is not None else result.target.check_io_tolerance)
    state = result.state if state is None else state
    try:
        engine = result.target.engine()
    except Exception as cause:
        return GenerationOutcome(Outcome.from_error(cause, Stage.SETUP))
    if not isinstance(engine, TractRunner):
        raise InputError(f"{engine.name} has no sessions, so that it cannot generate: tract has")
    continuations, notes = continuations_of(result, prompts, steps, model=model, state=state, fixed=fixed, most=most)
    longest = max((continuation.prompt for continuation in continuations), key=lambda prompt: prompt.shape[1])
    stepper = Stepper(result, state, fixed)
    takes_one = stepper.takes_first(torch.from_numpy(longest[:, :1]))
    generation = check_generation(
        engine,
        result.archive,
        state,
        continuations,
        tolerance=level,
        timeout=timeout,
        divisible=takes_one and is_divisible(stepper, longest, level),
        takes_one=takes_one,
        notes=notes,
    )
    return replace(generation, outcome=generation.outcome.with_times(result.times))
