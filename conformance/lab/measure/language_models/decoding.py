"""Run greedy steps of one model in tract, from both exporters' archives, and in PyTorch; in turns, in one process.

`python -m conformance.lab.measure.language_models.decoding < job.json` is that process. Each turn runs the prompt with
an empty cache, then one token per step; PyTorch's tokens come from its own `generate`.
"""

from __future__ import annotations

import functools
import json
import statistics
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

import conformance.cases.models.libraries  # noqa: F401
from conformance.lab.machine import pin_to_one_core
from conformance.lab.measure.engine.steps import Step, input_shapes, load, run_steps, with_cache
from conformance.lab.processes import open_answers
from conformance.lab.timing import in_turns
from t2n_core.engine.tract.driver import TractDriver
from t2n_core.generative.calls import cache_argument
from t2n_core.generative.export import STEP

Tokens = np.ndarray[Any, Any]


def generate_reference(model: Any, prompt: Tokens, steps: int) -> tuple[list[int], Tokens]:
    """Return the tokens of the model's own `generate`, greedy and without an end, and their logits."""
    tokens = torch.from_numpy(prompt)
    answer = model.generate(
        tokens,
        attention_mask=torch.ones_like(tokens),
        max_new_tokens=steps,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
        output_logits=True,
        return_dict_in_generate=True,
    )
    return answer.sequences[0, prompt.shape[1] :].tolist(), torch.cat(answer.logits).numpy()


def in_torch(model: Any) -> Step:
    """Return a step of a new sequence in PyTorch."""
    cache, name = None, cache_argument(model)

    def step(tokens: Tokens) -> Tokens:
        nonlocal cache
        answer = model(torch.from_numpy(tokens), use_cache=True, logits_to_keep=1, **{name: cache})
        cache = getattr(answer, name)
        logits: Tokens = answer.logits.numpy()
        return logits

    return step


def one_by_one(step: Step, *, always: bool = True) -> Step:
    """Return a step that feeds any number of tokens to `step` one by one; unless `always`, `step` itself."""

    def parts(ids: Tokens) -> Tokens:
        for token in np.split(ids, ids.shape[1], 1):
            logits = step(token)
        return logits

    return parts if always else step


def in_tract(driver: TractDriver, archive: str) -> Callable[[], Step]:
    """Return a function that begins a new sequence of an archive: tokens and caches in, logits and caches out.

    Single tokens run in the archive for them, if there is one next to it.
    """
    (tokens, _), *caches = input_shapes(driver.load(Path(archive)))
    empty = [np.zeros([0 if isinstance(extent, str) else extent for extent in shape], kind) for shape, kind in caches]
    runnable, beside = load(driver, archive), Path(archive).with_name(STEP)
    single = load(driver, str(beside)) if beside.exists() else None

    return lambda: one_by_one(with_cache(driver, runnable, empty, single), always=tokens[1] == 1)


def compare_tokens(chosen: list[int], logits: list[Tokens], tokens: list[int], expected: Tokens) -> dict[str, Any]:
    """Return how many tokens are right before one is wrong, and the largest error of logits up to there."""
    pairs = enumerate(zip(chosen, tokens, strict=True))
    right = next((step for step, (got, token) in pairs if got != token), len(tokens))
    errors = [float(np.abs(logits[step] - expected[step]).max()) for step in range(min(right + 1, len(tokens)))]
    return {"right": right, "of": len(tokens), "largest_error": max(errors)}


def run(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return, by exporter and for `torch`, milliseconds of the prompt and of a token, and tokens against PyTorch's."""
    from transformers import AutoModelForCausalLM

    driver = TractDriver(Path(job["library"]))
    model = AutoModelForCausalLM.from_pretrained(job["folder"], dtype=torch.float32).eval()
    vocabulary = model.config.get_text_config().vocab_size
    prompt = np.random.default_rng(3).integers(0, vocabulary, (1, job["prompt"]))
    tokens, expected_logits = generate_reference(model, prompt, job["steps"])
    sequences = {who: in_tract(driver, archive) for who, archive in job["archives"].items()}
    sequences["torch"] = functools.partial(in_torch, model)
    figures: dict[str, dict[str, Any]] = {who: {"prompt_ms": [], "token_ms": []} for who in sequences}
    for who, begin in in_turns(sequences.items(), job["rounds"]):
        times, chosen, rows = run_steps(begin(), prompt, job["steps"])
        figures[who]["prompt_ms"].append(times[0])
        figures[who]["token_ms"].append(statistics.median(times[1:]))
        figures[who] |= compare_tokens(chosen, rows, tokens, expected_logits)
    for who, begin in sequences.items():
        if not figures[who]["right"]:  # is it the prompt at once that is wrong?
            _, chosen, rows = run_steps(one_by_one(begin()), prompt, job["steps"])
            figures[who]["one_by_one"] = compare_tokens(chosen, rows, tokens, expected_logits)
    return {**figures, "different_tokens": len(set(tokens))}


def main() -> None:
    job = json.load(sys.stdin)
    answers = open_answers()
    torch.set_num_threads(1)
    pin_to_one_core()
    with torch.inference_mode():
        print(json.dumps(run(job)), file=answers, flush=True)


if __name__ == "__main__":
    main()
