"""The archives of a generating model, with the check of their tokens."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from t2n_core.check.generation.reference import LENGTHS, Prompts
from t2n_core.check.generation.result_check import check_result
from t2n_core.errors import EngineError
from t2n_core.generative.archives import GenerativeArchives
from t2n_core.generative.loss import measure_cache, measure_loss
from t2n_core.parity.generation.cache_loss import CacheLoss
from t2n_core.parity.generation.loss import WeightLoss
from t2n_core.parity.generation.outcome import GenerationOutcome
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.tolerance import TractCheckTolerance
from t2n_core.torch_graph.frontend.training import evaluating


@dataclass(frozen=True, slots=True)
class GenerativeResult(GenerativeArchives):
    """The archives of a generating model in one folder."""

    proof: GenerationOutcome | None = None
    """The outcome of the check during the export."""
    loss: WeightLoss | None = None
    """The loss from weight compression against float32, if the check measured it."""
    cache: CacheLoss | None = None
    """The loss from a quantized cache in the engine, if the check measured it."""

    def check_generation(
        self,
        prompts: Prompts = None,
        steps: int = 32,
        *,
        tolerance: str | TractCheckTolerance | None = None,
        timeout: float = 60.0,
    ) -> GenerationOutcome:
        """Run prompts and greedy steps in the target's engine, and compare each step with the model's own `generate`.

        `prompts` is a number of random ones, or token ids. In each step the token must be PyTorch's, and the logits
        within the level. An archive for single tokens is checked in the same way. Raises InputError for prompts that
        the model cannot take.
        """
        with evaluating(self.model):
            return self._check_generation(prompts, steps, tolerance, timeout)

    def _check_generation(
        self, prompts: Prompts, steps: int, tolerance: str | TractCheckTolerance | None, timeout: float
    ) -> GenerationOutcome:
        model = self.model
        if self.plan.encoder is not None:
            model = OfOneInput(self.model, self.plan.encoder.arguments)
        try:
            fixed = self.fixed(timeout) or None
        except EngineError as failed:
            engine = self.decoder.target.engine()
            return GenerationOutcome(Outcome.from_error(failed, engine=f"{engine.name} {engine.version}"))
        prompts = self._long_enough(prompts)
        options: dict[str, Any] = {"model": model, "fixed": fixed, "timeout": timeout, "most": self.plan.limits.most}
        outcome = check_result(self.decoder, prompts, steps, tolerance, state=self.state, **options)
        if self.step is None or not outcome.passed:
            return outcome
        options["fixed"] = {
            name: array for name, array in (fixed or {}).items() if name in self.step.input_names
        } or None
        of_step = check_result(self.step, prompts, steps, tolerance, state=self.step.state, **options)
        return outcome if of_step.passed else of_step

    def _long_enough(self, prompts: Prompts) -> Prompts:
        """Return prompts, random ones with the least number of tokens that the decoder holds for."""
        least = self.plan.limits.least
        if least == 1 or not (prompts is None or isinstance(prompts, int)):
            return prompts
        lengths = LENGTHS if prompts is None else (LENGTHS * prompts)[:prompts]
        config: Any = self.model.config
        vocabulary, drawn = config.get_text_config(decoder=True).vocab_size, torch.Generator().manual_seed(0)
        return [torch.randint(0, vocabulary, (1, least - 1 + length), generator=drawn) for length in lengths]

    def assert_generation(
        self,
        prompts: Prompts = None,
        steps: int = 32,
        *,
        tolerance: str | TractCheckTolerance | None = None,
        timeout: float = 60.0,
    ) -> GenerationOutcome:
        """Run check_generation, and raise the T2NError of a failure (ParityError, EngineCrash, …)."""
        __tracebackhide__ = True
        return self.check_generation(prompts, steps, tolerance=tolerance, timeout=timeout).raise_for_failure()

    def measure_loss(self, original: nn.Module | None = None, text: Any = None, *, timeout: float = 60.0) -> WeightLoss:
        """Return what small weights lose against float32, on a text; see `t2n_core.generative.loss.measure_loss`."""
        with evaluating(self.model), nullcontext() if original is None else evaluating(original):
            return measure_loss(self, original, text, timeout=timeout)

    def measure_cache(self, bits: int = 8, text: Any = None, *, timeout: float = 60.0) -> CacheLoss:
        """Return what a cache of 8 or 4 bits in the engine loses on a text; see `t2n_core.generative.loss`."""
        with evaluating(self.model):
            return measure_cache(self, bits, text, timeout=timeout)


class OfOneInput(nn.Module):
    """An encoder-decoder with a fixed input, so that it generates from the decoder's tokens."""

    def __init__(self, model: Any, inputs: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self.model, self.inputs = model, dict(inputs)
        self.config = model.config.get_text_config(decoder=True)
        self.generation_config = copy.copy(model.generation_config)

    def generate(self, tokens: torch.Tensor, attention_mask: torch.Tensor, **options: Any) -> Any:
        """Return the result of transformers' common `generate`, since Whisper's adds tokens."""
        from transformers import GenerationMixin

        generate: Any = GenerationMixin.generate
        twin = copy.copy(self.model)  # without its own configuration's generation settings
        twin.generation_config = copy.copy(self.generation_config)
        twin.generation_config.decoder_start_token_id = int(tokens[0, 0])  # another token would precede the prompt
        return generate(twin, **self.inputs, decoder_input_ids=tokens, **options)
