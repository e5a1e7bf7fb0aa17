"""`t2n export-llm` writes the archives of a language model and the other files of a runner, and checks them.

t2n export-llm path/to/model -o exported --tract 0.23 --weights q4_0
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_t2n.cli.busy import busy
from pytest_t2n.cli.exports.hub_cache import model_folder
from pytest_t2n.cli.migrate.options import rename_options
from pytest_t2n.cli.output import say
from pytest_t2n.cli.parser import LEVEL_HELP, Parser
from t2n_core.engine import resolve_engines
from t2n_core.errors import InputError
from t2n_core.extras import require

if TYPE_CHECKING:
    from t2n_core.generative import GenerativeResult
    from t2n_core.inference_target import TractNNEF

_DTYPES = ("f32", "f16")


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    if isinstance(parser, Parser):
        parser.translate = rename_options
    parser.add_argument("folder", help="a folder with config.json and safetensors, or a name in the hub's cache")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the folder to write")
    parser.add_argument("--tract", default="latest", metavar="VERSION", help="one version: 0.23, 0.23.8, latest")
    parser.add_argument("--dtype", choices=_DTYPES, help="that of the folder if not given")
    parser.add_argument(
        "--weights",
        metavar="FORM",
        help="how weights are stored: float16, int8, q4_0; by patterns of names: lm_head=float32,*=q4_0",
    )
    parser.add_argument(
        "--kv",
        choices=("explicit", "engine", "engine-int8", "engine-int4"),
        default="explicit",
        help="the cache is inputs and outputs; `engine`: it is proven too that the engine can hold it by itself; "
        "`engine-int8`, `engine-int4`: also what the engine's quantized cache loses",
    )
    parser.add_argument("--adapter", type=Path, metavar="FOLDER", help="merge an adapter that PEFT saved (LoRA)")
    parser.add_argument("--batch", metavar="NAME", help="the symbol of a free number of sequences")
    parser.add_argument(
        "--last-logits",
        nargs="?",
        type=_count,
        const=1,
        default=0,
        metavar="N",
        help="logits of the last N tokens of a step alone, by default of one; `input`: positions are a further input",
    )
    parser.add_argument(
        "--positions",
        type=int,
        metavar="N",
        help="most tokens of a sequence; with LongRoPE up to those of the short factors, the default, or more for "
        "prompts that are longer than these",
    )
    parser.add_argument("--step-archive", action="store_true", help="also write the decoder for a single token")
    parser.add_argument("--scenarios", action="store_true", help="name tract's scenarios in the archive: tg and pp")
    parser.add_argument("--random", action="store_true", help="draw the weights; config.json is enough then")
    parser.add_argument("--no-tokenizer", action="store_true", help="write no tokenizer")
    parser.add_argument("--steps", type=int, default=16, help="tokens to generate in the check")
    parser.add_argument(
        "--text",
        type=Path,
        metavar="FILE",
        help="measure on this text what --dtype and --weights lose, in windows of as many tokens as the model takes",
    )
    parser.add_argument(
        "--max-loss",
        type=_share,
        metavar="SHARE",
        help="fail where the perplexity is above that of the model in float32 by more than this share of it: 0.01",
    )
    parser.add_argument("--tolerance", metavar="LEVEL", help=LEVEL_HELP)
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds to load the archive, and for each step")
    parser.add_argument("--no-check", action="store_true", help="write the archives and prove nothing")
    parser.add_argument("--offline", action="store_true", help="use engines of the cache only")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Return 0 for archives that were written and, by default, checked. Raises T2NError."""
    if options.no_check and (options.text is not None or options.max_loss is not None):
        raise InputError("--no-check measures no loss: leave it out, or --text and --max-loss")
    options.folder = model_folder(options.folder)
    require("t2n export-llm", "torch", "transformers")
    resolve_engines(options.tract, offline=options.offline, fetch=False)  # errors are reported before torch is loaded
    from t2n_core.generative.quantized.checkpoint import quantization_method
    from t2n_core.inference_target import TractNNEF

    of_target: dict[str, Any] = {"check_io": not options.no_check, "offline": options.offline}
    if options.tolerance is not None:
        of_target["check_io_tolerance"] = options.tolerance
    if options.kv.startswith("engine-"):  # the engine quantizes only its own operator's cache
        of_target["reify_sdpa_operator"] = True
    target = TractNNEF(options.tract, weights=_forms(options.weights), **of_target)
    with busy(f"exporting {options.folder} for {target}"):
        result = _export(options, target)
    if method := None if options.random else quantization_method(options.folder):
        say(f"the weights were read from {method}, exactly")
    if options.adapter is not None:
        say(f"weights changed by the adapter: {options.merged}")
    for name, part in result.parts.items():
        say(f"{part.archive}: {name}, {part.archive.stat().st_size / 1e6:.1f} MB, holds for {part.range}")
    if result.proof is not None:
        say(f"proven in {target} at `{target.check_io_tolerance}`: tokens {result.proof.tokens}")
        for check in result.proof.further:
            say(f"  {check.name}: {check.text}")
        if result.loss is not None:
            say(f"the weights, against float32: {result.loss.describe()}")
        if result.cache is not None:
            say(f"the cache in {result.cache.bits} bits: {result.cache.describe()}")
    else:
        say("not checked")
    return 0


def _export(options: argparse.Namespace, target: TractNNEF) -> GenerativeResult:
    """Return the export of the model in the folder that the options name. Raises T2NError."""
    from t2n_core.generative import export_generative
    from t2n_core.generative.load import load_tokenizer, tokens_of

    tokenizer = load_tokenizer(options.folder) if options.text or not options.no_tokenizer else None
    text = None if options.text is None else tokens_of(options.text, tokenizer)
    model = _load(options, options.dtype)
    original = _load(options, "f32") if options.dtype == "f16" and not options.no_check else None
    return export_generative(
        model,
        None,
        target,
        options.output,
        batch=options.batch,
        last_logits=options.last_logits,
        step_archive=options.step_archive,
        scenarios=options.scenarios,
        positions=options.positions,
        kv=options.kv,
        tokenizer=None if options.no_tokenizer else tokenizer,
        steps=options.steps,
        original=original,
        timeout=options.timeout,
        text=text,
        max_loss=options.max_loss,
    )


def _load(options: argparse.Namespace, dtype: str | None) -> Any:
    """Return the model of the options, with its adapter merged. Raises T2NError."""
    from t2n_core.generative.load import load_model
    from t2n_core.generative.lora import merge_adapter

    model = load_model(options.folder, dtype=dtype, random=options.random)
    if options.adapter is not None:
        options.merged = merge_adapter(model, options.adapter)
    return model


def _share(text: str) -> float:
    """Return a share below 1."""
    try:
        share = float(text)
    except ValueError:
        share = math.inf
    if not abs(share) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share below 1: 0.05 is 5 %")
    return share


def _count(text: str) -> int | str:
    """Return a number of tokens, or the word `input`."""
    if text != "input" and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number of tokens nor `input`")
    return text if text == "input" else int(text)


def _forms(text: str | None) -> str | dict[str, str] | None:
    """Return one storage format for all weights, or formats by patterns."""
    if text is None or "=" not in text:
        return text
    pairs = (entry.rpartition("=") for entry in text.split(","))
    return {pattern.strip(): form.strip() for pattern, _, form in pairs}
