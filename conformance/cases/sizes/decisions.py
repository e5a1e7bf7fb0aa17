"""Decisions that a model's own Python takes on sizes, and images with two dynamic axes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from conformance.cases.sizes.nets import BT, HW, Function, S, SizesNet, Table, X, floats, of

SQUARES = ((1, 1), (4, 6), (9, 5))


def _in_pieces(m: Function, x: Tensor) -> Tensor:
    """Pieces of 16 steps through a layer, one after the other, as where memory is short."""
    return torch.cat([m.lin(piece) for piece in x.split(16, 1)], 1)


def _summed_pieces(x: Tensor) -> Tensor:
    total = x[:, :1] * 0
    for start in range(0, x.shape[1], 8):
        total = total + x[:, start : start + 8].amax(1, keepdim=True)
    return total


def _align(x: Tensor, y: Tensor) -> Tensor:
    if x.shape[1] != y.shape[1]:
        size = min(x.shape[1], y.shape[1])
        x, y = x[:, :size], y[:, :size]
    return x * y


def _table_or_zeros(m: Function, x: Tensor) -> Tensor:
    """Add a table's rows, none beyond its end."""
    rows = m.table.weight[: x.shape[1]]
    if x.shape[1] > 16:
        rows = F.pad(rows, (0, 0, 0, x.shape[1] - 16))
    return x + rows


def _squeeze(x: Tensor) -> Tensor:
    """Return a tensor of another rank where there is one step."""
    return x.squeeze(1) * 2


def _statistics_or_zeros(x: Tensor) -> Tensor:
    return x.std(1) if x.shape[1] > 1 else torch.zeros_like(x[:, 0])


DECISIONS: dict[str, SizesNet] = {
    "if_longer_crop": of(lambda x: (x[:, :64] if x.shape[1] > 64 else x) * 2, X, at=(1, 10, 68), decides=True),
    "if_longer_keep_the_last": of(lambda x: (x[:, -12:] if x.shape[1] > 12 else x) * 2, X, at=(1, 9, 20), decides=True),
    "if_shorter_pad": of(lambda x: (F.pad(x, (0, 0, 0, 64 - x.shape[1])) if x.shape[1] < 64 else x) * 2, X,
                         at=(1, 10, 68), decides=True),
    "if_odd_pad": of(lambda x: (F.pad(x, (0, 0, 0, 1)) if x.shape[1] % 2 else x) * 2, X, at=(1, 6, 9), decides=True),
    "if_no_multiple_pad": of(
        lambda x: (F.pad(x, (0, 0, 0, 4 - x.shape[1] % 4)) if x.shape[1] % 4 else x).unflatten(1, (-1, 4)).sum(2), X,
        at=(1, 8, 11), decides=True),
    "if_long_pool": of(lambda x: F.avg_pool1d(x.mT, 2).mT if x.shape[1] > 20 else x * 1, X, at=(1, 9, 25),
        decides=True),
    "if_one_step": of(lambda x: x if x.shape[1] == 1 else x[:, 1:] - x[:, :-1], X, at=(1, 5, 12), decides=True),
    "if_few_take_all": of(lambda x: x[:, :3] if x.shape[1] >= 3 else x * 1, X, at=(1, 2, 9), decides=True),
    "if_mean_or_sum": of(lambda x: x.mean(1) if x.shape[1] > 8 else x.sum(1), X, at=(1, 5, 12), decides=True),
    "if_deviation": of(_statistics_or_zeros, X, at=(1, 5, 12), decides=True),
    "if_different_crop": of(_align, X, S, at=((1, 1), (4, 7), (9, 5)), decides=True),
    "if_beyond_the_table": of(_table_or_zeros, X, at=(1, 9, 20), decides=True, table=lambda: Table(16, 4)),
    "in_pieces_of_16": of(_in_pieces, X, at=(1, 10, 40), decides=True, lin=lambda: nn.Linear(4, 4)),
    "maxima_of_pieces": of(_summed_pieces, X, at=(1, 6, 20), decides=True),
    "pieces_stacked": of(lambda x: torch.stack(x.split(4, 1)) * 2, X, at=(4, 8, 12), decides=True),
    "squeezed": of(_squeeze, X, at=(1, 5, 12), decides=True),
    "squeezed_batch": of(lambda x: x.squeeze(0) * 2, floats("B", 3, 4), at=(1, 2, 5), decides=True),
}  # fmt: skip


def _mean_of_windows(x: Tensor) -> Tensor:
    """Mean of windows of 2 by 2, padded to a multiple."""
    height, width = x.shape[2:]
    padded = F.pad(x, (0, -width % 2, 0, -height % 2))
    parts = padded.unflatten(2, (-1, 2)).unflatten(4, (-1, 2))
    return parts.permute(0, 2, 4, 1, 3, 5).flatten(3).mean(-1)


