"""A language model token by token: ours in tract in several forms and PyTorch, in turns in one process, one thread.

`python -m conformance.lab.measure.decoding < job.json` is that process. Each turn runs a prompt at an empty cache, then
greedy steps after it; all forms of one precision must choose the tokens that PyTorch does.
"""

from __future__ import annotations

import functools
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from conformance.lab.machine import VERSIONS, pin_to_one_core
from conformance.lab.measure.engine.steps import Step, load, run_steps, with_cache, with_state
from conformance.lab.measure.nets.decoder import Products, Size, build, example
from conformance.lab.pages.tables import figures_table as table
from conformance.lab.processes import ask_module
from conformance.lab.timing import Stopwatch, in_turns, ratio
from t2n_core import ModelExport, TractNNEF
from t2n_core.engine import ResolvedEngine, resolve_engines
from t2n_core.engine.tract.driver import TractDriver
from t2n_core.errors import EngineOptimiseError

LINES = "0.21,0.22,0.23"
PROMPT, STEPS, ROUNDS = 512, 8, 3
PRODUCTS = "products alone"
TARGETS: Mapping[str, tuple[str, str, str, float]] = {
    "a token, against PyTorch": ("token_ms", "float32", "torch", 0.5),
    "a token by an archive of one token, against PyTorch": ("token_ms", "float32, one token", "torch", 0.5),
    "the products with the weights alone, against PyTorch's token": ("token_ms", PRODUCTS, "torch", 0.5),
    "a token of float16, against float32": ("token_ms", "float16", "float32", 1.1),
    "a token of 4 bits, against float32": ("token_ms", "4 bits", "float32", 0.6),
    "a token with the cache in the engine, against outside": ("token_ms", "float32, own cache", "float32", 1.0),
    "the prompt, against PyTorch": ("prompt_ms", "float32", "torch", 1.1),
}
"""Comparison -> figure, form, the form that it is compared with, and the largest ratio allowed."""
HOW = (
    f"Greedy steps after a prompt of {PROMPT} tokens, 124.7 million parameters, batch 1, CPU time on one pinned core. "
    "All forms run in turns in one process; a ratio is the median over the turns. The tokens of float16 and of 4 bits "
    "may be others than PyTorch's in float32. The products alone are a net of the same weights without attention and "
    "caches: no archive of the model can be faster in that engine."
)
JUDGED = "0.23"
"""The line that the targets are for; the others stand next to it."""
EXPORT_TARGET = 1.3
"""Export over torch.export alone."""


def measure(folder: Path, say: Callable[[str], None], size: Size | None = None) -> dict[str, Any]:
    """Return export times, and for each engine the figures of all forms; {"export": …, "engines": {version: …}}."""
    size = Size() if size is None else size
    say("exports of a decoder")
    results: dict[str, Any] = {"size": asdict(size), "export": export_times(folder, size), "engines": {}}
    for engine in resolve_engines(LINES):
        say(f"tokens in tract {engine.version}")
        archives = export_forms(folder / engine.version, engine, size)
        results["engines"][engine.version] = run_turns(engine, archives, size)
    return results


def export_times(folder: Path, size: Size) -> dict[str, float]:
    """Return CPU seconds of an export and of torch.export alone, each the least of two turns after one to warm up.

    Each archive is removed, so that the next one is written to memory that the kernel has already: on a virtual machine
    a page that was never used costs ten times the copy.
    """
    times: dict[str, list[float]] = {"ours": [], "torch.export": []}
    for turn in range(3):
        model = build(size)
        inputs, options = example(model)
        watch = Stopwatch()
        written = ModelExport(model, inputs, **options).to(
            TractNNEF(VERSIONS[-1], check_io=False), folder / "timed.nnef.tar"
        )
        ours = watch.cpu
        written.archive.unlink()
        free = torch.export.Dim.DYNAMIC
        shapes = ({1: free}, tuple({2: free} for _ in inputs[1:]))
        watch = Stopwatch()
        torch.export.export(model, inputs, dynamic_shapes=shapes, strict=False)
        if turn:
            times["ours"].append(ours)
            times["torch.export"].append(watch.cpu)
    return {who: min(seconds) for who, seconds in times.items()}


def export_forms(folder: Path, engine: ResolvedEngine, size: Size) -> dict[str, str]:
    """Return form -> archive."""
    folder.mkdir(parents=True, exist_ok=True)
    archives = {}
    for dtype, forms in ((torch.float32, ("float32", "4 bits")), (torch.float16, ("float16",))):
        model = build(size, dtype)
        inputs, options = example(model)
        export = ModelExport(model, inputs, **options)
        for form in forms:
            more: dict[str, Any] = {"weights": "q4_0"} if form == "4 bits" else {}
            archives[form] = _write_archive(export, folder, form, engine, **more)
    model = build(size)
    inputs, options = example(model, tokens=1)
    of_caches = {name: axes for name, axes in options["dynamic_axes"].items() if name != "tokens"}
    export = ModelExport(model, inputs, **{**options, "dynamic_axes": of_caches})
    archives["float32, one token"] = _write_archive(export, folder, "one-token", engine)
    export = ModelExport(Products(model), inputs[:1], dynamic_axes={"tokens": {1: "S"}})
    archives[PRODUCTS] = _write_archive(export, folder, PRODUCTS, engine)
    return archives


