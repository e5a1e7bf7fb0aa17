"""Load a model of transformers from a folder, without any network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import torch

from t2n_core.errors import InputError
from t2n_core.extras import importing
from t2n_core.generative.quantized.checkpoint import dequantize_checkpoint, quantization_of
from t2n_core.generative.quantized.formats import Settings
from t2n_core.parity.generation.loss import require_tokens
from t2n_core.torch_graph.tensors_on_disk import tensors_on_disk

DTYPES: Final = {"f32": torch.float32, "f16": torch.float16}
_ONE_THREAD = {"HF_DEACTIVATE_ASYNC_LOAD": "1"}
"""The variable that keeps transformers' loading in this thread: in others no mode of PyTorch is active."""
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


def load_model(folder: Path, *, dtype: str | None = None, random: bool = False) -> Any:
    """Return the model of a folder with `config.json` and weights, in evaluation mode.

    Weights stay in their files, and converted weights, such as of another dtype, go into unnamed files: the system
    reads them when they are used, so that a model may be larger than memory.

    `dtype` is one of DTYPES, None for the folder's; bfloat16, which no release of tract supports, becomes float32.
    Quantized weights are read exactly, as float32 by default. With `random` the weights are random, and no files of
    weights are needed.

    Raises:
        MissingPackageError: transformers is not installed.
        InputError: the folder holds no model that generates tokens, or weights in a format that is not read.
    """
    transformers = _library()
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder} holds no config.json", hint="the folder of `save_pretrained`, or of a download")
    if not random and not any(file for pattern in _WEIGHTS for file in folder.glob(pattern)):
        raise InputError(f"{folder} holds no weights (*.safetensors)", hint="--random draws them")
    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    except (ValueError, OSError, KeyError, ImportError) as cause:
        raise InputError(f"transformers cannot read {folder / 'config.json'}: {cause}") from cause
    kind = _kind(transformers, config)
    settings = quantization_of(config)
    if settings is not None:
        del config.quantization_config  # otherwise transformers replaces layers by its kernels' layers
    target_dtype = DTYPES[dtype] if dtype else _own_dtype(config) if settings is None else torch.float32
    try:
        with patch.dict(os.environ, _ONE_THREAD), tensors_on_disk():
            if random:
                torch.manual_seed(0)
                model = kind.from_config(config, dtype=target_dtype)
            elif settings is not None:
                model = _load_quantized(transformers, folder, config, settings, target_dtype)
            else:
                model = kind.from_pretrained(folder, config=config, dtype=target_dtype, local_files_only=True)
    except InputError:
        raise
    except Exception as cause:  # a damaged file can raise any exception
        raise InputError(f"transformers cannot load the model of {folder}: {cause}") from cause
    return model.eval()


def _load_quantized(transformers: Any, folder: Path, config: Any, settings: Settings, dtype: torch.dtype) -> Any:
    """Return the model with the tensors of a quantized checkpoint. Raises InputError if some are missing."""
    tensors = dequantize_checkpoint(folder, settings)
    of_kind = _mapping(transformers, config)[type(config)]
    classes = of_kind if isinstance(of_kind, tuple) else (of_kind,)
    model_class = next(
        (candidate for candidate in classes if candidate.__name__ in (config.architectures or ())), classes[0]
    )
    common = {"config": config, "dtype": dtype, "output_loading_info": True}
    model, info = model_class.from_pretrained(None, state_dict=tensors, **common)
    if lacks := sorted(info["missing_keys"]):  # transformers would leave them random
        raise InputError(f"{folder} has no weights for {', '.join(lacks[:3])}")
    if (folder / "generation_config.json").is_file():
        model.generation_config = transformers.GenerationConfig.from_pretrained(folder, local_files_only=True)
    return model


def load_tokenizer(folder: Path) -> Any:
    """Return the tokenizer of a folder. Raises InputError if it has none.

    Without their files transformers makes some tokenizers empty, with special tokens and at most a space.
    """
    transformers = _library()
    wrong = InputError(
        f"{folder} holds no tokenizer that transformers can load",
        hint="without --text, --no-tokenizer exports without one",
    )
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (ValueError, OSError, KeyError, TypeError, ImportError) as cause:
        raise wrong from cause
    if len(set(tokenizer.get_vocab().values()) - set(tokenizer.all_special_ids)) < 2:
        raise wrong
    return tokenizer


def tokens_of(text: Path, tokenizer: Any) -> list[int]:
    """Return the tokens of a text file, at least two. Raises InputError."""
    try:
        words = text.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise InputError(f"{text} cannot be read: {cause}") from cause
    tokens: list[int] = tokenizer(words, verbose=False)["input_ids"]  # of any length, without a warning
    try:
        require_tokens(tokens)
    except InputError as wrong:
        raise InputError(f"{text}: {wrong.message}") from None
    return tokens


def _library() -> Any:
    with importing("a language model"):
        import transformers
    return transformers


def _kind(transformers: Any, config: Any) -> Any:
    """Return the class that loads such a model."""
    return getattr(transformers, next(name for name, _ in _kinds(transformers, config)))


def _mapping(transformers: Any, config: Any) -> Any:
    """Return the classes of models by their configuration."""
    return next(mapping for _, mapping in _kinds(transformers, config))


def _kinds(transformers: Any, config: Any) -> list[tuple[str, Any]]:
    """Return the classes that load such a model, each with its classes of models. Raises InputError if none does."""
    names = {
        "AutoModelForCausalLM": "MODEL_FOR_CAUSAL_LM_MAPPING",
        "AutoModelForSeq2SeqLM": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING",
        "AutoModelForSpeechSeq2Seq": "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING",
    }
    order = list(names) if not config.is_encoder_decoder else list(names)[1:]
    mappings = [(name, getattr(transformers, names[name])) for name in order]
    matches = [(name, mapping) for name, mapping in mappings if type(config) in mapping]
    if not matches:
        raise InputError(f"{config.model_type} is not an architecture that generates tokens from text or speech")
    return matches


def _own_dtype(config: Any) -> torch.dtype:
    dtype = getattr(config, "dtype", None)
    return next((candidate for candidate in DTYPES.values() if candidate == dtype), torch.float32)