def _shifted_windows(x: Tensor) -> Tensor:
    """Roll, cut into windows and put back as Swin does; [B, H, W, C] of even sizes."""
    y = x.permute(0, 2, 3, 1)
    height, width = y.shape[1] // 2 * 2, y.shape[2] // 2 * 2
    y = y[:, :height, :width].roll((-1, -1), (1, 2))
    parts = y.reshape(1, height // 2, 2, width // 2, 2, 3).transpose(2, 3).reshape(-1, 4, 3)
    mixed = F.scaled_dot_product_attention(parts, parts, parts)
    back = mixed.reshape(1, height // 2, width // 2, 2, 2, 3).transpose(2, 3).reshape(1, height, width, 3)
    return back.roll((1, 1), (1, 2))


def _feature_pyramid(m: Function, x: Tensor) -> tuple[Tensor, Tensor]:
    """Coarse features are resized to the fine ones and added."""
    fine = m.first(x)
    coarse = m.second(fine)
    return m.side(fine) + F.interpolate(coarse, size=fine.shape[2:]), coarse


def _image_pyramid(x: Tensor) -> list[Tensor]:
    levels = [x * 1]
    for _ in range(2):
        levels.append(F.avg_pool2d(levels[-1], 2, ceil_mode=True))
    return levels


def _laplacian(x: Tensor) -> Tensor:
    """Return the difference of an image and its reduced form."""
    small = F.avg_pool2d(x, 2, ceil_mode=True)
    return x - small.repeat_interleave(2, 2).repeat_interleave(2, 3)[:, :, : x.shape[2], : x.shape[3]]


def _patches(m: Function, x: Tensor) -> Tensor:
    return m.norm(m.conv(x).flatten(2).mT)


def _attention_over_pixels(x: Tensor) -> Tensor:
    y = x.flatten(2).mT
    return F.scaled_dot_product_attention(y, y, y).mT.unflatten(2, x.shape[2:])


def _unshuffle(x: Tensor) -> Tensor:
    """Unshuffle pixels; without a pixel PyTorch leaves the channels as they are."""
    even = x[:, :, : x.shape[2] // 2 * 2, : x.shape[3] // 2 * 2]
    return F.pixel_unshuffle(even, 2)


def _u_net(m: Function, x: Tensor) -> Tensor:
    """Return a net down and up again; the upsampled branch is padded to the skipped one."""
    y = m.up(F.max_pool2d(x, 2))
    rows, columns = x.shape[2] - y.shape[2], x.shape[3] - y.shape[3]
    return torch.cat([x, F.pad(y, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))], 1)


IMAGES: dict[str, SizesNet] = {
    "image_conv_strided": of(lambda m, x: m.conv(x), HW, at=SQUARES, conv=lambda: nn.Conv2d(3, 4, 3, 2, 1)),
    "image_pool_ceil": of(lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), HW, at=SQUARES),
    "image_crop": of(lambda x: x[:, :, :6, :8] * 2, HW, at=SQUARES),
    "image_crop_last": of(lambda x: x[..., -6:, -8:] * 2, HW, at=SQUARES),
    "image_centre": of(
        lambda x: x[:, :, max(0, (x.shape[2] - 6) // 2) :, max(0, (x.shape[3] - 6) // 2) :][:, :, :6, :6] * 2, HW,
        at=SQUARES),
    "image_padded_to_a_multiple": of(
        lambda m, x: m.conv(F.pad(x, (0, -x.shape[3] % 4, 0, -x.shape[2] % 4))), HW, at=SQUARES,
        conv=lambda: nn.Conv2d(3, 4, 4, 4)),
    "image_windows": of(_mean_of_windows, HW, at=SQUARES),
    "image_shifted_windows": of(_shifted_windows, HW, at=((2, 2), (4, 6), (9, 5))),
    "image_feature_pyramid": of(_feature_pyramid, HW, at=SQUARES, first=lambda: nn.Conv2d(3, 4, 3, 2, 1),
                                second=lambda: nn.Conv2d(4, 4, 3, 2, 1), side=lambda: nn.Conv2d(4, 4, 1)),
    "image_pyramid": of(_image_pyramid, HW, at=SQUARES),
    "image_laplacian": of(_laplacian, HW, at=SQUARES),
    "image_patches": of(_patches, HW, at=((2, 2), (4, 6), (9, 5)), conv=lambda: nn.Conv2d(3, 4, 2, 2),
                        norm=lambda: nn.LayerNorm(4)),
    "image_attention": of(_attention_over_pixels, floats(1, 3, "H", 4), at=(1, 3, 7)),
    "image_unshuffled": of(_unshuffle, HW, at=((2, 2), (4, 6), (9, 5))),
    "image_shuffled": of(lambda x: F.pixel_shuffle(x, 2)[:, :, 1:, 1:], floats(1, 4, "H", "W"), at=SQUARES),
    "image_u_net": of(_u_net, HW, at=((2, 2), (4, 6), (9, 5)), up=lambda: nn.ConvTranspose2d(3, 3, 2, 2)),
    "image_resized_bilinear": of(
        lambda x: F.interpolate(x, size=(2 * x.shape[2], 2 * x.shape[3]), mode="bilinear"), HW, at=SQUARES),
    "image_rows_and_columns": of(lambda x: torch.cat([x.mean(2), x.mean(3)], 2), HW, at=SQUARES),
    "image_global_pool": of(lambda m, x: m.out(x.mean((2, 3))), HW, at=SQUARES, out=lambda: nn.Linear(3, 5)),
    "image_transposed_and_cropped": of(lambda x: x.mT[:, :, 1:, :-1] * 2, HW, at=SQUARES),
    "batch_of_images": of(lambda m, x: m.conv(x).flatten(1), floats("B", 3, 5, 7), at=(1, 2, 5),
                          conv=lambda: nn.Conv2d(3, 2, 3)),
    "batch_halves": of(lambda x: x[: x.shape[0] // 2] + x[x.shape[0] // 2 : x.shape[0] // 2 * 2], BT,
                       at=((2, 1), (3, 5), (6, 9))),
}  # fmt: skip
