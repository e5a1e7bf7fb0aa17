"""Load a model of transformers from a folder, without any network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import torch

from t2n_core.errors import InputError
from t2n_core.extras import importing
from t2n_core.torch_graph.tensors_on_disk import tensors_on_disk

DTYPES: Final = {"f32": torch.float32, "f16": torch.float16}
_ONE_THREAD = {"HF_DEACTIVATE_ASYNC_LOAD": "1"}
"""The variable that keeps transformers' loading in this thread: in others no mode of PyTorch is active."""
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


def load_model(folder: Path, *, dtype: str | None = None, random: bool = False) -> Any:
    """Return the model of a folder with `config.json` and weights, in evaluation mode.

    Weights stay in their files, and converted weights, such as of another dtype, go into unnamed files: the system
    reads them when they are used, so that a model may be larger than the memory.

    `dtype` is one of DTYPES, None for that of the folder; bfloat16, which no release of tract supports, becomes
    float32. With `random` the weights are random, and no files of weights are needed.

    Raises:
        MissingPackageError: transformers is not installed.
        InputError: the folder holds no model that generates tokens.
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
    wanted = DTYPES[dtype] if dtype else _own_dtype(config)
    try:
        with patch.dict(os.environ, _ONE_THREAD), tensors_on_disk():
            if random:
                torch.manual_seed(0)
                model = kind.from_config(config, dtype=wanted)
            else:
                model = kind.from_pretrained(folder, config=config, dtype=wanted, local_files_only=True)
    except Exception as cause:  # a damaged file can raise any exception
        raise InputError(f"transformers cannot load the model of {folder}: {cause}") from cause
    return model.eval()


def load_tokenizer(folder: Path) -> Any:
    """Return the tokenizer of a folder. Raises InputError if it has none."""
    transformers = _library()
    try:
        return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (ValueError, OSError, KeyError, TypeError, ImportError) as cause:
        raise InputError(
            f"{folder} holds no tokenizer that transformers can load", hint="--no-tokenizer exports without one"
        ) from cause


def tokens_of(text: Path, folder: Path) -> list[int]:
    """Return the tokens of a text file, by the tokenizer of a folder. Raises InputError."""
    try:
        words = text.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise InputError(f"{text} cannot be read: {cause}") from cause
    found: list[int] = load_tokenizer(folder)(words)["input_ids"]
    return found


def _library() -> Any:
    with importing("a language model"):
        import transformers
    return transformers


def _kind(transformers: Any, config: Any) -> Any:
    """Return the class that loads such a model."""
    names = {
        "AutoModelForCausalLM": "MODEL_FOR_CAUSAL_LM_MAPPING",
        "AutoModelForSeq2SeqLM": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING",
        "AutoModelForSpeechSeq2Seq": "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING",
    }
    order = list(names) if not config.is_encoder_decoder else list(names)[1:]
    for name in order:
        if type(config) in getattr(transformers, names[name]):
            return getattr(transformers, name)
    raise InputError(f"{config.model_type} is not an architecture that generates tokens from text or speech")


def _own_dtype(config: Any) -> torch.dtype:
    own = getattr(config, "dtype", None)
    return next((known for known in DTYPES.values() if known == own), torch.float32)


__all__ = ["DTYPES", "load_model", "load_tokenizer", "tokens_of"]
