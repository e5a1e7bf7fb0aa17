"""Vision models of transformers."""

from __future__ import annotations

from typing import Any

from conformance.cases.models.case import ModelCase, image
from conformance.cases.models.transformers.presets import VISION, model

WINDOWS = {"embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4]}
STAGES = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}
DENSE = {**STAGES, "num_attention_heads": [1, 2, 2, 4], "decoder_hidden_size": 16}
NECK = {"neck_hidden_sizes": [8, 12, 16, 20], "fusion_hidden_size": 16}
MOBILE = {
    "image_size": 64, "hidden_sizes": [16, 20, 24], "neck_hidden_sizes": [8, 8, 12, 16, 16, 20, 24],
    "aspp_out_channels": 16, "num_attention_heads": 4,
}  # fmt: skip
DINO = {
    "model_type": "dinov2", **VISION, "num_hidden_layers": 4, "out_indices": [1, 2, 3, 4],
    "reshape_hidden_states": False, "apply_layernorm": True,
}  # fmt: skip
IMAGES = {"pixel_values": {0: "B"}}


def _vision(family: str, head: str, side: int = 32, **options: Any) -> ModelCase:
    make = model(f"{family}For{head}", f"{family}Config", **options)
    return ModelCase(make, image(2, 3, side, side, name="pixel_values"), IMAGES)


CASES = {
    "vit": _vision("ViT", "ImageClassification", **VISION),
    "deit": _vision("DeiT", "ImageClassificationWithTeacher", **VISION),
    "beit": _vision("Beit", "ImageClassification", **VISION, use_relative_position_bias=True),
    "dinov2": _vision("Dinov2", "ImageClassification", **{**VISION, "intermediate_size": 48}, mlp_ratio=2),
    "swin": _vision("Swin", "ImageClassification", 36, **WINDOWS, image_size=36, patch_size=2, window_size=3),
    "swin_v2": _vision("Swinv2", "ImageClassification", **WINDOWS, image_size=32, patch_size=2, window_size=4),
    "convnext_v2": _vision("ConvNextV2", "ImageClassification", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1]),
    "segformer": _vision("Segformer", "SemanticSegmentation", 64, **DENSE),
    "mobilevit": _vision("MobileViT", "SemanticSegmentation", 64, **MOBILE),
    "yolos": _vision(
        "Yolos", "ObjectDetection", **{**VISION, "image_size": [32, 32]}, num_detection_tokens=5,
        use_mid_position_embeddings=False,
    ),
    "dpt": _vision(
        "DPT", "DepthEstimation", **{**VISION, "num_hidden_layers": 4}, **NECK, backbone_out_indices=[0, 1, 2, 3],
        is_hybrid=False,
    ),
    "depth_anything": _vision(
        "DepthAnything", "DepthEstimation", **NECK, backbone_config=DINO, patch_size=8, reassemble_hidden_size=32,
        head_hidden_size=8,
    ),
    "regnet": _vision(
        "RegNet", "ImageClassification", 64, embedding_size=16, hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 1, 1],
        groups_width=8,
    ),
    "poolformer": _vision("PoolFormer", "ImageClassification", 64, **STAGES),
    "glpn": _vision("GLPN", "DepthEstimation", 64, **DENSE),
    "swin2sr": _vision(
        "Swin2SR", "ImageSuperResolution", 16, image_size=16, embed_dim=16, depths=[2], num_heads=[2], window_size=4,
        upscale=2,
    ),
}  # fmt: skip
