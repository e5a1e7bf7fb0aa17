"""Sizes that are kept in a tensor and read back as numbers, as in detectors with several levels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import grid_sample, interpolate, pad

from tests.contract.cases import case, randn

HW = {0: {2: "H", 3: "W"}}


def rows(x: Tensor) -> Tensor:
    return x[0, 0, :, 0]


def pairs_of_levels(x: Tensor) -> Tensor:
    h, w = x.shape[2:]
    levels = torch.as_tensor([(h, w), (h, w + 1)])
    return torch.cat([x[0, 0, : int(p)].sum()[None] + torch.linspace(0, 1, int(q)).sum() for p, q in levels])


def set_one_by_one(x: Tensor) -> Tensor:
    sizes = torch.empty((1, 2), dtype=torch.long)
    sizes[0, 0] = x.shape[2]
    sizes[0, 1] = x.shape[3]
    return torch.cat([torch.arange(int(p)) * int(q) for p, q in sizes]) + x[0, 0, 0, 0]


def starts_of_levels(x: Tensor) -> Tensor:
    sizes = torch.tensor([[x.shape[2], x.shape[3]], [1, 2]])
    starts = torch.cat((sizes.new_zeros((1,)), sizes.prod(1).cumsum(0)[:-1]))
    return x.flatten(2)[:, :, starts[0] : starts[1]]


def in_nested_lists(x: Tensor) -> Tensor:
    ((p, q),) = torch.tensor([x.shape[2:]]).tolist()
    return x.sum() + torch.arange(p)[:, None] * torch.arange(q)


def in_arithmetic(x: Tensor) -> Tensor:
    sizes = torch.tensor(x.shape)
    longest, shortest = sizes[2:].amax(), sizes[2:].min()
    half = (sizes[2] + 1) // 2
    return torch.cat([torch.arange(int(n)) for n in (longest, shortest, half, sizes.flip(0)[0] - 2 + 3 * sizes[1])])


def resized(x: Tensor) -> Tensor:
    h, w = torch.tensor(x.shape[-2:]).unbind()
    return interpolate(x[:, :, :2, :2], size=(h, w), mode="bilinear") + pad(x, (0, w))[..., :w]


def levels_of_a_view(x: Tensor) -> Tensor:
    sizes = torch.tensor([x.shape[2], x.shape[3]])
    sizes[:1].fill_(3)
    return torch.arange(int(sizes[0]))


def deformed(x: Tensor, y: Tensor) -> Tensor:
    """The sampling of a multi-scale deformable encoder, whose levels are two feature maps."""
    features = torch.cat([x.flatten(2), y.flatten(2)], 2).transpose(1, 2)
    levels = torch.as_tensor([tuple(x.shape[2:]), tuple(y.shape[2:])], dtype=torch.long)
    places = []
    for h, w in levels:
        down, across = torch.meshgrid(torch.linspace(0.5, h - 0.5, h), torch.linspace(0.5, w - 0.5, w), indexing="ij")
        places.append(torch.stack((across.reshape(-1) / w, down.reshape(-1) / h), -1))
    locations = torch.cat(places)[None, :, None] + features[..., None, :2] / levels.flip(1)[None, None]
    maps = features.split([h * w for h, w in levels], dim=1)
    sampled = [
        grid_sample(
            maps[n].transpose(1, 2).reshape(x.shape[0], -1, h, w),
            2 * locations[:, :, n : n + 1] - 1,
            align_corners=False,
        )
        for n, (h, w) in enumerate(levels)
    ]
    return torch.stack(sampled, -1).sum(-1)


def kept_over_writes(x: Tensor) -> Tensor:
    sizes, y = torch.tensor(x.shape[2:]), x * 1
    y.add_(1)
    y[:, 0] = 2
    return torch.arange(int(sizes[0])) + rows(y)


FORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "int of an element": lambda x: torch.arange(int(torch.as_tensor([x.shape[2], x.shape[3]])[0])) + rows(x),
    "item of an element": lambda x: torch.arange(torch.tensor(x.shape[2:])[0].item()) + rows(x),
    "element as a length": lambda x: torch.arange(torch.tensor([x.shape[2:]])[0, 0]) + rows(x),
    "element as an end": lambda x: torch.linspace(0.5, torch.tensor([x.shape[2:]])[0, 0] - 0.5, x.shape[2]) + rows(x),
    "elements in a quotient": lambda x: rows(x) / torch.tensor([x.shape[2:]])[0, 0],
    "parts of a product": lambda x: x.flatten(2).split([int(torch.tensor(x.shape[2:]).prod())], 2)[0],
    "shape as a tensor": lambda x: torch.arange(int(torch.stack([torch._shape_as_tensor(x)[2:4]])[0, 1])),
    "pairs of levels": pairs_of_levels,
    "elements kept over writes": kept_over_writes,
    "elements set one by one": set_one_by_one,
    "starts of levels": starts_of_levels,
    "elements in nested lists": in_nested_lists,
    "elements in arithmetic": in_arithmetic,
    "elements as the size of an image": resized,
}
CASES = [
    *(case(name, form, randn(1, 2, 5, 7)).dynamic(HW) for name, form in FORMS.items()),
    case("levels of a deformable encoder", deformed, randn(2, 3, 6, 8), randn(2, 3, 3, 5)).dynamic(
        {0: {0: "B", 2: "H", 3: "W"}, 1: {0: "B", 2: "U", 3: "V"}}
    ),
    case("element written through a view", levels_of_a_view, randn(1, 2, 5, 7))
    .dynamic(HW)
    .refused("depends on values in a tensor"),
    case(
        "product that float32 rounds",
        lambda x: torch.arange(int((torch.tensor(x.shape[2:]) * 0.29)[0].item())),
        randn(1, 2, 5, 7),
    )
    .dynamic(HW)
    .refused("size of this model is computed in floating point"),
]
