"""Models of transformers that read images or sounds, with random weights: 24 tokens after a prompt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from conformance.cases.generative.case import TEXT, VOCABULARY
from conformance.cases.several_archives.parts import Make, built
from t2n_core.generative.multimodal import multimodal_program
from t2n_core.program import Program

SOFT = 90
"""The token that stands for a row of an image or a sound."""
VISION: dict[str, Any] = {
    "hidden_size": 24,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 24,
    "patch_size": 6,
}


class EachImage(nn.Module):
    """The encoder of Idefics3 and SmolVLM without their search for images of zeros, which stand for none."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.vision, self.connector, self.patch = model.model.vision_model, model.model.connector, VISION["patch_size"]

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        images = pixel_values.flatten(0, 1)
        patches = (len(images), images.shape[2] // self.patch, images.shape[3] // self.patch)
        seen = self.vision(pixel_values=images, patch_attention_mask=torch.ones(patches, dtype=torch.bool))
        return self.connector(seen.last_hidden_state).flatten(0, 1)  # type: ignore[no-any-return]


def prompt(rows: int, after: int) -> torch.Tensor:
    """Return tokens with `rows` places for an image or a sound among them."""
    before, words = torch.randint(3, SOFT, (1, 2)), torch.randint(3, SOFT, (1, after))
    return torch.cat([before, torch.full((1, rows), SOFT), words], 1)


def pictures(rows: int, *shape: int) -> list[dict[str, torch.Tensor]]:
    """Return two examples with an image each, and text of different lengths after it."""
    return [{"input_ids": prompt(rows, after), "pixel_values": torch.randn(shape)} for after in (4, 9)]


def llava() -> Program:
    import transformers as t

    config = t.LlavaConfig(
        vision_config=t.CLIPVisionConfig(**VISION, projection_dim=24),
        text_config=t.LlamaConfig(**TEXT),
        image_token_id=SOFT,
        image_token_index=SOFT,
        vision_feature_layer=-1,
    )
    return multimodal_program(built(t.LlavaForConditionalGeneration(config), 3.0), pictures(16, 1, 3, 24, 24))


def idefics3() -> Program:
    import transformers as t

    config = t.Idefics3Config(
        vision_config={**VISION}, text_config=t.LlamaConfig(**TEXT), image_token_id=SOFT, scale_factor=2, pad_token_id=0
    )
    model = built(t.Idefics3ForConditionalGeneration(config), 3.0)
    return multimodal_program(model, pictures(4, 1, 1, 3, 24, 24), encoder=EachImage(model).eval())


def smolvlm() -> Program:
    import transformers as t

    config = t.SmolVLMConfig(
        vision_config={**VISION}, text_config=t.LlamaConfig(**TEXT), image_token_id=SOFT, scale_factor=2, pad_token_id=0
    )
    model = built(t.SmolVLMForConditionalGeneration(config), 3.0)
    return multimodal_program(model, pictures(4, 1, 1, 3, 24, 24), encoder=EachImage(model).eval())


def gemma3() -> Program:
    import transformers as t

    config = t.Gemma3Config(
        vision_config=t.SiglipVisionConfig(**VISION, vision_use_head=False),
        text_config=t.Gemma3TextConfig(**TEXT, head_dim=8, sliding_window=6),
        image_token_id=SOFT,
        mm_tokens_per_image=4,
        boi_token_index=88,
        eoi_token_index=89,
    )
    model = built(t.Gemma3ForConditionalGeneration(config), 3.0)
    nn.init.normal_(model.model.multi_modal_projector.mm_input_projection_weight)  # zeros, which hide the image
    return multimodal_program(model, pictures(4, 1, 3, 24, 24))


def voxtral() -> Program:
    import transformers as t

    audio = t.VoxtralEncoderConfig(
        hidden_size=24, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_mel_bins=8,
        max_source_positions=16, vocab_size=VOCABULARY, head_dim=6,
    )  # fmt: skip
    config = t.VoxtralConfig(audio_config=audio, text_config=t.LlamaConfig(**TEXT), audio_token_id=SOFT)
    model = built(t.VoxtralForConditionalGeneration(config), 3.0)
    rows = 16 * 24 // 48
    examples = [{"input_ids": prompt(rows, after), "input_features": torch.randn(1, 8, 32)} for after in (4, 9)]
    return multimodal_program(model, examples)


def of_sizes(*grids: tuple[int, int]) -> list[dict[str, torch.Tensor]]:
    """Return examples with an image each, of these rows and columns of patches."""
    return [
        {
            "input_ids": prompt(rows * columns // 4, after),
            "pixel_values": torch.randn(rows * columns, 3 * 2 * 4 * 4),
            "image_grid_thw": torch.tensor([[1, rows, columns]]),
        }
        for after, (rows, columns) in zip((4, 9, 3), grids, strict=True)
    ]


QWEN: dict[str, Any] = {"patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2, "num_heads": 4, "depth": 3}
POSITIONS: dict[str, Any] = {"rope_theta": 100.0, "rope_type": "default", "mrope_section": [1, 1, 2]}
"""Few turns and large weights: tokens then depend on the shape of the image, too."""
SIZES = (4, 6), (10, 6), (6, 12)


def qwen_model(family: str) -> Any:
    """Return a model of the family `qwen2_vl`, `qwen2_5_vl` or `qwen3_vl`."""
    import transformers as t

    text = {**TEXT, "rope_parameters": POSITIONS}
    if family == "qwen2_vl":
        vision = {**QWEN, "embed_dim": 32, "hidden_size": 32, "mlp_ratio": 2}
        older = t.Qwen2VLConfig(vision_config=vision, text_config=text, image_token_id=SOFT)
        return built(t.Qwen2VLForConditionalGeneration(older), 4.0)
    if family == "qwen3_vl":
        inner = {"num_position_embeddings": 25, "deepstack_visual_indexes": [0, 2]}
        vision = {**QWEN, **inner, "hidden_size": 32, "intermediate_size": 48, "out_hidden_size": 32}
        newer = t.Qwen3VLConfig(vision_config=vision, text_config={**text, "head_dim": 8}, image_token_id=SOFT)
        return built(t.Qwen3VLForConditionalGeneration(newer), 4.0)
    windows = {"window_size": 16, "fullatt_block_indexes": [1]}
    vision = {**QWEN, **windows, "hidden_size": 32, "intermediate_size": 48, "out_hidden_size": 32}
    config = t.Qwen2_5_VLConfig(vision_config=vision, text_config=text, image_token_id=SOFT)
    return built(t.Qwen2_5_VLForConditionalGeneration(config), 4.0)


def qwen2_vl() -> Program:
    return multimodal_program(qwen_model("qwen2_vl"), of_sizes(*SIZES))


def qwen2_5_vl() -> Program:
    return multimodal_program(qwen_model("qwen2_5_vl"), of_sizes(*SIZES))


def qwen3_vl() -> Program:
    return multimodal_program(qwen_model("qwen3_vl"), of_sizes(*SIZES))


_MAKERS: tuple[Callable[[], Program], ...] = (
    llava, idefics3, smolvlm, gemma3, voxtral, qwen2_vl, qwen2_5_vl, qwen3_vl
)  # fmt: skip
CASES: dict[str, Make] = {make.__name__: make for make in _MAKERS}
