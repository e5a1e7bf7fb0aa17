"""Examples of one row or one step with dynamic axes: what the graph is then must not follow from the 1."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.contract.cases import build, case, randint, randn, tensor, weight

BT = {0: {0: "B", 1: "T"}}
PAIRS = {0: {0: "B", 2: "T"}, 1: {0: "B", 2: "S"}}


class _Vision(nn.Module):
    """A small vision transformer: patches, a class token for each row, positions, one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, stride=4)
        self.token = nn.Parameter(torch.randn(1, 1, 8))
        self.positions = nn.Parameter(torch.randn(1, 7, 8))
        self.layer = nn.TransformerEncoderLayer(8, 2, 12, activation="gelu", batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.patches(x).flatten(2).transpose(1, 2)
        y = torch.cat([self.token.expand(x.shape[0], -1, -1), y], dim=1) + self.positions
        return self.layer(y)[:, 0]


class _Decoder(nn.Module):
    """One layer of a language model as transformers writes it: rotary positions, a causal mask, shared keys."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 8)
        self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 4), nn.Linear(8, 4)
        self.out = nn.Linear(8, 11)

    def forward(self, ids: Tensor) -> Tensor:
        batch, steps = ids.shape
        x = self.words(ids)
        positions = torch.arange(steps).unsqueeze(0)
        rate = torch.tensor([1.0, 0.1])
        angle = (rate[None, :, None].expand(positions.shape[0], -1, 1) @ positions[:, None, :].float()).transpose(1, 2)
        cos, sin = (torch.cat([part, part], -1).unsqueeze(1) for part in (angle.cos(), angle.sin()))

        def turned(y: Tensor, heads: int) -> Tensor:
            y = y.view(batch, steps, heads, 4).transpose(1, 2)
            return y * cos + torch.cat([-y[..., 2:], y[..., :2]], -1) * sin

        q, k = turned(self.q(x), 2), turned(self.k(x), 1)
        v = self.v(x).view(batch, steps, 1, 4).transpose(1, 2)
        k, v = (y[:, :, None].expand(batch, 1, 2, steps, 4).reshape(batch, 2, steps, 4) for y in (k, v))
        mask = torch.full((steps, steps), float("-inf")).triu(1)[None, None].expand(batch, 1, -1, -1)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(mixed.transpose(1, 2).reshape(batch, steps, 8))


def _positions(x: Tensor) -> Tensor:
    return x + torch.arange(x.shape[1])[None, :, None].expand(x.shape[0], -1, 1)


def _expanded(x: Tensor, w: Tensor) -> Tensor:
    return x * w.expand(x.shape[0], -1, -1)


def _last_state(net: nn.LSTM, x: Tensor) -> Tensor:
    return net(x)[0][:, -1]


def _windows(x: Tensor) -> Tensor:
    """[B, 6, 4, C] in windows of 3 x 2 and back, as Swin and MaxViT do it."""
    batch, height, width, channels = x.shape
    y = x.view(batch, height // 3, 3, width // 2, 2, channels).permute(0, 1, 3, 2, 4, 5).reshape(-1, 6, channels)
    y = y.softmax(1).view(-1, height // 3, width // 2, 3, 2, channels)
    return y.permute(0, 1, 3, 2, 4, 5).reshape(batch, height, width, channels)


CASES = [
    case("einsum btc,btd->bcd", lambda x: torch.einsum("btc,btd->bcd", x, x), randn(1, 9, 4)).dynamic(BT),
    case("einsum btc,btd->bcd of one step", lambda x: torch.einsum("btc,btd->bcd", x, x), randn(1, 1, 4)).dynamic(BT),
    case("einsum with an ellipsis", torch.einsum, "...c,oc->...o", randn(1, 9, 4), weight(randn(3, 4))).dynamic(BT),
    case("einsum btc,ch->bth", torch.einsum, "btc,ch->bth", randn(1, 9, 4), weight(randn(4, 5))).dynamic(BT),
    case("einsum bhid,bhjd->bhij", torch.einsum, "bhid,bhjd->bhij", randn(1, 3, 5, 4), randn(1, 3, 6, 4)).dynamic(
        PAIRS
    ),
    case("einsum bhij,bhjd->bhid", torch.einsum, "bhij,bhjd->bhid", randn(1, 3, 1, 6), randn(1, 3, 6, 4)).dynamic(
        {0: {0: "B", 2: "T"}, 1: {0: "B"}}
    ),
    case("einsum bi,bj->bij", torch.einsum, "bi,bj->bij", randn(1, 3), randn(1, 4)).dynamic({0: {0: "B"}, 1: {0: "B"}}),
    case("einsum bhwc,hkc->bhwk", torch.einsum, "bhwc,hkc->bhwk", randn(1, 3, 5, 4), weight(randn(3, 2, 4))).dynamic(
        {0: {0: "B", 2: "W"}}
    ),
    case("einsum nctv,vw->nctw", torch.einsum, "nctv,vw->nctw", randn(1, 3, 1, 4), weight(randn(4, 4))).dynamic(
        {0: {0: "B", 2: "T"}}
    ),
    case("embedding", build(nn.Embedding, 9, 4), randint(0, 9, 1, 5)).dynamic(BT),
    case("embedding of one word", build(nn.Embedding, 9, 4), randint(0, 9, 1, 1)).dynamic(BT),
    case("any", lambda x: (x > 1).any(-1), randn(1, 9, 4)).dynamic(BT),
    case("matmul", torch.matmul, randn(1, 1, 5), randn(1, 5, 3)).dynamic({0: {0: "B", 1: "T"}, 1: {0: "B"}}),
    case("linear and gelu", lambda x, w: F.gelu(F.linear(x, w)), randn(1, 9, 4), weight(randn(3, 4))).dynamic(BT),
    case("layer norm", build(nn.LayerNorm, 4), randn(1, 1, 4)).dynamic(BT),
    case("positions", _positions, randn(1, 1, 4)).dynamic(BT),
    case("windows", _windows, randn(1, 6, 4, 3)).dynamic({0: {0: "B"}}),
    case("expand over rows", _expanded, randn(1, 1, 4), weight(randn(1, 1, 4))).dynamic(BT),
    case("expand of another size", lambda x: x[:, :1].expand(-1, 2 * x.shape[1], -1), randn(1, 1, 4)).dynamic(BT),
    case("batch of a mask", lambda x, m: x.masked_fill(m[:, :, None], 0.5), randn(1, 1, 4), tensor([[True]])).dynamic(
        {0: {0: "B", 1: "T"}, 1: {0: "B", 1: "T"}}
    ),
    case("a recurrent net", _last_state, build(nn.LSTM, 4, 6, batch_first=True), randn(1, 1, 4)).dynamic(BT),
    case("a vision transformer", build(_Vision), randn(1, 3, 8, 12)).dynamic({0: {0: "B"}}),
    case("a language model", build(_Decoder), randint(0, 11, 1, 5)).dynamic(BT),
    case("a language model, one word", build(_Decoder), randint(0, 11, 1, 1)).dynamic(BT),
    case("the first of two chunks", lambda x: x.chunk(2, 1)[0], randn(1, 1, 4)).dynamic(BT),
    case("an empty past", lambda x, p: torch.cat([p, x], 1).tanh(), randn(1, 1, 4), randn(1, 0, 4)).dynamic(
        {0: {0: "B", 1: "T"}, 1: {0: "B", 1: "P"}}
    ),
    case("something else at 1", lambda x: x.squeeze(0), randn(1, 5, 4)).dynamic(BT).refused("the model fixes it to 1"),
]  # fmt: skip
