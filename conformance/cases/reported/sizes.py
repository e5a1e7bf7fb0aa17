"""Sizes that pass through tensors and come back as numbers: detectors with feature maps of several levels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from conformance.cases.reported.case import Function, ReportedNet, batch_and_time, images


def _iterated(_: Any, x: Tensor) -> Tensor:
    height, width = x.shape[2:]
    levels = torch.as_tensor([(height, width), (height, width)])
    return torch.cat([x[0, 0, : int(h), : int(w)].sum()[None] + torch.linspace(0, 1, int(h)).sum() for h, w in levels])


def _int_of_element(_: Any, x: Tensor) -> Tensor:
    return torch.arange(int(torch.as_tensor(list(x.shape[2:]))[0])) + x[0, 0, 0, 0]


def _linspace_to_element(_: Any, x: Tensor) -> Tensor:
    sizes = torch.tensor([[*x.shape[2:]]])
    return torch.linspace(0.5, sizes[0, 0] - 0.5, int(sizes[0, 0])) + x[0, 0, 0, 0]  # type: ignore[call-overload,no-any-return]


def _of_levels(compute: Callable[[Any, Any, Tensor], Tensor]) -> Callable[[Any, Tensor], Tensor]:
    """Return a function that computes with the two sizes of the one level of a tensor."""

    def function(_: Any, x: Tensor) -> Tensor:
        ((height, width),) = torch.tensor([[*x.shape[2:]]])
        return compute(height, width, x)

    return function


def _split_by_product(_: Any, x: Tensor) -> Tensor:
    sizes = torch.tensor([[*x.shape[2:]]])
    return x.flatten(2).split([int(sizes[0, 0] * sizes[0, 1])], 2)[0]


def _between_starts(_: Any, x: Tensor) -> Tensor:
    sizes = torch.tensor([[*x.shape[2:]], [1, 1]])
    starts = torch.cat((sizes.new_zeros((1,)), sizes.prod(1).cumsum(0)[:-1]))
    return x.flatten(2)[:, :, starts[0] : starts[1]]


def _written_into_empty(_: Any, x: Tensor) -> Tensor:
    sizes = torch.empty((1, 2), dtype=torch.long)
    sizes[0, 0], sizes[0, 1] = x.shape[2:]
    return torch.cat([torch.arange(int(h)) * int(w) for h, w in sizes]) + x[0, 0, 0, 0]


def _shape_as_tensor(_: Any, x: Tensor) -> Tensor:
    sizes = torch.stack([torch._shape_as_tensor(x)[2:4]]).long()
    return torch.cat([torch.arange(int(h)) * int(w) for h, w in sizes]) + x[0, 0, 0, 0]


def _as_list(_: Any, x: Tensor) -> Tensor:
    ((height, _width),) = torch.tensor([[*x.shape[2:]]]).tolist()
    return torch.arange(height) + x[0, 0, 0, 0]


def _item(_: Any, x: Tensor) -> Tensor:
    return torch.arange(torch.tensor(x.shape[2:])[0].item()) + x[0, 0, 0, 0]


def _unbound(_: Any, x: Tensor) -> Tensor:
    height, _width = torch.tensor(x.shape[2:]).unbind()
    return torch.arange(int(height)) + x[0, 0, 0, 0]


def _compared(_: Any, x: Tensor) -> Tensor:
    """Decide by the last of positions, as rotary embeddings with dynamic scaling do."""
    last = torch.max(torch.arange(x.shape[2]).unsqueeze(0)) + 1
    return x * 2 if last > 4000 else x + last


FORMS: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "iterated": _iterated,
    "int": _int_of_element,
    "linspace to an element": _linspace_to_element,
    "arange to an element": _of_levels(lambda h, _, x: torch.arange(h) + x[0, 0, 0, 0]),
    "split by a product": _split_by_product,
    "slice between starts": _between_starts,
    "written into empty": _written_into_empty,
    "_shape_as_tensor": _shape_as_tensor,
    "tolist": _as_list,
    "item": _item,
    "unbind": _unbound,
    "comparison": _compared,
    "divisor": _of_levels(lambda h, _, x: x[0, 0, :, 0] / h),
    "linspace of seven": _of_levels(lambda h, _, x: torch.linspace(0.5, h - 0.5, 7) + x[0, 0, 0, 0]),
    "linspace of int": _of_levels(lambda h, _, x: torch.linspace(0.5, 3, int(h)) + x[0, 0, 0, 0]),
    "linspace of int to int": _of_levels(lambda h, _, x: torch.linspace(0.5, int(h) - 0.5, int(h)) + x[0, 0, 0, 0]),
    "linspace of a size": _of_levels(lambda h, _, x: torch.linspace(0.5, h - 0.5, x.shape[2]) + x[0, 0, 0, 0]),
}


NUMBERS: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "eps of layer_norm": lambda _, x: F.layer_norm(x, (4,), eps=1 / x.shape[1]),
    "eps of rms_norm": lambda _, x: F.rms_norm(x, (4,), eps=1 / x.shape[1]),
    "eps of normalize": lambda _, x: F.normalize(x, dim=-1, eps=1 / x.shape[1]),
    "scale of attention": lambda _, x: F.scaled_dot_product_attention(x, x, x, scale=math.log(x.shape[1] + 1) / 4),
    "alpha of add": lambda _, x: torch.add(x, x * 2, alpha=1 / x.shape[1]),
    "alpha of elu": lambda _, x: F.elu(x, alpha=2 / x.shape[1]),
    "beta of baddbmm": lambda _, x: torch.baddbmm(x, x @ x.mT, x, beta=1 / x.shape[1], alpha=0.5),
    "beta of softplus": lambda _, x: F.softplus(x, beta=1 + 1 / x.shape[1]),
    "slope of leaky_relu": lambda _, x: F.leaky_relu(x, 1 / x.shape[1]),
    "bounds of hardtanh": lambda _, x: F.hardtanh(x + 0, -1 / x.shape[1], 1 / x.shape[1], inplace=True),
    "value of pad": lambda _, x: F.pad(x, (0, 1), value=1 / x.shape[1]),
    "ends of linspace": lambda _, x: torch.linspace(1 / x.shape[1] - 1, 1 - 1 / x.shape[1], x.shape[1])[:, None] + x,
}


def _resized(mode: str, offset: float, **options: Any) -> Callable[[Any, Tensor], Tensor]:
    """Return a function that adds positions, resized by factors that are computed from the sizes of the image."""

    def function(m: Any, x: Tensor) -> Tensor:
        factors = tuple((size + offset) / 5 for size in x.shape[2:])
        return x + F.interpolate(m.positions, scale_factor=factors, mode=mode, **options)

    return function


RESIZED = {
    "bicubic": _resized("bicubic", 0.1),
    "bicubic without offset": _resized("bicubic", 0),
    "bilinear": _resized("bilinear", 0.1, align_corners=False),
    "recomputed": _resized("bicubic", 0.1, recompute_scale_factor=True),
}


class Level(nn.Module):
    """Sample one of two feature maps, cut out of their concatenation."""

    def __init__(self, splits: bool) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 2, 3, 4, 1)
        self.splits = splits

    def forward(self, x: Tensor, grid: Tensor) -> Tensor:
        y = self.first(x)
        z = y[:, :, ::2, ::2]
        batch, _, height, width = y.shape
        both = torch.cat([level.flatten(2).transpose(1, 2) for level in (y, z)], 1).view(batch, -1, 2, 1)
        counts = [height * width, z.shape[2] * z.shape[3]]
        level = both.split(counts, dim=1)[0] if self.splits else both[:, : height * width]
        heads = level.flatten(2).transpose(1, 2).reshape(batch * 2, 1, height, width)
        return F.grid_sample(heads, grid.repeat_interleave(2, 0), align_corners=False)


def _level(splits: bool) -> ReportedNet:
    return ReportedNet(
        lambda: Level(splits),
        lambda s: {"x": torch.randn(s["B"], 2, s["H"], s["W"]), "grid": torch.rand(s["B"], 3, 4, 2) * 2 - 1},
        {"x": {0: "B", 2: "H", 3: "W"}, "grid": {0: "B"}},
        [{"B": b, "H": h, "W": w} for b, h, w in ((2, 24, 32), (1, 16, 16), (3, 9, 40))],
    )


class DeformableEncoder(nn.Module):
    """One layer of an encoder with multi-scale deformable attention, the sizes of its two levels in a tensor."""

    def __init__(self, width: int = 8, heads: int = 2, points: int = 2) -> None:
        super().__init__()
        self.heads, self.levels, self.points, self.width = heads, 2, points, width
        self.first, self.second = nn.Conv2d(3, width, 3, 2, 1), nn.Conv2d(width, width, 3, 2, 1)
        self.offsets = nn.Linear(width, heads * 2 * points * 2)
        self.weights = nn.Linear(width, heads * 2 * points)
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)
        nn.init.uniform_(self.offsets.weight, -0.1, 0.1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        first = self.first(x).relu()
        maps = [first, self.second(first).relu()]
        tokens = torch.cat([level.flatten(2).transpose(1, 2) for level in maps], 1)
        sizes = torch.as_tensor([level.shape[2:] for level in maps], dtype=torch.long, device=x.device)
        starts = torch.cat((sizes.new_zeros((1,)), sizes.prod(1).cumsum(0)[:-1]))
        batch, length, _ = tokens.shape
        shape = (batch, length, self.heads, self.levels, self.points)
        shares = self.weights(tokens).view(*shape[:3], -1).softmax(-1).view(shape)
        span = torch.stack([sizes[..., 1], sizes[..., 0]], -1)
        centres = self._centres(sizes)[:, :, None].expand(batch, -1, self.levels, -1)
        offsets = self.offsets(tokens).view(*shape, 2) / span[None, None, None, :, None, :]
        value = self.value(tokens).view(batch, length, self.heads, -1)
        y = self.out(self._sampled(value, sizes, centres[:, :, None, :, None, :] + offsets, shares))
        return y, y[:, starts[1] :].mean(1)

    @staticmethod
    def _centres(sizes: Tensor) -> Tensor:
        """Return the centre of each element of all levels, [1, elements, 2], from 0 to 1."""
        levels = []
        for height, width in sizes:
            rows, columns = torch.linspace(0.5, height - 0.5, height), torch.linspace(0.5, width - 0.5, width)  # type: ignore[call-overload]
            y, x = torch.meshgrid(rows, columns, indexing="ij")
            levels.append(torch.stack((x.reshape(-1)[None] / width, y.reshape(-1)[None] / height), -1))
        return torch.cat(levels, 1)

    def _sampled(self, value: Tensor, sizes: Tensor, places: Tensor, shares: Tensor) -> Tensor:
        batch, _, heads, width = value.shape
        length = places.shape[1]
        levels = value.split([height * width for height, width in sizes], dim=1)  # type: ignore[misc]
        sampled = []
        for level, (rows, columns) in enumerate(sizes):
            image = levels[level].flatten(2).transpose(1, 2).reshape(batch * heads, width, rows, columns)  # type: ignore[call-overload]
            grid = (2 * places - 1)[:, :, :, level].transpose(1, 2).flatten(0, 1)
            sampled.append(F.grid_sample(image, grid, align_corners=False))
        weights = shares.transpose(1, 2).reshape(batch * heads, 1, length, self.levels * self.points)
        total = (torch.stack(sampled, dim=-2).flatten(-2) * weights).sum(-1)
        return total.view(batch, heads * width, length).transpose(1, 2).contiguous()


CASES: dict[str, ReportedNet] = {
    **{
        f"sizes in a tensor: {name}": images(lambda f=function: Function(f), 2, (6, 9), (1, 1), (2, 5), (12, 7))  # type: ignore[misc]
        for name, function in FORMS.items()
    },
    **{
        f"scale factors of sizes: {name}": images(
            lambda f=function: Function(f, positions=torch.randn(1, 2, 5, 5)),  # type: ignore[misc]
            2, (7, 8), (2, 3), (5, 5), (20, 13), (33, 60),
        )
        for name, function in RESIZED.items()
    },
    **{
        f"a number of sizes: {name}": batch_and_time(lambda f=function: Function(f), 4)  # type: ignore[misc]
        for name, function in NUMBERS.items()
    },
    "a level cut out, then sampled": _level(splits=False),
    "a level split off, then sampled": _level(splits=True),
    "deformable encoder": ReportedNet(
        DeformableEncoder,
        lambda s: {"x": torch.randn(s["B"], 3, s["H"], s["W"])},
        {"x": {0: "B", 2: "H", 3: "W"}},
        [{"B": b, "H": h, "W": w} for b, h, w in ((2, 12, 20), (1, 16, 9), (3, 33, 24), (1, 5, 7))],
    ),
}  # fmt: skip
