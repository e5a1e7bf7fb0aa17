"""Layers with weights, pooling, resampling, recurrent nets, attention."""

from __future__ import annotations

from collections.abc import Callable

from conformance.lab.fuzz.draft import Draft
from conformance.lab.fuzz.operators.sizes import any_size, computed

WIDTHS = (4, 5, 6, 8)
MOST_CHANNELS = 40


def channels_at(d: Draft, axis: int, *ranks: int) -> tuple[str, int]:
    """Return a tensor of one of these ranks whose `axis` has a fixed size, and that size; transposed if need be."""

    def fits(name: str) -> bool:
        fixed = d.fixed(name, axis) if d.rank(name) in ranks else None
        return fixed is not None and 0 < fixed <= MOST_CHANNELS

    if d.chance(0.7) and d.tensors(fits):
        v = d.pick(fits)
        return v, d.fixed(v, axis) or 1

    def has(name: str) -> list[int]:
        return [a for a in range(d.rank(name)) if 0 < (d.fixed(name, a) or 0) <= MOST_CHANNELS]

    v = d.pick(lambda name: d.rank(name) in ranks and bool(has(name)))
    source_axis = d.one_of(has(v))
    if source_axis != axis % d.rank(v):
        v = d.tensor(f"{v}.transpose({source_axis}, {axis})")
    return v, d.fixed(v, axis) or 1


def linear(d: Draft) -> str:
    v, width = channels_at(d, -1, 1, 2, 3, 4)
    return d.tensor(f"self.LAYER({v})", f"nn.Linear({width}, {d.one_of(WIDTHS)})")


def layer_norm(d: Draft) -> str:
    v, width = channels_at(d, -1, 2, 3, 4)
    return d.tensor(f"self.LAYER({v})", f"nn.LayerNorm({width})")


def other_norm(d: Draft) -> str:
    v, width = channels_at(d, 1, 3)
    groups = 2 if width % 2 == 0 else 1
    return d.tensor(f"self.LAYER({v})", d.one_of((f"nn.GroupNorm({groups}, {width})", f"nn.BatchNorm1d({width})")))


