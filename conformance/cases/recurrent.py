"""The product of everything a recurrent net of torch.nn can be set to, with readable names."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import nn

INPUT, HIDDEN, PROJECTED, BATCH, TIME = 5, 7, 3, 4, 6
"""All different, so that a swapped axis shows."""

CHOICES: dict[str, tuple[Any, ...]] = {
    "kind": ("lstm", "lstm_proj", "gru", "rnn_tanh", "rnn_relu"),
    "layers": (1, 2, 3),
    "bidirectional": (False, True),
    "batch_first": (False, True),
    "bias": (True, False),
    "state": ("none", "given", "from_encoder", "same_zeros"),
    "batched": (True, False),
    "dtype": ("f32", "f64", "f16"),
    "dropout": (0.0, 0.3),
    "dynamic": ("static", "batch", "time", "both"),
}
DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16}


@dataclass(frozen=True, slots=True)
class RecurrentCase:
    """One net and the way it is called."""

    kind: str
    layers: int
    bidirectional: bool
    batch_first: bool
    bias: bool
    state: str
    batched: bool
    dtype: str
    dropout: float
    dynamic: str

    @property
    def id(self) -> str:
        words = [
            self.kind,
            f"l{self.layers}",
            "bi" if self.bidirectional else "uni",
            "bf" if self.batch_first else "tf",
            "bias" if self.bias else "nobias",
            self.state,
            "batched" if self.batched else "single",
            self.dtype,
            *(["dropout"] if self.dropout else []),
            self.dynamic,
        ]
        return "-".join(words)

    @property
    def possible(self) -> bool:
        """False for settings that PyTorch does not have: dropout between layers needs layers, a batch axis a batch."""
        return not ((self.dropout and self.layers == 1) or (not self.batched and self.dynamic in ("batch", "both")))

    @property
    def is_fixed(self) -> bool:
        """True if NNEF 1.0 can hold it."""
        return self.dtype == "f32" and self.dynamic == "static"

    @property
    def seed(self) -> int:
        return int.from_bytes(hashlib.sha256(self.id.encode()).digest()[:4], "little")

    def net(self, input_size: int = INPUT) -> nn.Module:
        options: dict[str, Any] = {
            "num_layers": self.layers,
            "bidirectional": self.bidirectional,
            "batch_first": self.batch_first,
            "bias": self.bias,
            "dropout": self.dropout,
        }
        if self.kind.startswith("rnn"):
            return nn.RNN(input_size, HIDDEN, nonlinearity=self.kind.removeprefix("rnn_"), **options)
        if self.kind == "gru":
            return nn.GRU(input_size, HIDDEN, **options)
        return nn.LSTM(input_size, HIDDEN, proj_size=PROJECTED if self.kind == "lstm_proj" else 0, **options)

    def build(self) -> tuple[nn.Module, dict[str, torch.Tensor], dict[str, dict[int, str]]]:
        """(model, named inputs, dynamic axes), the same for the same case."""
        torch.manual_seed(self.seed)
        dtype = DTYPES[self.dtype]
        model = _MODELS[self.state](self).eval().to(dtype)
        inputs = {"x": torch.randn(*self._input_shape(), dtype=dtype)}
        if self.state == "given":
            inputs.update({f"{n}0": torch.randn(*shape, dtype=dtype) for n, shape in self._state_shapes().items()})
        return model, inputs, self._dynamic_axes(inputs)

    def _input_shape(self) -> tuple[int, ...]:
        if not self.batched:
            return (TIME, INPUT)
        return (BATCH, TIME, INPUT) if self.batch_first else (TIME, BATCH, INPUT)

    def _state_shapes(self) -> dict[str, tuple[int, ...]]:
        count = self.layers * (2 if self.bidirectional else 1)
        batch = (BATCH,) if self.batched else ()
        shapes = {"h": (count, *batch, PROJECTED if self.kind == "lstm_proj" else HIDDEN)}
        if self.kind.startswith("lstm"):
            shapes["c"] = (count, *batch, HIDDEN)
        return shapes

    def _dynamic_axes(self, inputs: dict[str, torch.Tensor]) -> dict[str, dict[int, str]]:
        time_axis = 1 if self.batched and self.batch_first else 0
        axes: dict[str, dict[int, str]] = {}
        if self.dynamic in ("time", "both"):
            axes.setdefault("x", {})[time_axis] = "T"
        if self.dynamic in ("batch", "both"):
            axes.setdefault("x", {})[1 - time_axis] = "B"
            for name in inputs:
                if name != "x":
                    axes[name] = {1: "B"}
        return axes

    def zeros_like_state(self, x: torch.Tensor) -> list[torch.Tensor]:
        """Zero states for an input, with the batch of the input even where it is symbolic."""
        batch = x.shape[0 if self.batch_first else 1] if self.batched else None
        states = []
        for shape in self._state_shapes().values():
            full_shape = shape if batch is None else (shape[0], batch, shape[2])
            states.append(torch.zeros(full_shape, dtype=x.dtype))
        return states


class Plain(nn.Module):
    """The net with its default state."""

    def __init__(self, case: RecurrentCase) -> None:
        super().__init__()
        self.net = case.net()

    def forward(self, x: torch.Tensor) -> Any:
        return self.net(x)


class WithState(nn.Module):
    """The net with an explicit state from outside."""

    def __init__(self, case: RecurrentCase) -> None:
        super().__init__()
        self.net = case.net()

    def forward(self, x: torch.Tensor, h0: torch.Tensor, c0: torch.Tensor | None = None) -> Any:
        return self.net(x, h0 if c0 is None else (h0, c0))


class FromEncoder(nn.Module):
    """Sequence to sequence: the state comes from another net's end."""

    def __init__(self, case: RecurrentCase) -> None:
        super().__init__()
        self.encoder, self.net = case.net(), case.net()

    def forward(self, x: torch.Tensor) -> Any:
        return self.net(x, self.encoder(x)[1])


