"""The tokens that a model generates in PyTorch: by its own `generate` if it has one, or step by step."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from t2n_core.check.exported.archive import ExportedArchive
from t2n_core.check.sampling.sampler import sizes_of
from t2n_core.engine.protocol import Array
from t2n_core.errors import InputError
from t2n_core.level import TractCheckTolerance
from t2n_core.nnef.sizes.dims import Shape, is_static
from t2n_core.op.stored.source import stored_values
from t2n_core.parity.comparison import compare
from t2n_core.parity.generation.continuation import Continuation
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.samples import Sample
from t2n_core.parity.state_pairs import StatePair
from t2n_core.rewriter.context import without_rewrites
from t2n_core.torch_graph.frontend.bfloat16 import without_bfloat16
from t2n_core.torch_graph.frontend.results import tensors_of
from t2n_core.torch_graph.frontend.sources import Source

LENGTHS = (7, 7, 4)
"""Lengths of random prompts: two fit in one batch, one has another length."""
_TRIES = 12
"""Most prompts that are drawn until two tokens of all continuations differ."""
_NEAR = 96
"""A window up to this size is filled by random prompts."""

Generate = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""A function from a prompt `[1, S]` to the tokens `[steps]` after it and the logits `[steps, vocabulary]` of each."""
State = Mapping[str, torch.Tensor]
Prompts = int | Sequence[Any] | torch.Tensor | None


def continuations_of(
    result: ExportedArchive,
    prompts: Prompts = None,
    steps: int = 32,
    *,
    model: nn.Module | None = None,
    state: Sequence[StatePair] | None = None,
    fixed: Mapping[str, Array] | None = None,
    most: int | None = None,
) -> tuple[list[Continuation], list[str]]:
    """Return the greedy continuations of prompts, and notes on gaps of the prompts. The model is not changed.

    `prompts` is a number of random prompts, tensors of tokens `[S]` or `[B, S]`, or lists of tokens. The tokens come
    from transformers' `generate` of `model`, by default the exported model, without any processing of logits and
    without an end of text. If there is no `generate`, or the archive takes further inputs, the exported model is called
    step by step from `state`, by default the export's. `fixed` holds these further inputs, such as an encoder's
    outputs, for a model whose `generate` computes them itself. `most` is the number of tokens, steps included, that the
    archive is valid for, if it is less than the model takes. The weights are the archive's; bfloat16 is computed in
    float32.

    Raises:
        InputError: a prompt is empty or too long, or the model's `generate` is not greedy.
    """
    if steps < 1:
        raise InputError(f"steps={steps}: a generation has one step or more")
    stepper = Stepper(result, state, fixed)
    model = result.reference.source.module if model is None else model
    has_own = hasattr(model, "generate") and (fixed is not None or not stepper.fixed)
    if fixed is None:
        fixed = {name: tensor.detach().cpu().numpy() for name, tensor in stepper.fixed.items()}
    config = getattr(model, "config", None)
    window, positions = _number(config, "sliding_window"), _number(config, "max_position_embeddings")
    most = min((number for number in (most, positions) if number is not None), default=None)
    continuations: list[Continuation] = []
    with torch.no_grad(), without_rewrites():
        generate = _by_generate(model, steps, _weights(result)) if has_own else _by_steps(stepper, steps)
        vocabulary = _number(config, "vocab_size") or stepper.vocabulary()
        for prompt in _prompts(prompts, steps, window, vocabulary, continuations):
            if not prompt.shape[1]:
                raise InputError("a prompt has one token or more")
            length = prompt.shape[1]
            if most is not None and length + steps > most:
                raise InputError(
                    f"a prompt of {length} tokens and {steps} steps: the decoder takes {most} tokens",
                    hint=f"check {most - length} steps" if most > length else None,
                )
            tokens, logits = (tensor.detach().cpu().numpy() for tensor in generate(prompt))
            continuations.append(Continuation(prompt.numpy(), tokens, logits, fixed))
    if not continuations:
        raise InputError("give one prompt or more")
    reached = max(continuation.prompt.shape[1] + continuation.steps for continuation in continuations)
    notes = []
    if window is not None and reached <= window:
        notes.append(f"no prompt with its {steps} steps passes the sliding window of {window} tokens")
    return continuations, notes


