"""The models: random weights, saved as folders that both exporters read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
import transformers as hf

WINDOW: Final = 64
"""Tokens of sliding windows."""
VOCABULARY: Final = 2048
_TEXT: Final[Mapping[str, Any]] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
"""The options that most configurations have, with heads in groups."""
_UNTIED: Final[Mapping[str, Any]] = {**_TEXT, "head_dim": 32, "tie_word_embeddings": False}
"""Tied random embeddings repeat the last token at every step."""
_MIXED = ["sliding_attention", "full_attention"] * 2


@dataclass(frozen=True, slots=True)
class Case:
    """One model, and the tokens that are run."""

    config: Callable[[], Any]
    prompt: int = 48
    """Tokens of the prompt; with the steps after it, it passes a window."""
    steps: int = 48
    spread: float = 3.0
    """The factor of all matrices: random ones as they are give the same token at every step."""

    def save(self, folder: Path) -> None:
        """Write configuration, weights, and a tokenizer whose tokens are bytes."""
        torch.manual_seed(0)
        model = hf.AutoModelForCausalLM.from_config(self.config(), dtype=torch.float32).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.mul_(self.spread)
        model.save_pretrained(folder)
        _tokenizer().save_pretrained(folder)


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer)


CASES: Final[Mapping[str, Case]] = {
    "llama": Case(lambda: hf.LlamaConfig(**_TEXT)),
    "qwen2": Case(lambda: hf.Qwen2Config(**_TEXT)),
    "qwen3": Case(lambda: hf.Qwen3Config(**_TEXT, head_dim=32)),
    "phi3": Case(lambda: hf.Phi3Config(**_TEXT)),
    "mistral, window": Case(lambda: hf.MistralConfig(**_TEXT, sliding_window=WINDOW)),
    "gemma2, window": Case(lambda: hf.Gemma2Config(**_UNTIED, sliding_window=WINDOW)),
    "gemma3, window": Case(lambda: hf.Gemma3TextConfig(**_UNTIED, sliding_window=WINDOW, layer_types=_MIXED)),
    "mixtral": Case(lambda: hf.MixtralConfig(**_TEXT, num_local_experts=4)),
    "gpt2": Case(
        lambda: hf.GPT2Config(
            vocab_size=VOCABULARY, n_embd=256, n_layer=4, n_head=8, n_positions=1024, bos_token_id=1, eos_token_id=2
        )
    ),
    "qwen3-next": Case(
        lambda: hf.Qwen3NextConfig(
            **_TEXT, head_dim=32, linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=32,
            linear_value_head_dim=32, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=128,
            shared_expert_intermediate_size=128, layer_types=["linear_attention"] * 3 + ["full_attention"],
        ),
        prompt=128,
    ),
    "qwen3.5": Case(
        lambda: hf.Qwen3_5TextConfig(
            **_TEXT, head_dim=32, linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=32,
            linear_value_head_dim=32, layer_types=["linear_attention"] * 3 + ["full_attention"],
        ),
        prompt=128,
    ),
    "qwen2-moe": Case(
        lambda: hf.Qwen2MoeConfig(
            **_TEXT, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=256,
            shared_expert_intermediate_size=256,
        )
    ),
    "gpt-oss": Case(
        lambda: hf.GptOssConfig(
            **_TEXT, head_dim=32, num_local_experts=8, num_experts_per_tok=2, sliding_window=WINDOW,
            layer_types=_MIXED,
        )
    ),
    "llama, 125 million": Case(
        lambda: hf.LlamaConfig(
            **{
                **_TEXT, "vocab_size": 32000, "hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12,
                "num_attention_heads": 12, "num_key_value_heads": 4,
            }
        ),
        prompt=512,
        steps=12,
    ),
}  # fmt: skip
"""By name."""