class SameZeros(nn.Module):
    """One zero tensor as all states."""

    def __init__(self, case: RecurrentCase) -> None:
        super().__init__()
        self.case = case
        self.net = case.net()

    def forward(self, x: torch.Tensor) -> Any:
        states = self.case.zeros_like_state(x)
        if len(states) == 1:
            return self.net(x, states[0])
        if states[0].shape == states[1].shape:
            return self.net(x, (states[0], states[0]))
        return self.net(x, (states[0], states[1]))


_MODELS = {"none": Plain, "given": WithState, "from_encoder": FromEncoder, "same_zeros": SameZeros}


def all_cases() -> list[RecurrentCase]:
    """Return a case for each combination of settings that PyTorch supports."""
    return [case for values in itertools.product(*CHOICES.values()) if (case := RecurrentCase(*values)).possible]


def representative_cases(cases: Sequence[RecurrentCase]) -> list[RecurrentCase]:
    """Return a small selection of cases in which every pair of settings occurs."""
    return list(_pairwise(cases))


def _pairwise(cases: Sequence[RecurrentCase]) -> Iterator[RecurrentCase]:
    names = [f.name for f in fields(RecurrentCase)]

    def pairs(case: RecurrentCase) -> set[tuple[Any, ...]]:
        values = [(n, getattr(case, n)) for n in names]
        return set(itertools.combinations(values, 2))

    open_pairs = set().union(*map(pairs, cases))
    # a fixed shuffle: neighbours of the product differ in one setting only and make a poor greedy cover
    order = sorted(cases, key=lambda c: hashlib.sha256(c.id.encode()).digest())
    while open_pairs:
        best = max(order[:400], key=lambda c: len(pairs(c) & open_pairs))
        gained = pairs(best) & open_pairs
        if not gained:
            best = next(c for c in order if pairs(c) & open_pairs)
            gained = pairs(best) & open_pairs
        open_pairs -= gained
        yield best
