"""Vision models of transformers."""

from __future__ import annotations

from typing import Any

from conformance.cases.models.case import ModelCase, image
from conformance.cases.models.transformers.presets import VISION, model

IMAGES = {"pixel_values": {0: "B"}}


def _vision(family: str, head: str = "Model", side: int = 32, **options: Any) -> ModelCase:
    make = model(f"{family}{head}", f"{family}Config", **options)
    return ModelCase(make, image(2, 3, side, side, name="pixel_values"), IMAGES)


CASES = {
    "vit": _vision("ViT", "ForImageClassification", **VISION),
    "deit": _vision("DeiT", "ForImageClassificationWithTeacher", **VISION),
    "beit": _vision("Beit", "ForImageClassification", **VISION, use_relative_position_bias=True),
    "dinov2": _vision("Dinov2", "ForImageClassification", **{**VISION, "intermediate_size": 48}, mlp_ratio=2),
    "swin": _vision(
        "Swin",
        "ForImageClassification",
        side=36,
        image_size=36,
        patch_size=2,
        embed_dim=16,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=3,
    ),
    "swin_v2": _vision(
        "Swinv2",
        "ForImageClassification",
        side=32,
        image_size=32,
        patch_size=2,
        embed_dim=16,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=4,
    ),
    "convnext_v2": _vision("ConvNextV2", "ForImageClassification", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1]),
    "segformer": _vision(
        "Segformer",
        "ForSemanticSegmentation",
        side=64,
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 2, 2, 4],
        decoder_hidden_size=16,
    ),
    "mobilevit": _vision(
        "MobileViT",
        "ForSemanticSegmentation",
        side=64,
        image_size=64,
        hidden_sizes=[16, 20, 24],
        neck_hidden_sizes=[8, 8, 12, 16, 16, 20, 24],
        aspp_out_channels=16,
        num_attention_heads=4,
    ),
    "yolos": _vision(
        "Yolos",
        "ForObjectDetection",
        **{**VISION, "image_size": [32, 32]},
        num_detection_tokens=5,
        use_mid_position_embeddings=False,
    ),
    "dpt": _vision(
        "DPT",
        "ForDepthEstimation",
        **{**VISION, "num_hidden_layers": 4},
        backbone_out_indices=[0, 1, 2, 3],
        neck_hidden_sizes=[8, 12, 16, 20],
        fusion_hidden_size=16,
        is_hybrid=False,
    ),
    "depth_anything": _vision(
        "DepthAnything",
        "ForDepthEstimation",
        backbone_config={
            "model_type": "dinov2",
            **VISION,
            "num_hidden_layers": 4,
            "out_indices": [1, 2, 3, 4],
            "reshape_hidden_states": False,
            "apply_layernorm": True,
        },
        patch_size=8,
        reassemble_hidden_size=32,
        neck_hidden_sizes=[8, 12, 16, 20],
        fusion_hidden_size=16,
        head_hidden_size=8,
    ),
    "regnet": _vision(
        "RegNet",
        "ForImageClassification",
        side=64,
        embedding_size=16,
        hidden_sizes=[16, 24, 32, 48],
        depths=[1, 1, 1, 1],
        groups_width=8,
    ),
    "poolformer": _vision(
        "PoolFormer", "ForImageClassification", side=64, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]
    ),
    "glpn": _vision(
        "GLPN",
        "ForDepthEstimation",
        side=64,
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 2, 2, 4],
        decoder_hidden_size=16,
    ),
    "swin2sr": _vision(
        "Swin2SR",
        "ForImageSuperResolution",
        side=16,
        image_size=16,
        embed_dim=16,
        depths=[2],
        num_heads=[2],
        window_size=4,
        upscale=2,
    ),
}
