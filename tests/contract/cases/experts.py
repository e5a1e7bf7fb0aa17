"""Mixtures of experts, with routers that the engine's own operator has, and with others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from t2n_core.torch_graph.custom_ops import experts as _declared  # noqa: F401  the operators live there
from tests.contract.cases import Case, case, randn, tensor, weight

CHOSEN, TOKENS, WIDTH, HIDDEN, EXPERTS = 2, 7, 6, 5, 4


def share(logits: Tensor) -> tuple[Tensor, Tensor]:
    values, index = logits.softmax(-1).topk(CHOSEN, -1)
    return values / values.sum(-1, keepdim=True), index


def softmax_all(logits: Tensor) -> tuple[Tensor, Tensor]:
    values, index = logits.softmax(-1).topk(CHOSEN, -1)
    return values, index


def softmax_topk(logits: Tensor) -> tuple[Tensor, Tensor]:
    values, index = logits.topk(CHOSEN, -1)
    return values.softmax(-1), index


def sigmoid(logits: Tensor) -> tuple[Tensor, Tensor]:
    values, index = logits.sigmoid().topk(CHOSEN, -1)
    return values, index


def sigmoid_after(logits: Tensor) -> tuple[Tensor, Tensor]:
    values, index = logits.topk(CHOSEN, -1)
    return values.sigmoid(), index


def raw(logits: Tensor) -> tuple[Tensor, Tensor]:
    values, index = logits.topk(CHOSEN, -1)
    return values, index


def scaled(logits: Tensor) -> tuple[Tensor, Tensor]:
    values, index = share(logits)
    return values * 2.5, index


def smallest(logits: Tensor) -> tuple[Tensor, Tensor]:
    values, index = logits.softmax(-1).topk(CHOSEN, -1, largest=False)
    return values, index


Gate = Callable[[Tensor], tuple[Tensor, Tensor]]


class Mixture:
    """A call of experts with a linear router."""

    def __init__(self, gate: Gate, *form: Any) -> None:
        self.gate, self.form = gate, form

    def __call__(
        self, x: Tensor, router: Tensor, up: Tensor, down: Tensor, up_bias: Any = None, down_bias: Any = None,
        router_bias: Any = None, hidden: Any = None,
    ) -> Tensor:  # fmt: skip
        weights, index = self.gate(F.linear(x, router, router_bias))
        arguments = (x if hidden is None else hidden, index, weights, up, up_bias, down, down_bias, *self.form)
        result: Tensor = torch.ops.t2n_experts.experts(*arguments)
        return result


def mixture(
    name: str, gate: Gate = share, activation: str = "silu", *, has_gate: bool = True, limit: float | None = None,
    is_transposed: bool = False, is_grouped: bool = True, biases: bool = False, alike: bool = False, **more: Any,
) -> Case:  # fmt: skip
    """A mixture of random weights; `alike` gives all experts equal logits and equal layers."""
    wide, rows = HIDDEN * (1 + has_gate), 1 if alike else EXPERTS
    up, down = ((rows, wide, WIDTH), (rows, WIDTH, HIDDEN))
    if is_transposed:
        up, down = ((*shape[:1], *shape[:0:-1]) for shape in (up, down))
    make = [weight(_of_all(randn(*shape))) for shape in ((rows, WIDTH), up, down)]
    if biases:
        make += [weight(_of_all(randn(*shape))) for shape in ((rows, wide), (rows, WIDTH))]
        make += [weight(_of_all(randn(rows)))]
    form = (activation, has_gate, None if limit is None else 1.7, limit, is_transposed, is_grouped)
    call = Mixture(gate, *form)
    return case(f"experts {name}", call, randn(TOKENS, WIDTH, scale=2.0), *make, **more).dynamic({0: {0: "N"}})


def _of_all(rows: Any) -> Any:
    """Repeat a single row for all experts."""
    make_rows = rows.make
    return type(rows)(lambda: make_rows().expand(EXPERTS, *(-1 for _ in make_rows().shape[1:])).clone(), rows.constant)


CASES = [
    mixture("softmax of all, shared out"),
    mixture("softmax of all", softmax_all),
    mixture("softmax of the chosen", softmax_topk),
    mixture("sigmoid", sigmoid),
    mixture("sigmoid of the chosen", sigmoid_after),
    mixture("logits", raw),
    mixture("times a factor", scaled),
    mixture("smallest", smallest),
    mixture("batched", is_grouped=False),
    mixture("biases", softmax_topk, biases=True),
    mixture("transposed", is_transposed=True, biases=True),
    mixture("clamped", softmax_topk, limit=1.5, is_transposed=True, biases=True),
    mixture("clamped linear", softmax_topk, limit=1.5),
    mixture("relu", activation="relu"),
    mixture("gelu", activation="gelu"),
    mixture("gelu of erf", activation="erf"),
    mixture("without a gate", activation="relu", has_gate=False),
    mixture("without a gate, biases", has_gate=False, biases=True, is_transposed=True),
    mixture("alike", alike=True, biases=True),
    mixture("hidden of its own", hidden=randn(TOKENS, WIDTH)).dynamic({0: {0: "N"}, 1: {0: "N"}}),
    case(
        "experts one", Mixture(raw, "silu", True, None, None, False, True),
        tensor([[1.0, -2.0]]), weight(randn(2, 2)), weight(randn(2, 6, 2)), weight(randn(2, 2, 3)),
    ),
]  # fmt: skip
