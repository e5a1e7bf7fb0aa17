"""Architectures of timm: one of each family, as small as the library lets it be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import timm
from timm.models.focalnet import FocalNet
from timm.models.mlp_mixer import MlpMixer
from timm.models.volo import VOLO
from torch import nn

from conformance.cases.models.case import ModelCase, image

FREE = {"x": {0: "B"}}


def _case(name: str, side: int = 64, dynamic: bool = True, **options: Any) -> ModelCase:
    def make() -> Any:
        return timm.create_model(name, pretrained=False, num_classes=7, **options)

    return ModelCase(make, image(2, 3, side, side), FREE if dynamic else None)


def _built(make: Callable[[], nn.Module], side: int = 64) -> ModelCase:
    return ModelCase(make, image(2, 3, side, side), FREE)


CASES = {
    "resnet10t": _case("resnet10t"),
    "res2net": _case("res2net50_14w_8s", layers=(1, 1, 1, 1)),
    "resnest14d": _case("resnest14d"),
    "skresnet": _case("skresnet18"),
    "seresnext": _case("seresnext26d_32x4d", layers=(1, 1, 1, 1)),
    "eca_resnet": _case("ecaresnet26t", layers=(1, 1, 1, 1)),
    "botnet": _case("botnet26t_256", side=64, img_size=64),
    "halonet": _case("halonet26t", side=256),
    "lambda_resnet": _case("lambda_resnet26rpt_256", side=64, img_size=64),
    "mobilenetv4": _case("mobilenetv4_conv_small_050"),
    "mobileone": _case("mobileone_s0"),
    "ghostnet": _case("ghostnet_050"),
    "ghostnetv2": _case("ghostnetv2_100"),
    "repvgg": _case("repvgg_a0"),
    "lcnet": _case("lcnet_050"),
    "tinynet": _case("tinynet_e"),
    "mixnet": _case("mixnet_s"),
    "edgenext": _case("edgenext_xx_small"),
    "fastvit": _case("fastvit_t8"),
    "mobilevit": _case("mobilevit_xxs"),
    "mobilevitv2": _case("mobilevitv2_050"),
    "efficientformer": _case("efficientformer_l1", side=224, depths=(1, 1, 1, 2)),
    "efficientformerv2": _case("efficientformerv2_s0", side=64, img_size=64),
    "efficientvit": _case("efficientvit_b0"),
    "efficientvit_msra": _case("efficientvit_m0", side=64, img_size=64),
    "levit": _case("levit_128s", side=64, img_size=64),
    "convnextv2": _case("convnextv2_atto", depths=(1, 1, 2, 1)),
    "inception_next": _case("inception_next_atto"),
    "mambaout": _case("mambaout_femto", depths=(1, 1, 2, 1)),
    "starnet": _case("starnet_s1"),
    "poolformer": _case("poolformer_s12"),
    "dla": _case("dla34"),
    "hrnet": _case("hrnet_w18_small"),
    "darknet": _case("cspdarknet53"),
    "vovnet": _case("ese_vovnet19b_slim"),
    "nfnet": _case("nfnet_l0"),
    "deit": _case("deit_tiny_distilled_patch16_224", depth=2, img_size=64),
    "beit": _case("beit_base_patch16_224", depth=2, img_size=64, embed_dim=48, num_heads=3),
    "eva02": _case("eva02_tiny_patch14_224", side=56, depth=2, img_size=56),
    "swin": _case("swin_tiny_patch4_window7_224", img_size=64, embed_dim=24, depths=(2, 2), num_heads=(2, 4)),
    "swin_v2_cr": _case("swinv2_cr_tiny_224", img_size=64, embed_dim=24, depths=(2, 2), num_heads=(2, 4)),
    "twins": _case("twins_svt_small", depths=(1, 1, 2, 1), img_size=64),
    "pvt_v2": _case("pvt_v2_b0"),
    "cait": _case("cait_xxs24_224", depth=2, img_size=64),
    "xcit": _case("xcit_nano_12_p16_224", depth=2, img_size=64),
    "crossvit": _case("crossvit_9_240", side=240, depth=((1, 1, 0), (1, 1, 0), (1, 1, 0))),
    "coat": _case("coat_lite_tiny", serial_depths=(1, 1, 1, 1), img_size=64),
    "coatnet": _case("coatnet_pico_rw_224", img_size=64),
    "maxvit": _case("maxvit_pico_rw_256", img_size=64, depths=(1, 1, 1, 1)),
    "davit": _case("davit_tiny", depths=(1, 1, 1, 1), embed_dims=(24, 48, 96, 192)),
    "focalnet": _built(lambda: FocalNet(depths=(1, 1, 1, 1), embed_dim=24, num_classes=7)),
    "gcvit": _case("gcvit_xxtiny", side=224),
    "hiera": _case("hiera_tiny_224", side=224, embed_dim=24, stages=(1, 1, 2, 1)),
    "tiny_vit": _case("tiny_vit_5m_224", side=224, depths=(1, 1, 1, 1)),
    "volo": _built(
        lambda: VOLO(
            (1, 1, 1, 1), 64, num_classes=7, embed_dims=(24, 48, 48, 48), num_heads=(2, 4, 4, 4), stem_hidden_dim=16
        )
    ),
    "visformer": _built(lambda: timm.create_model("visformer_tiny", num_classes=7, img_size=64)),
    "tnt": _case("tnt_s_legacy_patch16_224", side=64, img_size=64, depth=2),
    "mixer": _built(lambda: MlpMixer(img_size=64, num_blocks=2, embed_dim=48, num_classes=7)),
    "gmlp": _case("gmlp_ti16_224", img_size=64),
    "resmlp": _case("resmlp_12_224", img_size=64),
    "sequencer2d": _case(
        "sequencer2d_s",
        side=64,
        img_size=64,
        layers=(1, 1, 1, 1),
        embed_dims=(24, 48, 48, 48),
        hidden_sizes=(6, 12, 12, 12),
    ),
}
