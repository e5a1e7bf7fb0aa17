"""Views, axes, repetition."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch.export import Dim

from tests.contract.cases import bools, case, randint, randn, tensor

aten, prims = torch.ops.aten, torch.ops.prims
B, BT = {0: {0: "B"}}, {0: {0: "B", 1: "T"}}


def _relative(x: torch.Tensor) -> torch.Tensor:
    """Scores [B, 2, T, 2 * T - 1] of a sequence, as those of relative positions are."""
    scores = x @ x.mT
    return torch.cat([scores, scores[..., 1:].exp()], -1)


def _shifted(x: torch.Tensor) -> torch.Tensor:
    """The shift of Transformer-XL: each row begins one place later."""
    scores = _relative(x)
    batch, heads, length, places = scores.shape
    shifted = scores.reshape(batch, heads, places, length)[:, :, 1:]
    return shifted.reshape(batch, heads, length, places - 1)


def _turned(x: torch.Tensor) -> torch.Tensor:
    """A sequence of which the second half comes first, beside itself."""
    middle = x.shape[1] // 2
    return torch.cat([x[:, middle:], x[:, :middle]], 1) * x


def _below_zero(x: torch.Tensor, steps: int) -> tuple[torch.Tensor, ...]:
    return (
        x * (steps // 2 - steps),
        x * (steps // 2 - steps + 3),
        x * (3 - steps // 2),
        x * (steps // 4 - 2 * steps - 1),
    )


CASES = [
    case("view of a relative shift", _shifted, randn(2, 2, 5, 3)).dynamic({0: {0: "B", 2: "T"}}),
    case("view of a relative shift of one head", lambda x: _shifted(x[:, None])[:, 0], randn(2, 5, 3)).dynamic(BT),
    case("flatten of two groups of axes", lambda x: _relative(x).flatten(0, 1).flatten(1), randn(2, 2, 5, 3)).dynamic(
        {0: {0: "B", 2: "T"}}
    ),
    case("slice to the middle", lambda x: x[:, : (x.shape[1] + 1) // 2].flatten(1).exp(), randn(2, 5, 3)).dynamic(BT),
    case("slice to before the middle", lambda x: x[:, : (x.shape[1] - 1) // 2].flatten(1), randn(2, 5, 3)).dynamic(BT),
    case("slice behind the middle", lambda x: x[:, (x.shape[1] - 1) // 2 :].flatten(1), randn(2, 5, 3)).dynamic(BT),
    case("slice from the fourth on", lambda x: x[:, 3:].flatten(1), randn(2, 7, 3)).dynamic(BT),
    case("slice between quarters", lambda x: x[:, x.shape[1] // 4 : x.shape[1] // 4 * 3].exp(), randn(2, 9, 3)).dynamic(
        BT
    ),
    case("a count of what is behind the middle", lambda x: x * (x.shape[1] - x.shape[1] // 2), randn(2, 5, 3)).dynamic(
        BT
    ),
    *(
        case(f"numbers below zero of {count} steps", lambda x: _below_zero(x, x.shape[1]), randn(2, count, 3)).dynamic(
            BT
        )
        for count in (4, 5, 6)
    ),
    case("halves in the other order", _turned, randn(2, 5, 3)).dynamic(BT),
    case("view with axes of 1 around", lambda x: x.view(1, x.shape[0], x.shape[1] * 4, 1), randn(2, 5, 4)).dynamic(BT),
    case("view", lambda x: x.view(2, 12), randn(2, 3, 4)),
    case("narrow from a tensor", lambda x, i: x.narrow(1, i, 2), randn(2, 5, 3), tensor(3)),
    case("narrow from the end", lambda x, i: torch.narrow(x, 2, i, 2), randn(2, 5, 3), tensor(-2)),
    case("slice from a tensor", lambda x, i: x[:, i : i + 2], randn(2, 5, 3), tensor(3)).refused("depends on"),
    case("view rest", lambda x: x.view(x.shape[0], x.shape[1] * 2, -1), randn(2, 3, 4)).dynamic(BT),
    case("view flattens batch and time", lambda x: x.view(-1, 4), randn(2, 3, 4)).dynamic(BT),
    case("view splits time", lambda x: x.reshape(x.shape[0], -1, 2, 4), randn(2, 6, 4)).dynamic({0: {0: "B"}}),
    case("view to rank 0", lambda x: x.view(()), randn(1, 1)),
    case("view from rank 0", lambda x: x.view(1, 1), randn()),
    case("view as another dtype", lambda x: x.view(torch.int32), randn(4)).refused("reinterprets its bits"),
    case("reshape", torch.reshape, randn(2, 3, 4), (4, -1)),
    case("reshape behind transpose", lambda x: x.transpose(1, 2).reshape(2, -1), randn(2, 3, 4)),
    case("_unsafe_view", lambda x: aten._unsafe_view(x, [6, 4]), randn(2, 3, 4)),
    case("_reshape_alias", lambda x: aten._reshape_alias(x, [6, 4], [4, 1]), randn(2, 3, 4)),
    case("_reshape_copy", lambda x: aten._reshape_copy(x, [6, 4]), randn(2, 3, 4)),
    case("view_copy", lambda x: aten.view_copy(x, [6, 4]), randn(2, 3, 4)),
    case("view_as", lambda x, y: x.view_as(y) + y, randn(2, 3, 4), randn(6, 4)),
    case("reshape_as", lambda x, y: x.reshape_as(y) + y, randn(2, 3, 4), randn(6, 4)),
    case("flatten", torch.flatten, randn(2, 3, 4)),
    case("flatten some", torch.flatten, randn(2, 3, 4, 5), 1, -2),
    case("flatten dynamic", lambda x: torch.flatten(x, 1), randn(2, 3, 4)).dynamic(BT),
    case("flatten of a square", lambda x: (x @ x.mT).flatten(), randn(2, 5, 3)).dynamic(BT),
    case("flatten rank 0", torch.flatten, randn()),
    case("unflatten", lambda x: x.unflatten(1, (2, 3)), randn(2, 6, 4)),
    case("ravel", torch.ravel, randn(2, 3)),
    case("squeeze", torch.squeeze, randn(1, 3, 1, 4)),
    case("squeeze an axis", lambda x: x.squeeze(2), randn(1, 3, 1, 4)),
    case("squeeze a wide axis", lambda x: x.squeeze(1), randn(1, 3, 1, 4)),
    case("squeeze axes", lambda x: x.squeeze((0, -2)), randn(1, 3, 1, 4)),
    case("squeeze dynamic", lambda x: x.squeeze(-1), randn(2, 3, 1)).dynamic(BT),
    case("squeeze_copy", aten.squeeze_copy, randn(1, 3, 1)),
    case("unsqueeze", lambda x: x.unsqueeze(-1).unsqueeze(1), randn(2, 3)).dynamic(BT),
    case("unsqueeze_copy", aten.unsqueeze_copy, randn(2, 3), 1),
    case("transpose", torch.transpose, randn(2, 3, 4), 0, -1),
    case("transpose_copy", aten.transpose_copy, randn(2, 3, 4), 0, -1),
    case("transpose rank 0", torch.transpose, randn(), 0, -1),
    case("swapaxes", torch.swapaxes, randn(2, 3, 4), 0, 1),
    case("swapdims", torch.swapdims, randn(2, 3, 4), 0, 1),
    case("t", torch.t, randn(2, 3)),
    case("t of rank 1", torch.t, randn(3)),
    case("t_copy", aten.t_copy, randn(2, 3)),
    case("T", lambda x: x.T, randn(2, 3)),
    case("mT", lambda x: x.mT, randn(2, 3, 4)),
    case("mH", lambda x: x.mH, randn(2, 3, 4)),
    case("H", lambda x: x.H, randn(2, 3)),
    case("adjoint", torch.adjoint, randn(2, 3, 4)),
    case("permute", lambda x: x.permute(2, 0, -2), randn(2, 3, 4)),
    case("permute dynamic", lambda x: x.permute(1, 0, 2), randn(2, 3, 4)).dynamic(BT),
    case("permute_copy", lambda x: aten.permute_copy(x, [2, 0, 1]), randn(2, 3, 4)),
    case("movedim", torch.movedim, randn(2, 3, 4, 5), (0, 2), (-1, 0)),
    case("movedim int", torch.movedim, randn(2, 3, 4), 0, -1),
    case("moveaxis", torch.moveaxis, randn(2, 3, 4), (0,), (1,)),
    case("moveaxis int", torch.moveaxis, randn(2, 3, 4), 2, 0),
    case("movedim rank 0", torch.movedim, randn(), 0, 0),
    case("expand", lambda x: x.expand(5, 2, -1, 4), randn(2, 1, 4)),
    case("expand dynamic", lambda x, y: x.expand(y.shape[0], -1) + y, randn(1, 3), randn(4, 3)).dynamic({1: {0: "B"}}),
    case("expand_as", lambda x, y: x.expand_as(y) * y, randn(1, 3), randn(4, 3)),
    case("expand_copy", lambda x: aten.expand_copy(x, [4, 3]), randn(1, 3)),
    case("expand of integers", lambda x: x.expand(4, 3), randint(-9, 9, 1, 3)),
    case("broadcast_to", torch.broadcast_to, randn(3, 1), (2, 3, 4)),
    case("broadcast_tensors", torch.broadcast_tensors, randn(3, 1), randn(2, 1, 4), randn()),
    case("meshgrid", lambda x, y: torch.meshgrid(x, y, indexing="ij"), randn(3), randn(4)),
    case("meshgrid xy", lambda x, y: torch.meshgrid(x, y, indexing="xy"), randn(3), randn(4)),
    case("repeat", lambda x: x.repeat(3, 1, 2), randn(2, 3)),
    case("repeat dynamic", lambda x: x.repeat(1, 2), randn(2, 3)).dynamic(BT),
    case("repeat by a size", lambda x: x[:1].repeat(x.shape[0], 1), randn(4, 3)).dynamic({0: {0: "B"}}),
    case("tile", torch.tile, randn(2, 3, 4), (2,)),
    case("tile more axes", torch.tile, randn(3), (2, 2)),
    case("repeat_interleave", torch.repeat_interleave, randn(2, 3), 2),
    case("repeat_interleave of an axis", torch.repeat_interleave, randn(2, 3), 3, 1),
    case("repeat_interleave dynamic", lambda x: x.repeat_interleave(2, 1), randn(2, 3)).dynamic(BT),
    case("flip", torch.flip, randn(2, 3, 4), (0, -1)),
    case("flip of bool", torch.flip, bools(2, 3), (1,)),
    case("flip dynamic", lambda x: x.flip(1), randn(2, 3, 4)).dynamic(BT),
    case("fliplr", torch.fliplr, randn(2, 3, 4)),
    case("flipud", torch.flipud, randn(2, 3, 4)),
    case("rot90", torch.rot90, randn(2, 3, 4), 1, (0, 2)),
    case("roll", torch.roll, randn(2, 5), (1, -2), (0, 1)),
    case("roll flat", torch.roll, randn(2, 5), 3),
    case("roll dynamic", lambda x: x.roll(1, 1).roll(-2, 1), randn(2, 5)).dynamic({0: {0: "B"}}),
    case("roll half a dynamic axis", lambda x: x.roll(x.shape[1] // 2, 1), randn(2, 5)).dynamic(BT),
    case("roll by more than an axis", lambda x: x.roll(7, 1).roll(-3, 0), randn(2, 5)).dynamic(BT),
    case(
        "reshape of what is empty in the whole range",
        lambda x: F.pad(x, (0, 4 - x.shape[1])).mean() + x[:, : x.shape[1] // 5 * 5].unflatten(1, (-1, 5)),
        randn(2, 3),
    ).dynamic({0: {1: Dim("T", max=4)}}),
    case("reshape of nothing", lambda x: x[:0].reshape(-1, 8), randn(5)).dynamic({0: {0: "T"}}),
    case(
        "half of a size and what is less of it",
        lambda x: torch.cat([x[:, torch.arange(min(x.shape[1], 7))], x], 1).chunk(2, 1)[0],
        randn(2, 11),
    ).dynamic(BT),
    case("roll what may be empty", lambda x: x[:, : x.shape[1] // 4 * 4].roll(-3, 1), randn(2, 9)).dynamic(BT),
    case("roll one of what may be empty", lambda x: x[:, : x.shape[1] // 2 * 2].roll(-1, 1), randn(2, 5)).dynamic(BT),
    case("roll a dynamic axis", lambda x: x.roll(1, 1), randn(2, 5)).dynamic(BT),
    *(case(f"triu {k}", torch.triu, randn(2, 3, 5), k) for k in (-1, 0, 2)),
    *(case(f"tril {k}", torch.tril, randn(2, 5, 3), k) for k in (-1, 0, 2)),
    case("tril of bool", torch.tril, bools(4, 4)),
    case("triu of integers", torch.triu, randint(-9, 9, 4, 4), 1),
    case("tril dynamic", lambda x: x.tril(-1), randn(4, 5)).dynamic(BT),
    case(
        "triu of a dynamic square", lambda x: torch.ones(x.shape[0], x.shape[0]).triu(1) * x[0, 0], randn(4, 5)
    ).dynamic({0: {0: "T"}}),
    *(case(f"diagonal {k}", torch.diagonal, randn(3, 5, 2), k) for k in (-1, 0, 3)),
    case("diagonal of one element", torch.diagonal, randn(3, 5), -2),
    case("diagonal of axes", torch.diagonal, randn(3, 5, 4), 1, -1, 0),
    case("diagonal_copy", torch.diagonal_copy, randn(3, 5)),
    *(
        case(f"diagonal {k} of a dynamic square", lambda x, k=k: (x @ x.T).diagonal(k), randn(5, 3)).dynamic(B)
        for k in (0, 1)
    ),
    case("diagonal of known length", torch.diagonal, randn(5, 3), -1).dynamic({0: {0: "T"}}),
    *(case(f"diag_embed {k} of a dynamic axis", torch.diag_embed, randn(2, 3), k).dynamic(BT) for k in (-2, 0, 1)),
    case("trace of a dynamic square", lambda x: torch.einsum("ii->", x @ x.T), randn(5, 3)).dynamic(B),
    case("diag", torch.diag, randn(3, 5)),
    case("diag of a vector", torch.diag, randn(3), 1),
    case("trace", torch.trace, randn(3, 5)),
    *(case(f"diag_embed {k}", torch.diag_embed, randn(2, 3), k) for k in (-2, 0, 1)),
    case("diagflat of one number", torch.diagflat, randn()),
    case("diag_embed axes", torch.diag_embed, randn(2, 3), 0, 0, 2),
    case("diag_embed of bool", torch.diag_embed, bools(2, 3)),
    case("unfold", lambda x: x.unfold(1, 3, 2), randn(2, 8, 3)),
    case("unfold of the last axis", lambda x: x.unfold(-1, 2, 1), randn(2, 8)),
    case("unfold dynamic", lambda x: x.unfold(1, 3, 1), randn(2, 8)).dynamic({0: {0: "B"}}),
    case("unfold_copy", aten.unfold_copy, randn(2, 8), 1, 3, 2),
    case("pixel_shuffle", F.pixel_shuffle, randn(2, 8, 3, 5), 2),
    case("pixel_shuffle dynamic", F.pixel_shuffle, randn(2, 8, 3, 5), 2).dynamic({0: {0: "B", 2: "H", 3: "W"}}),
    case("pixel_unshuffle", F.pixel_unshuffle, randn(2, 3, 4, 6), 2),
    case("channel_shuffle", F.channel_shuffle, randn(2, 6, 3, 5), 3),
    case("native_channel_shuffle", aten.native_channel_shuffle, randn(2, 6, 3, 5), 2),
    case("prims.reshape", lambda x: prims.reshape(x, [6, 4]), randn(2, 3, 4)),
    case("prims.split_dim", lambda x: prims.split_dim(x, 1, 2), randn(2, 6)),
    case("prims.collapse_view", lambda x: prims.collapse_view(x, 0, 1), randn(2, 3, 4)),
    case("prims.collapse", lambda x: prims.collapse(x, 0, 1), randn(2, 3, 4)),
    case("prims.squeeze", lambda x: prims.squeeze(x, [1]), randn(2, 1, 4)),
    case("prims.view_of", lambda x: prims.view_of(x) + 0, randn(2, 1, 4)),
    case("prims.clone", lambda x: prims.clone(x) + 0, randn(2, 1, 4)),
    case("prims.transpose", lambda x: prims.transpose(x, [2, 0, 1]), randn(2, 3, 4)),
    case("prims.broadcast_in_dim", lambda x: prims.broadcast_in_dim(x, [3, 2, 4], [1, 2]), randn(2, 1)),
    case("prims.rev", lambda x: prims.rev(x, [1]), randn(2, 3)),
]