def _write_archive(export: ModelExport, folder: Path, form: str, engine: ResolvedEngine, **options: Any) -> str:
    target = TractNNEF(engine.version, check_io=False, engine=engine, **options)
    return str(export.to(target, folder / f"{form.replace(' ', '-')}.nnef.tar").archive)


def run_turns(
    engine: ResolvedEngine,
    archives: Mapping[str, str],
    size: Size,
    prompt: int = PROMPT,
    steps: int = STEPS,
    rounds: int = ROUNDS,
) -> dict[str, Any]:
    """Return the figures of each form, from a separate process. Raises CalledProcessError if that fails."""
    job = {"library": str(engine.library), "archives": dict(archives), "size": asdict(size), "prompt": prompt}
    job |= {"own_cache": engine.version.startswith("0.23"), "steps": steps, "rounds": rounds}
    figures: dict[str, Any] = ask_module("conformance.lab.measure.decoding", job=job)
    return figures


def ratios(figures: Mapping[str, Any]) -> Iterator[tuple[str, float, float]]:
    """Yield each comparison with its measured ratio (the median over turns) and its target."""
    for name, (figure, form, other, target) in TARGETS.items():
        if form in figures and other in figures:
            yield name, ratio(figures[form][figure], figures[other][figure]), target


def tables(results: Mapping[str, Any]) -> list[str]:
    """Return what was measured as Markdown: the targets of each engine, and milliseconds of each form."""
    export = results["export"]["ours"] / results["export"]["torch.export"]
    rows = [["all", "export, against torch.export alone", *_ratio_row(export, EXPORT_TARGET)]]
    times = []
    for version, figures in results["engines"].items():
        for name, share, target in ratios(figures):
            judged = _ratio_row(share, target) if version.startswith(JUDGED) else [f"{share:.2f} x", "", ""]
            rows.append([version, name, *judged])
        for form, of_form in figures.items():
            shown = [f"{min(of_form[figure]):.1f}" for figure in ("token_ms", "prompt_ms")]
            times.append([version, form, *shown, str(of_form["tokens"] == figures["torch"]["tokens"])])
    head = ["tract", "form", "a token, ms", "the prompt, ms", "tokens of PyTorch"]
    return [table(["tract", "what", "ratio", "target", ""], rows), table(head, times)]


def _ratio_row(share: float, target: float) -> list[str]:
    return [f"{share:.2f} x", f"at most {target:g} x", "met" if share <= target else "missed"]


def _in_torch(model: Any) -> Step:
    caches = model.empty()

    def step(tokens: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        logits, *caches[:] = model(torch.from_numpy(tokens), *caches)
        array: np.ndarray[Any, Any] = logits.numpy()
        return array

    return step


def _sequences(job: Mapping[str, Any]) -> dict[str, Callable[[], Step]]:
    """Return form -> function that begins a new sequence."""
    driver = TractDriver(Path(job["library"]))
    model = build(Size(**job["size"]))
    empty = {form: [cache.numpy() for cache in model.empty()] for form in job["archives"]}
    if "float16" in empty:
        empty["float16"] = [cache.astype(np.float16) for cache in empty["float16"]]
    loaded = {form: load(driver, archive) for form, archive in job["archives"].items()}
    single_token = loaded.pop("float32, one token")
    sequences: dict[str, Callable[[], Step]] = {"torch": lambda: _in_torch(model)}
    for form, runnable in loaded.items():
        sequences[form] = functools.partial(with_cache, driver, runnable, [] if form == PRODUCTS else empty[form])
    sequences["float32, one token"] = lambda: with_cache(driver, loaded["float32"], empty["float32"], single_token)
    if job["own_cache"]:
        stateful = load(driver, job["archives"]["float32"], "detect_kv_cache")
        if stateful.inputs != 1:
            raise EngineOptimiseError(f"{stateful.inputs - 1} inputs are left where the engine holds the caches")
        sequences["float32, own cache"] = lambda: with_state(stateful)
    return sequences


def main() -> None:
    job = json.load(sys.stdin)
    torch.set_num_threads(1)
    pin_to_one_core()
    sequences = _sequences(job)
    prompt = np.random.default_rng(3).integers(0, job["size"]["words"], (1, job["prompt"]))
    figures: dict[str, dict[str, Any]] = {form: {"prompt_ms": [], "token_ms": []} for form in sequences}
    with torch.inference_mode():
        for form, begin in in_turns(sequences.items(), job["rounds"]):
            times, chosen, _ = run_steps(begin(), prompt, 1 + job["steps"])
            figures[form]["prompt_ms"].append(times[0])
            figures[form]["token_ms"].append(statistics.median(times[1:]))
            figures[form]["tokens"] = chosen
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
