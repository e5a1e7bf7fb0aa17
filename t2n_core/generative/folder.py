"""The files beside the archives of a generating model, for runners: a manifest, the configuration, test vectors."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from t2n_core.check.exported.manifest import FORMAT, part_of, states_of
from t2n_core.errors import InputError
from t2n_core.export.result import ExportResult
from t2n_core.generative.calls import CHOSEN
from t2n_core.generative.parts import SCENARIOS, TOKENS
from t2n_core.generative.result import GenerativeResult
from t2n_core.parity.generation.cache_loss import TRANSFORMS as QUANTIZING
from t2n_core.torch_graph.constraints.state_axes import PAST

MANIFEST: Final = "manifest.json"
VECTORS: Final = {
    "prompt_io": {PAST: 0, TOKENS: 100},
    "text_generation_io": {PAST: 99, TOKENS: 1},
    "prompt_with_past_io": {PAST: 50, TOKENS: 50},
}
"""Test vectors by name, with the sizes of tract's own tests; smaller ones if a model takes fewer tokens."""

TRANSFORMS: Final = {
    "explicit": [],
    "engine": ["detect_kv_cache"],
    "engine-int8": ["detect_kv_cache", QUANTIZING[8]],
    "engine-int4": ["detect_kv_cache", QUANTIZING[4]],
}
"""The engine transforms that a runner applies, by the holder of the cache."""


def write_beside(result: GenerativeResult, tokenizer: Any, kv: str) -> None:
    """Write the manifest, the model's configuration, the tokenizer and test vectors into the result's folder."""
    folder = result.directory
    manifest = json.dumps({**_manifest(result), "kv": kv, "transforms": TRANSFORMS[kv]}, indent=2)
    (folder / MANIFEST).write_text(f"{manifest}\n", encoding="utf-8")
    for name in ("config", "generation_config"):
        config = getattr(result.model, name, None)
        if config is not None and hasattr(config, "to_json_string"):
            (folder / f"{name}.json").write_text(config.to_json_string(), encoding="utf-8")
    if tokenizer is not None:
        tokenizer.save_pretrained(folder / "tokenizer")
    _write_vectors(result.decoder, folder / "tests")


def _manifest(result: GenerativeResult) -> dict[str, Any]:
    config = getattr(result.model, "config", None)
    decoder = result.decoder
    return {
        "format": FORMAT,
        "model_type": getattr(config, "model_type", type(result.model).__name__),
        "vocabulary": int(decoder.graph.outputs[0].shape[-1]),
        "tract": decoder.target.version,
        "tokens_per_step": "any" if result.plan.call.takes_many else 1,
        "logits": _logits(result),
        "parts": {name: part_of(part) for name, part in result.parts.items()},
        "state": states_of(result.state),
        **({} if result.loss is None else {"loss": asdict(result.loss)}),
        **({} if result.cache is None else {"cache": asdict(result.cache)}),
        "scenarios": {name: SCENARIOS[name] for name in ("tg", "pp")} if result.plan.call.takes_many else {},
    }


def _logits(result: GenerativeResult) -> str:
    """Return the tokens of a step whose logits an archive returns, in words for the manifest."""
    call = result.plan.call
    count = call.arguments.get(CHOSEN)
    return f"of the positions in the input {CHOSEN}" if call.chosen else f"of the last {count}" if count else "all"


def _write_vectors(decoder: ExportResult, folder: Path) -> None:
    folder.mkdir()
    symbols = decoder.captured.symbols
    for name, preferred_sizes in VECTORS.items():
        sizes = {symbol: preferred_sizes.get(symbol, size) for symbol, size in symbols.items()}
        while sizes and not decoder.range.holds(sizes) and max(sizes.values()) > 1:
            sizes = {symbol: -(-size // 2) if size > 1 else size for symbol, size in sizes.items()}
        try:
            sample = decoder.sample_at(sizes)
        except InputError:  # the model does not accept these sizes
            continue
        names = [*decoder.input_names, *decoder.output_names]
        arrays: dict[str, Any] = dict(zip(names, [*sample.inputs, *sample.expected], strict=True))
        np.savez_compressed(folder / f"{name}.npz", **arrays)
