"""Tokenizers of checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from t2n_core.errors import InputError
from t2n_core.generative.load import load_tokenizer, tokens_of


@pytest.mark.parametrize("kind", ["qwen2", "qwen3", "llama", "gpt2", "gemma3_text", "t5"])
def test_a_checkpoint_without_the_files_of_its_tokenizer(kind: str, tmp_path: Path) -> None:
    """transformers returns a tokenizer of special tokens for some kinds."""
    (tmp_path / "config.json").write_text(f'{{"model_type": "{kind}"}}')
    with pytest.raises(InputError, match="holds no tokenizer"):
        load_tokenizer(tmp_path)


def letters(words: str, **_: Any) -> dict[str, list[int]]:
    """Return a token for each letter."""
    return {"input_ids": [ord(letter) for letter in words]}


@pytest.mark.parametrize(
    ("words", "message"), [("", "the text has 0 tokens: a perplexity needs two or more"), ("a", "has 1 token:")]
)
def test_a_text_that_is_too_short(words: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(words)
    with pytest.raises(InputError, match=message):
        tokens_of(tmp_path / "text.txt", letters)
    (tmp_path / "text.txt").write_text("any text")
    assert len(tokens_of(tmp_path / "text.txt", letters)) == 8