def conv1d(d: Draft) -> str:
    v, width = channels_at(d, 1, 3)
    kernel, dilation = d.one_of((1, 2, 3, 3, 4, 5)), d.one_of((1, 1, 1, 2))
    reach = dilation * (kernel - 1)
    padding = d.one_of((0, reach // 2, reach // 2, reach))
    stride = d.one_of((1, 1, 2, 2, 3))
    groups = width if d.chance(0.15) else 1
    out = width if groups > 1 else d.one_of(WIDTHS)
    if d.chance(0.15):
        v = d.tensor(f"F.pad({v}, ({reach}, 0))")
        padding = 0
    more = "".join(
        f", {name}={value}"
        for name, value, plain in (
            ("stride", stride, 1),
            ("padding", padding, 0),
            ("dilation", dilation, 1),
            ("groups", groups, 1),
        )
        if value != plain
    )
    return d.tensor(f"self.LAYER({v})", f"nn.Conv1d({width}, {out}, {kernel}{more})")


def conv2d(d: Draft) -> str:
    v, width = channels_at(d, 1, 4)
    kernel = d.one_of((1, 2, 3, 3))
    more = f", stride={d.one_of((1, 2, 2))}, padding={d.one_of((0, kernel // 2, kernel // 2))}"
    return d.tensor(f"self.LAYER({v})", f"nn.Conv2d({width}, {d.one_of(WIDTHS)}, {kernel}{more})")


def conv_transpose1d(d: Draft) -> str:
    v, width = channels_at(d, 1, 3)
    kernel, stride = d.one_of((1, 2, 3, 4)), d.one_of((1, 2, 2, 3))
    padding = d.one_of((0, 0, 1)) if kernel > 2 else 0
    more = f", stride={stride}, padding={padding}"
    if stride > 1 and d.chance(0.3):
        more += ", output_padding=1"
    return d.tensor(f"self.LAYER({v})", f"nn.ConvTranspose1d({width}, {d.one_of(WIDTHS)}, {kernel}{more})")


def pool1d(d: Draft) -> str:
    v = d.pick(lambda name: d.rank(name) in (2, 3))
    if d.fixed(v, -1) is not None and d.moving(v) and d.rank(v) == 3:
        v = d.tensor(f"{v}.transpose(-1, {d.one_of([a for a in d.moving(v) if a != d.rank(v) - 1])})")
    kernel = d.one_of((1, 2, 2, 3, 3, 4))
    padding = d.one_of((0, 0, kernel // 2))
    more = f", stride={d.one_of((1, 2, 2, 3))}, padding={padding}{', ceil_mode=True' if d.chance(0.4) else ''}"
    if d.chance(0.5):
        return d.tensor(f"F.max_pool1d({v}, {kernel}{more})")
    return d.tensor(f"F.avg_pool1d({v}, {kernel}{more}{', count_include_pad=False' if d.chance(0.3) else ''})")


def pool2d(d: Draft) -> str:
    v = d.pick(lambda name: d.rank(name) == 4)
    kernel = d.one_of((1, 2, 2, 3))
    more = f"{kernel}, stride={d.one_of((1, 2, 2))}, padding={d.one_of((0, kernel // 2))}"
    return d.tensor(f"F.{d.one_of(('max', 'avg'))}_pool2d({v}, {more}{', ceil_mode=True' if d.chance(0.4) else ''})")


def interpolate(d: Draft) -> str:
    v = d.pick(lambda name: d.rank(name) == 3)
    mode = d.one_of(
        ('mode="nearest"', 'mode="nearest"', 'mode="linear", align_corners=False', 'mode="linear", align_corners=True')
    )
    if d.chance(0.5):
        return d.tensor(f"F.interpolate({v}, scale_factor={d.one_of((2, 2, 3, 0.5))}, {mode})")
    size = any_size(d) if d.chance(0.6) else d.one_of((computed(d), f"2 * {d.extent(v, 2)}"))
    return d.tensor(f"F.interpolate({v}, size={size}, {mode})")


def adaptive_pool(d: Draft) -> str:
    v = d.pick(lambda name: d.rank(name) in (2, 3))
    return d.tensor(f"F.adaptive_{d.one_of(('avg', 'max'))}_pool1d({v}, {d.one_of((1, 1, 1, 2))})")


def recurrent(d: Draft) -> str:
    v, width = channels_at(d, 2, 3)
    kind = d.one_of(("GRU", "LSTM", "GRU", "RNN"))
    both = ", bidirectional=True" if d.chance(0.3) else ""
    first = ", batch_first=True" if d.chance(0.8) else ""
    layer = f"nn.{kind}({width}, {d.one_of((4, 5))}{first}{both})"
    if d.chance(0.75):
        return d.tensor(f"self.LAYER({v})[0]", layer)
    return d.tensor(f"self.LAYER({v})[1]{'[0]' if kind == 'LSTM' else ''}", layer)


def self_attention(d: Draft) -> str:
    v, _ = channels_at(d, -1, 3, 4)
    if d.chance(0.4):
        return d.tensor(f"(({v} @ {v}.transpose(-1, -2)) * 0.3).softmax(-1) @ {v}")
    causal = ", is_causal=True" if d.chance(0.5) else ""
    return d.tensor(f"F.scaled_dot_product_attention({v}, {v}, {v}{causal})")


def multihead(d: Draft) -> str:
    v, width = channels_at(d, 2, 3)
    count = 2 if width % 2 == 0 else 1
    return d.tensor(
        f"self.LAYER({v}, {v}, {v}, need_weights=False)[0]",
        f"nn.MultiheadAttention({width}, {count}, batch_first=True)",
    )


OPERATORS: dict[Callable[[Draft], str], float] = {
    linear: 5,
    layer_norm: 2.5,
    other_norm: 1,
    conv1d: 6,
    conv2d: 2,
    conv_transpose1d: 2,
    pool1d: 4,
    pool2d: 1,
    interpolate: 2.5,
    adaptive_pool: 0.7,
    recurrent: 2,
    self_attention: 1.5,
    multihead: 0.7,
}
