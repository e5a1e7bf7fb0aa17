"""Architectures of torchvision: classification, segmentation, video, optical flow."""

from __future__ import annotations

from functools import partial

from torch import nn
from torchvision import models as tv
from torchvision.models import densenet, regnet, resnet, shufflenetv2, vgg
from torchvision.models.convnext import CNBlockConfig
from torchvision.models.optical_flow import raft_small

from conformance.cases.models.case import ModelCase, image

FREE = {"x": {0: "B"}}
SMALL = image(2, 3, 64, 64)
SCENE = partial(image, 1, 3, 65, 97)


def _convnext() -> nn.Module:
    return tv.ConvNeXt([CNBlockConfig(12, 24, 2), CNBlockConfig(24, 40, 2), CNBlockConfig(40, None, 1)], num_classes=7)


def _swin(version: int) -> nn.Module:
    from torchvision.models.swin_transformer import PatchMergingV2, SwinTransformerBlockV2

    newer = {"block": SwinTransformerBlockV2, "downsample_layer": PatchMergingV2} if version == 2 else {}
    return tv.SwinTransformer([4, 4], 16, [2, 2], [2, 4], [4, 4], num_classes=7, **newer)


def _vgg() -> nn.Module:
    net = vgg.VGG(vgg.make_layers([8, "M", 12, "M", 16, 16, "M"], batch_norm=True), num_classes=7)
    net.classifier = nn.Sequential(nn.Linear(16 * 49, 24), nn.ReLU(True), nn.Dropout(), nn.Linear(24, 7))
    return net


def _regnet(**options: float) -> nn.Module:
    parameters = regnet.BlockParams.from_init_params(depth=7, w_0=24, w_a=24.5, w_m=2.3, group_width=8, **options)
    return regnet.RegNet(parameters, num_classes=7)


def _maxvit() -> nn.Module:
    return tv.MaxVit((64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0, num_classes=7)


def _mvit() -> nn.Module:
    setting = [
        tv.video.mvit.MSBlockConfig(1, 16, 32, [3, 3, 3], [], [1, 2, 2], []),
        tv.video.mvit.MSBlockConfig(2, 32, 32, [3, 3, 3], [3, 3, 3], [1, 1, 1], [1, 2, 2]),
    ]
    return tv.video.MViT((32, 32), 8, setting, True, True, True, True, num_classes=7)


CASES = {
    "resnet18": ModelCase(partial(tv.resnet18, num_classes=7), SMALL, {"x": {0: "B", 2: "H", 3: "W"}}),
    "resnext": ModelCase(
        lambda: resnet.ResNet(resnet.Bottleneck, [1, 1, 1, 1], num_classes=7, groups=4, width_per_group=8), SMALL, FREE
    ),
    "vgg": ModelCase(_vgg, SMALL),
    "squeezenet1_1": ModelCase(partial(tv.squeezenet1_1, num_classes=7), SMALL, FREE),
    "densenet": ModelCase(lambda: densenet.DenseNet(8, (2, 3, 2), 16, num_classes=7), SMALL, FREE),
    "googlenet": ModelCase(
        lambda: tv.GoogLeNet(num_classes=7, aux_logits=False, init_weights=False, transform_input=True), SMALL, FREE
    ),
    "inception_v3": ModelCase(
        lambda: tv.Inception3(num_classes=7, aux_logits=False, init_weights=False), image(1, 3, 96, 96)
    ),
    "mobilenet_v2": ModelCase(partial(tv.mobilenet_v2, num_classes=7, width_mult=0.35), SMALL, FREE),
    "mobilenet_v3_small": ModelCase(partial(tv.mobilenet_v3_small, num_classes=7), SMALL, FREE),
    "shufflenet_v2": ModelCase(
        lambda: shufflenetv2.ShuffleNetV2([2, 2, 2], [12, 24, 32, 48, 64], num_classes=7), SMALL, FREE
    ),
    "mnasnet0_5": ModelCase(partial(tv.mnasnet0_5, num_classes=7), SMALL, FREE),
    "efficientnet_b0": ModelCase(partial(tv.efficientnet_b0, num_classes=7), SMALL, FREE),
    "regnet_x": ModelCase(_regnet, SMALL, FREE),
    "regnet_y": ModelCase(partial(_regnet, se_ratio=0.25), SMALL, FREE),
    "convnext": ModelCase(_convnext, SMALL, FREE),
    "vit": ModelCase(lambda: tv.VisionTransformer(32, 8, 2, 4, 24, 40, num_classes=7), image(2, 3, 32, 32), FREE),
    "swin": ModelCase(partial(_swin, 1), image(2, 3, 36, 44), FREE),
    "swin_v2": ModelCase(partial(_swin, 2), image(2, 3, 36, 44), FREE),
    "maxvit": ModelCase(_maxvit, SMALL, FREE),
    "lraspp_mobilenet_v3": ModelCase(
        lambda: tv.segmentation.lraspp_mobilenet_v3_large(weights_backbone=None, num_classes=5), SCENE(name="input")
    ),
    "deeplabv3_mobilenet_v3": ModelCase(
        lambda: tv.segmentation.deeplabv3_mobilenet_v3_large(weights_backbone=None, num_classes=5), SCENE()
    ),
    "mc3_video": ModelCase(lambda: tv.video.mc3_18(num_classes=7), image(1, 3, 4, 32, 32)),
    "mvit_video": ModelCase(_mvit, image(1, 3, 8, 32, 32)),
    "raft_small": ModelCase(
        raft_small,
        lambda: {
            **image(1, 3, 128, 136, name="image1")(),
            **image(1, 3, 128, 136, name="image2")(),
            "num_flow_updates": 2,
        },
    ),
}
