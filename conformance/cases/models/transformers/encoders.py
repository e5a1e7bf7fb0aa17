"""Encoders of text, and encoders with a decoder, of transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from conformance.cases.models.case import Inputs, ModelCase, tokens
from conformance.cases.models.transformers.presets import ENCODER, SEQ2SEQ, TEXT, WORDS, model

BOTH_TEXTS = {"input_ids": {0: "B", 1: "S"}, "decoder_input_ids": {0: "B", 1: "T"}}


def _encoder(family: str, head: str = "Model", inputs: Callable[[], Inputs] | None = None, **options: Any) -> ModelCase:
    return ModelCase(model(f"{family}{head}", f"{family}Config", **options), inputs or tokens(WORDS, 2, 9), TEXT)


def _translator(family: str, head: str = "ForConditionalGeneration", **options: Any) -> ModelCase:
    make = model(f"{family}{head}", f"{family}Config", **options, use_cache=False)
    return ModelCase(make, _translation, BOTH_TEXTS)


def _masked_tokens() -> Inputs:
    mask = torch.ones(2, 9, dtype=torch.int64)
    mask[1, 6:] = 0
    return {**tokens(WORDS, 2, 9)(), "attention_mask": mask}


def _translation() -> Inputs:
    return {**tokens(WORDS, 2, 9)(), **tokens(WORDS, 2, 5, name="decoder_input_ids")()}


CASES = {
    # encoders
    "bert": _encoder("Bert", **ENCODER),
    "bert_masked": ModelCase(
        model("BertForTokenClassification", "BertConfig", **ENCODER),
        _masked_tokens,
        {**TEXT, "attention_mask": {0: "B", 1: "T"}},
    ),
    "roberta": _encoder("Roberta", **ENCODER),
    "distilbert": _encoder(
        "DistilBert", vocab_size=WORDS, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=64
    ),
    "albert": _encoder("Albert", **ENCODER, embedding_size=16),
    "electra": _encoder("Electra", **ENCODER, embedding_size=16),
    "deberta_v2": _encoder(
        "DebertaV2", **ENCODER, relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8
    ),
    "mpnet": _encoder("MPNet", **ENCODER),
    "mobilebert": _encoder(
        "MobileBert", **{**ENCODER, "hidden_size": 32}, embedding_size=16, intra_bottleneck_size=16, true_hidden_size=16
    ),
    "squeezebert": _encoder("SqueezeBert", **ENCODER, embedding_size=32),
    "modernbert": _encoder("ModernBert", **ENCODER, local_attention=4, global_attn_every_n_layers=2),
    "xlnet": _encoder("XLNet", vocab_size=WORDS, d_model=32, n_layer=2, n_head=4, d_inner=48, use_mems_eval=False),
    "fnet": _encoder(
        "FNet", vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, intermediate_size=48, max_position_embeddings=64
    ),
    "longformer": ModelCase(
        model("LongformerModel", "LongformerConfig", **ENCODER, attention_window=[4, 4]), tokens(WORDS, 2, 9)
    ),
    # encoder and decoder
    "t5": _translator("T5", vocab_size=WORDS, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4),
    "bart": _translator("Bart", **SEQ2SEQ),
    "marian": _translator("Marian", "MTModel", **SEQ2SEQ),
}
