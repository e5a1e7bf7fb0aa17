"""Tokenizers of checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2n_core.errors import InputError
from t2n_core.generative.load import load_tokenizer, tokens_of


@pytest.mark.parametrize("kind", ["qwen2", "qwen3", "llama", "gpt2", "gemma3_text", "t5"])
def test_a_checkpoint_without_the_files_of_its_tokenizer(kind: str, tmp_path: Path) -> None:
    """transformers returns a tokenizer of special tokens for some kinds."""
    (tmp_path / "config.json").write_text(f'{{"model_type": "{kind}"}}')
    (tmp_path / "text.txt").write_text("Hello world")
    with pytest.raises(InputError, match="holds no tokenizer"):
        load_tokenizer(tmp_path)
    with pytest.raises(InputError, match="holds no tokenizer"):
        tokens_of(tmp_path / "text.txt", tmp_path)