def is_divisible(stepper: Stepper, prompt: Array, level: TractCheckTolerance) -> bool:
    """Return whether PyTorch itself has the same logits after a prompt `[1, S]` in parts as after the full prompt."""
    ids = torch.from_numpy(prompt)
    with torch.no_grad(), without_rewrites():
        full_logits, _ = stepper.step(ids, stepper.initial)
        state = stepper.initial
        for part in torch.split(ids, 1, 1):
            logits, state = stepper.step(part, state)
    return compare(np.asarray(full_logits.numpy()), np.asarray(logits.numpy()), criteria=Judgement(level)).passed


class Stepper:
    """An exported model that is called with one row of tokens and its state, by the archive's names."""

    def __init__(
        self,
        result: ExportedArchive,
        state: Sequence[StatePair] | None = None,
        fixed: Mapping[str, Array] | None = None,
    ) -> None:
        """Take an export, the state before the first step if it is not the export's own, and values of other inputs.

        Raises InputError if there are no tokens among the inputs, or for fixed batches of several rows.
        """
        self._result, self._inputs = result, result.reference.inputs
        stored = _weights(result)
        source = result.reference.source
        self._run = partial(source.run_with, stored) if stored else source.run
        shapes = {value.name: value.shape for value in result.graph.inputs}
        pairs = {pair.input: pair for pair in (result.state if state is None else state)}
        regular = [name for name in result.input_names if name not in pairs]
        if not regular or len(shapes[regular[0]]) != 2:
            raise InputError(
                f"the first input of this archive is not a batch of tokens: {', '.join(regular) or 'none'}"
            )
        self.tokens, *others = regular
        self._batch, self._width = shapes[self.tokens]
        if self._batch != 1 and is_static((self._batch,)):
            raise InputError(
                f"the archive takes batches of {self._batch}, and prompts are fed one by one",
                hint='make the batch size dynamic, such as batch="B", or give an example of one sequence',
            )
        examples = dict(zip(self._inputs.names, self._inputs.tensors, strict=True))
        self.fixed = {name: self._row(examples[name], shapes[name]) for name in others}
        self.fixed.update({name: torch.from_numpy(array) for name, array in (fixed or {}).items()})
        """Inputs that are the same in each step: the example's, unless others are given."""
        self.initial: State = {
            name: self._row(torch.from_numpy(np.array(pair.initial)), shapes[name]) for name, pair in pairs.items()
        }
        """The state before the first step, by the name of its input."""

    def _row(self, tensor: torch.Tensor, shape: Shape) -> torch.Tensor:
        """Return the first row of a tensor along each batch axis."""
        for axis, size in enumerate(shape):
            if size == self._batch and not is_static((size,)):
                tensor = tensor.narrow(axis, 0, 1)
        return tensor.detach()

    def parts(self, ids: torch.Tensor) -> Sequence[torch.Tensor]:
        """Return tokens as they are fed: at once, or one by one."""
        return torch.split(ids, 1, 1) if self._width == 1 else (ids,)

    def logits(self, sample: Sample) -> Array:
        """Return the logits `[vocabulary]` of a sampled step."""
        return np.asarray(self._read([torch.from_numpy(array) for array in sample.expected])[0][0].numpy())

    def vocabulary(self) -> int:
        """Return the number of logits after one token."""
        return int(self.step(torch.zeros(1, 1, dtype=torch.int64), self.initial)[0].shape[-1])

    def step(self, ids: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        """Return the logits after the last of these tokens, and the next state."""
        for part in self.parts(ids):
            logits, state = self._read(self._call(part, state)[1])
        return logits, state

    def takes_first(self, ids: torch.Tensor) -> bool:
        """Return whether the range of the archive has a first step with these tokens."""
        return self._result.range.holds(self._sizes(self._tensors(ids, self.initial)))

    def sampled_step(self, ids: torch.Tensor, state: State) -> tuple[Sample, State]:
        """Return all inputs and outputs of a step as a sample, and the next state."""
        tensors, outputs = self._call(ids, state)
        sizes = self._sizes(tensors)
        arrays = [tuple(tensor.detach().cpu().numpy() for tensor in part) for part in (tensors, outputs)]
        return Sample(arrays[0], arrays[1], sizes), self._read(outputs)[1]

    def _tensors(self, ids: torch.Tensor, state: State) -> list[torch.Tensor]:
        arguments = {**self.fixed, **state, self.tokens: ids}
        examples = zip(self._inputs.names, self._inputs.tensors, strict=True)
        return [arguments.get(name, example) for name, example in examples]

    def _sizes(self, tensors: Sequence[torch.Tensor]) -> dict[str, int]:
        return sizes_of([value.shape for value in self._result.captured.graph.inputs], tensors)

    def _call(self, ids: torch.Tensor, state: State) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        tensors = self._tensors(ids, state)
        args, kwargs = self._inputs.arguments_with([tensor.clone() for tensor in tensors])
        return tensors, tensors_of(self._run(args, kwargs))

    def _read(self, outputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, State]:
        named_outputs = dict(zip(self._result.output_names, outputs, strict=True))
        following = {pair.input: named_outputs.pop(pair.output) for pair in self._result.state}
        logits = next(iter(named_outputs.values()))
        return logits if logits.ndim == 2 else logits[:, -1], following


def _prompts(
    prompts: Prompts, steps: int, window: int | None, vocabulary: int, continuations: list[Continuation]
) -> Iterator[torch.Tensor]:
    """Yield prompts `[1, S]`; random ones until two tokens of their continuations differ."""
    if prompts is not None and not isinstance(prompts, int):
        for prompt in [prompts] if isinstance(prompts, torch.Tensor) else prompts:
            rows = torch.as_tensor(prompt, dtype=torch.int64)
            yield from torch.split(rows if rows.ndim == 2 else rows.reshape(1, -1), 1)
        return
    count = len(LENGTHS) if prompts is None else prompts
    if count < 1:
        raise InputError(f"prompts={prompts}: give one prompt or more")
    generator = torch.Generator().manual_seed(0)
    longer = max(window + 2 - steps - max(LENGTHS), 0) if window is not None and window <= _NEAR else 0
    for number in range(max(count, _TRIES)):
        if number >= count and len({int(token) for continuation in continuations for token in continuation.tokens}) > 1:
            return
        size = LENGTHS[number % len(LENGTHS)] + longer
        yield torch.randint(0, vocabulary, (1, size), generator=generator)


def _by_generate(model: Any, steps: int, weights: Mapping[str, torch.Tensor]) -> Generate:
    """Return the model's own `generate`, greedy, with exactly this number of tokens."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the export has already warned
        model, _ = without_bfloat16(model, [])
    config = model.generation_config
    token_ids = {name: getattr(config, name, None) for name in ("bos_token_id", "decoder_start_token_id")}
    shallow = copy.copy(model)  # shares the parts of the model
    shallow.generation_config = type(config)(do_sample=False, num_beams=1, use_cache=True, pad_token_id=0, **token_ids)
    source = Source(shallow, "generate")

    def generate(prompt: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        options: dict[str, Any] = {"max_new_tokens": steps, "output_logits": True, "return_dict_in_generate": True}
        options["attention_mask"] = torch.ones_like(prompt)
        answer = source.run_with(weights, (prompt,), options) if weights else source.run((prompt,), options)
        tokens, logits = answer.sequences[0, prompt.shape[1] :], torch.cat(answer.logits)
        if len(tokens) != steps or not torch.equal(logits.argmax(-1), tokens):
            raise InputError(f"`generate` of {type(model).__name__} does not choose the token of the largest logit")
        return tokens, logits

    return generate


def _by_steps(stepper: Stepper, steps: int) -> Generate:
    def generate(prompt: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ids, state, logits = prompt, stepper.initial, list[torch.Tensor]()
        for _ in range(steps):
            last, state = stepper.step(ids, state)
            logits.append(last[0])
            ids = last.argmax(-1, keepdim=True)
        return torch.stack(logits).argmax(-1), torch.stack(logits)

    return generate


def _weights(result: ExportedArchive) -> dict[str, torch.Tensor]:
    """Return the weights with another storage format in the archive, as the engine reads them."""
    return stored_values(result.stored, result.reference.source)


def _number(config: Any, name: str) -> int | None:
    """Return an integer from a model's configuration or its text configuration; None if neither has it."""
    for part in (config, getattr(config, "text_config", None)):
        value = getattr(part, name, None)
        used = name != "sliding_window" or getattr(part, "use_sliding_window", True)
        if isinstance(value, int) and value > 0 and used:
            return value
    return None
