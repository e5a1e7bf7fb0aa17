"""Export a model that generates tokens: its archives and the other files that a runner needs, in one folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from torch import nn

from t2n_core.errors import CaptureError, InputError, LowerError, ParityError
from t2n_core.export.model import ModelExport
from t2n_core.export.result import ExportResult
from t2n_core.generative.calls import INPUT, no_positions_error
from t2n_core.generative.folder import TRANSFORMS, write_beside
from t2n_core.generative.loss import text_windows
from t2n_core.generative.parts import TOKENS, Part, Plan, TokenLimits, plan_of, short_positions
from t2n_core.generative.result import GenerativeResult
from t2n_core.inference_target import TractNNEF
from t2n_core.parity.generation.further import HELD
from t2n_core.parity.generation.loss import WeightLoss
from t2n_core.parity.generation.outcome import FurtherStatus, GenerationOutcome
from t2n_core.torch_graph.frontend.training import evaluating, training_note

DECODER: Final = "decoder.nnef.tgz"
ENCODER: Final = "encoder.nnef.tgz"
STEP: Final = "step.nnef.tgz"
Holder = Literal["explicit", "engine", "engine-int8", "engine-int4"]
"""The holder of the cache: the caller, or the engine, as it is or quantized."""
BITS: Final = {"engine-int8": 8, "engine-int4": 4}


class GenerativeExport:
    """One model that generates tokens, captured once and exported to any number of targets.

    Args:
        model: a model of transformers, exported and checked in evaluation mode; it is never changed.
        example: token ids [batch, tokens] of at least 5 tokens, or the arguments of `generate` by name, such as
            `input_features`. Without one, random tokens.
        batch: the symbol of a dynamic number of sequences; without one the number is the example's.
        last_logits: compute only the logits of the last token of a step, or of this many last tokens, such as 4. With
            "input" the archive has a further input `logits_to_keep`, int64 [K]: the positions in the step whose logits
            are computed; -1 is the last one.
        dynamic_axes: for an encoder's inputs.
        step_archive: also export the decoder for a single token, as `step.nnef.tgz` with separate weights: engines
            choose faster products if they know that there is one row.
        scenarios: the archive names the scenarios of tract's own archives, `tg` for one token and `pp` for a prompt
            without a past, with which the engine simplifies sizes, and `any` for a prompt that goes on.
        positions: the maximum sequence length in tokens, by default the model's. With LongRoPE the default is its short
            factors' maximum, and more makes a decoder for sequences that are longer than that from the first call on.
        options: further options of `ExportOptions`, by name.

    Raises:
        InputError: the model has no cache, or does not accept the example.
    """

    def __init__(
        self,
        model: nn.Module,
        example: Any = None,
        *,
        batch: str | None = None,
        last_logits: bool | int | str = False,
        dynamic_axes: Mapping[str, Mapping[int, Any]] | None = None,
        step_archive: bool = False,
        scenarios: bool = False,
        positions: int | None = None,
        **options: Any,
    ) -> None:
        if model.training and options.get("training") == "refuse":
            raise InputError("the model is in training mode", hint="call model.eval() before exporting")
        self.model, self._example, self._options = model, example, options
        self._step_archive = step_archive
        self._wanted: dict[str, Any] = {"batch": batch, "last_logits": last_logits, "dynamic_axes": dynamic_axes}
        self._wanted |= {"scenarios": scenarios, "positions": positions}
        note = training_note(model, type(model).__name__)
        self._mode_notes = () if note is None else (note,)
        with evaluating(model):
            self.plan = plan_of(model, example, **self._wanted)
        self._exports: dict[int, ModelExport] = {}

    @cached_property
    def _plan_of_one_token(self) -> Plan:
        if self.plan.limits.least > 1:
            raise InputError("a decoder by the long factors of LongRoPE takes its prompt in one step")
        return plan_of(self.model, self._example, one_token=True, **self._wanted)

    def to(
        self,
        target: TractNNEF,
        directory: str | Path,
        *,
        kv: Holder = "explicit",
        tokenizer: Any = None,
        steps: int = 16,
        original: nn.Module | None = None,
        text: Any = None,
        max_loss: float | None = None,
        timeout: float = 60.0,
    ) -> GenerativeResult:
        """Write the folder for one target; see `export_generative`. Raises T2NError, and then leaves nothing there."""
        if not isinstance(target, TractNNEF):
            raise InputError(f"{target} does not support generating models: only tract has dynamic sizes")
        if target.dynamic_axes:
            raise InputError("give the dynamic axes of a generating model to its export, not to its target")
        if kv not in TRANSFORMS:
            raise InputError(f"kv={kv!r} is not one of {', '.join(TRANSFORMS)}")
        if kv != "explicit" and not getattr(target.engine(), "holds_state", False):
            raise InputError(f"{target} cannot hold a cache: releases from 0.23.0 on can", hint='kv="explicit"')
        if not target.check_io and (text is not None or max_loss is not None):
            raise InputError("no loss is measured without a check", hint="leave out text and max_loss, or check_io")
        if text is not None:
            text_windows(self.plan.limits, text)  # refuses a text that is too short
        folder = Path(directory)
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
        try:
            with evaluating(self.model):
                result = self._write_archives(target, scratch)
                if target.check_io:
                    for part in result.parts.values():
                        part.assert_parity(timeout=timeout)
                    proof = result.assert_generation(steps=steps, timeout=timeout)
                    if kv != "explicit":
                        _assert_held(proof)
                    result = replace(result, proof=proof)
                    if kv in BITS:
                        result = replace(result, cache=result.measure_cache(BITS[kv], text, timeout=timeout))
                    is_asked = max_loss is not None or (text is not None and kv not in BITS)
                    if is_asked or original is not None or result.decoder.stored:
                        result = replace(result, loss=result.measure_loss(original, text, timeout=timeout))
                    _assert_small(result.loss, max_loss)
                write_beside(result, tokenizer, kv)
            folder.mkdir(exist_ok=True)
            for file in scratch.iterdir():
                _replace(file, folder / file.name)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        for part in result.parts.values():
            part.archive = folder / part.archive.name
        return replace(result, directory=folder)

    def _write_archives(self, target: TractNNEF, folder: Path) -> GenerativeResult:
        """Write the archives. Each step takes a single token if steps of every length cannot be exported."""
        plan, refusal = self.plan, ""
        if not all(map(target.spec.has, plan.call.needs)):
            plan = self._plan_of_one_token
            if self._wanted["last_logits"] == INPUT:
                raise no_positions_error(self.model)
        try:
            decoder = self._export(plan.decoder, target, folder / DECODER)
            refusal = _refused_numbers(plan, decoder)
        except (CaptureError, LowerError) as refused:
            if not plan.call.takes_many:
                raise
            refusal = refused.message
        if refusal:
            plan = self._plan_of_one_token
            decoder = self._export(plan.decoder, target, folder / DECODER)
            decoder.notes += (f"a step has one token: several are refused ({refusal})",)
        encoder = None if plan.encoder is None else self._export(plan.encoder, target, folder / ENCODER)
        step = None
        if self._step_archive and plan.call.takes_many:
            step = self._export(self._plan_of_one_token.decoder, target, folder / STEP)
        if short_positions(self.model) is not None:
            decoder.notes += (_note_on_factors(plan.limits),)
        decoder.notes = (*self._mode_notes, *decoder.notes)
        return GenerativeResult(folder, self.model, plan, decoder, encoder, step)

    def _export(self, part: Part, target: TractNNEF, path: Path) -> ExportResult:
        if id(part) not in self._exports:
            self._exports[id(part)] = ModelExport(part.module, dict(part.arguments), **part.options, **self._options)
        return self._exports[id(part)].to(target.with_extensions(part.extensions), path)


def export_generative(
    model: nn.Module,
    example: Any = None,
    target: TractNNEF | None = None,
    directory: str | Path = "generative",
    *,
    kv: Holder = "explicit",
    tokenizer: Any = None,
    steps: int = 16,
    original: nn.Module | None = None,
    text: Any = None,
    max_loss: float | None = None,
    timeout: float = 60.0,
    **options: Any,
) -> GenerativeResult:
    """Write the archives of a model of transformers that generates tokens, with its cache as inputs and outputs.

    A decoder is one archive, `decoder.nnef.tgz`, for a prompt (with an empty cache) and for each later step. In a model
    with an encoder, `encoder.nnef.tgz` computes the encoded tensors for all steps from the input; `step.nnef.tgz`, if
    requested, computes a step of one token. The folder also contains `manifest.json`, the configuration, test vectors,
    and the tokenizer if one is given.

    Args:
        model, example: see `GenerativeExport`.
        target: a TractNNEF; the newest release by default. Unless it has `check_io=False` the archives are checked, and
            tokens are generated in its engine and compared with the model's own `generate`.
        directory: the folder, which is created.
        kv: with `engine` the check also has to show that the engine can hold the cache itself (from 0.23.0 on); the
            archive is the same, and the manifest lists the transforms that runners have to apply. With `engine-int8`
            and `engine-int4` (from 0.23.5 on) the engine also quantizes the cache, which needs a target with
            `reify_sdpa_operator=True`; the check measures what that loses.
        tokenizer: any object with `save_pretrained`.
        steps: the number of tokens that the check generates after each prompt.
        original: the model in float32, if its weights are not: the check measures the loss. Without it, compressed
            weights are compared with the model itself.
        text: the tokens of a text to measure the loss on, in windows of as many as the model takes; by default the
            model in float32 generates one.
        max_loss: the check fails if the archive's perplexity exceeds the float32 model's by more than this share of it,
            such as 0.01.
        timeout: seconds for the engine to load the archive, for each step, and for each parity check.
        options: any of `GenerativeExport`, by name.

    Raises:
        InputError, CaptureError, UnsupportedOpsError, SpecError, WriteError: nothing is written.
        EngineError, ParityError: a check failed; nothing is left in the folder.
    """
    export = GenerativeExport(model, example, **options)
    of_folder: dict[str, Any] = {"kv": kv, "tokenizer": tokenizer, "steps": steps, "original": original, "text": text}
    of_folder |= {"max_loss": max_loss, "timeout": timeout}
    return export.to(TractNNEF() if target is None else target, directory, **of_folder)


def _note_on_factors(limits: TokenLimits) -> str:
    """Return the note on the side of LongRoPE for which a decoder holds."""
    if limits.least > 1:
        return f"LongRoPE: by the long factors, for {limits.least} to {limits.most} tokens, the prompt in one step"
    return f"LongRoPE: by the short factors, for {limits.most} tokens; then transformers computes the cache again"


def _refused_numbers(plan: Plan, decoder: ExportResult) -> str:
    """Return why an archive of a recurrent model cannot take every prompt; empty if it takes any number of tokens.

    The library's own functions for several tokens, which stay where an operator does not compute the same, are captured
    for a certain number of chunks.
    """
    if not plan.call.needs:
        return ""
    low, high = decoder.range.bounds[TOKENS]
    return "" if low <= 1 and high is None else f"the archive would hold only for {decoder.range}"


def _assert_small(loss: WeightLoss | None, most: float | None) -> None:
    """Raise ParityError for a perplexity that grew by more than a share."""
    if loss is not None and most is not None and not loss.increase <= most:
        raise ParityError(f"the weights lose more than {100 * most:g} % of perplexity: {loss.describe()}")


def _assert_held(proof: GenerationOutcome) -> None:
    """Raise ParityError unless the tokens were right with the cache in the engine."""
    cache_check = next((check for check in proof.further if check.name == HELD), None)
    if cache_check is None or cache_check.status is not FurtherStatus.PASS:
        reason = "this release holds no state" if cache_check is None else cache_check.text
        raise ParityError(
            f"the engine cannot hold the cache of this model: {reason}", hint='kv="explicit" does not need it'
        )


def _replace(new: Path, old: Path) -> None:
    if old.is_dir():
        shutil.rmtree(old)
    shutil.move(new, old)
