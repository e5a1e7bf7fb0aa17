"""Activations."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from tests.contract.cases import case, corners, randint, randn, tensor, uniform, weight

PLAIN = "relu relu6 hardtanh leaky_relu rrelu elu selu celu gelu silu mish hardsigmoid hardswish softplus".split()
PLAIN += "logsigmoid hardshrink softshrink softsign tanhshrink".split()
NATIVE = {"relu", "relu6", "hardtanh", "softsign", "tanhshrink"}
"""On NaN these are the engine's, or composed of what is."""
GATES = {
    "silu": F.silu,
    "silu by hand": lambda x: x * torch.sigmoid(x),
    "silu of float16": lambda x: F.silu(x.clamp(min=-6e4).half()),
    "a large product with silu": lambda x: F.silu(x) * (x.abs() * 100),
    "quick gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "quick gelu of float16": lambda x: torch.sigmoid(1.702 * x.clamp(min=-3e4).half()) * x.clamp(min=-3e4).half(),
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "gelu tanh by hand": lambda x: 0.5 * x * (1.0 + torch.tanh(0.8 * (x + 0.044715 * x**3))),
    "two gates": lambda x: x * torch.sigmoid(x - 1) * torch.sigmoid(x + 1),
}
"""Products that are 0, or nearly so, although their factor is large."""


def of_closed_gates(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return what makes a large error of a small absolute one of a function near its bound."""
    gate = torch.sigmoid(x - 20)
    action = torch.tanh(x * 9)
    further = torch.log1p(-torch.sigmoid(x + 8)), torch.logit(gate, 1e-12), torch.xlogy(x, torch.special.expit(x - 20))
    return (
        torch.log(1 - action.square() + 1e-6),
        torch.log(torch.tanh(x * 1e-4).abs()),
        x / F.softplus(x - 16),
        torch.log(-F.logsigmoid(x + 20)),
        torch.log(torch.erfc(x + 4)),
        torch.log(1 - torch.erf(x * 0.02 + 3.05)),
        torch.log(gate + 1e-8),
        x / (gate + 1e-9),
        gate / gate.sum(1, True),
        (gate * 1e9).repeat(1, 20).sum(1),
        *further,
    )


CASES = [
    case("prelu of a number", torch.prelu, tensor(-0.7), tensor([0.3])),
    *(case(name, getattr(F, name), randn(3, 4, scale=3)) for name in PLAIN),
    *(case(f"{n} of float16", getattr(F, n), randn(3, 4, scale=3, dtype=torch.float16)) for n in PLAIN),
    *(case(f"{n} of float64", getattr(F, n), randn(3, 4, scale=3, dtype=torch.float64)) for n in PLAIN),
    *(case(f"{n} of large numbers", getattr(F, n), randn(40, scale=200)) for n in PLAIN),
    *(
        case(f"{name} of corners", getattr(F, name), corners())
        for name in PLAIN
        if name not in NATIVE and name not in ("mish", "silu", "gelu", "hardswish", "hardsigmoid")
    ),
    *(
        case(f"{name} of corners, with NaN", getattr(F, name), corners()).keeping_nan()
        for name in ("relu", "relu6", "hardtanh", "hardsigmoid", "sigmoid", "tanh")
    ),
    *(
        case(f"{name} of NaN and infinities", getattr(F, name), tensor([math.nan, math.inf, -math.inf, -4.0, 1.5, 7.0]))
        for name in ("hardswish", "leaky_relu", "mish", "silu")
    ),
    case("relu of magnitudes", lambda x: F.relu(x.abs()), corners()),
    case("relu of integers", F.relu, randint(-5, 5, 9)),
    case("relu6 of integers", F.relu6, randint(-5, 9, 9)),
    case("hardtanh bounds", F.hardtanh, randn(9, scale=3), -0.5, 2.0),
    case("leaky_relu slope", F.leaky_relu, randn(9), 0.3),
    case("prelu", F.prelu, randn(2, 3, 4), weight(uniform(0, 1, 3))),
    case("prelu of rank 2", F.prelu, randn(2, 3), weight(uniform(0, 1, 3))),
    case("prelu one slope", F.prelu, randn(2, 3, 4), uniform(0, 1, 1)),
    case("prelu of rank 1", F.prelu, randn(9), weight(uniform(0, 1, 1))),
    case("prelu kernel", torch.ops.aten._prelu_kernel, randn(2, 3, 4), uniform(0, 1, 1, 3, 1)),
    case("elu alpha", F.elu, randn(9), 0.3),
    case("elu scales", torch.ops.aten.elu, randn(9), 0.3, 2.0, 1.5),
    case("celu alpha", F.celu, randn(9), 0.3),
    case("gelu tanh", F.gelu, randn(9, scale=3), approximate="tanh"),
    case("gelu tanh of large numbers", F.gelu, randn(40, scale=20), approximate="tanh"),
    case("gelu tanh of float16", F.gelu, randn(9, scale=3, dtype=torch.float16), approximate="tanh"),
    case("gelu tanh of float64", F.gelu, randn(9, scale=3, dtype=torch.float64), approximate="tanh"),
    case("softplus of a low threshold", F.softplus, randn(9, scale=3), threshold=2),
    case("softplus beta", F.softplus, randn(9, scale=3), beta=2.5, threshold=5),
    case("amplified errors of activations", of_closed_gates, randn(3, 4)),
    case("log_sigmoid_forward", lambda x: torch.ops.aten.log_sigmoid_forward(x)[0], randn(9)),
    case("hardshrink lambd", F.hardshrink, randn(4, 3), lambd=0.3),
    case("softshrink lambd", F.softshrink, randn(4, 3), lambd=0.3),
    case("threshold", F.threshold, randn(9), 0.3, -7.0),
    case("glu", F.glu, randn(3, 8)),
    case("glu of axis 1", F.glu, randn(3, 8, 5), 1),
    *(case(f"{name} of a closed gate", gate, uniform(-1e5, -20, 40)) for name, gate in GATES.items()),
    case("glu of a closed gate", lambda x: F.glu(torch.cat([x, -x.abs()], 0), 0), uniform(-1e5, -20, 40)),
    case("a sigmoid times its infinite input", lambda x: x * x.sigmoid(), tensor([float("inf"), 3.0, -2.0])),
    case("softmax", F.softmax, randn(3, 4, scale=5), -1),
    case("softmax of the first axis", F.softmax, randn(3, 4), 0),
    case(
        "softmax of tensors of two ranks", lambda x, y: [x.softmax(0), y.softmax(0)], randn(5), randn(7, 2, 3)
    ).dynamic({0: {0: "T"}, 1: {0: "S"}}),
    case("softmax of large numbers", F.softmax, randn(3, 4, scale=1e4), 1),
    case("softmax with a mask", lambda x: F.softmax(x.masked_fill(x > 0.5, float("-inf")), 0), randn(9, 4)),
    case("softmax dtype", lambda x: F.softmax(x, 1, dtype=torch.float32), randn(3, 4, dtype=torch.float16)),
    case("softmax of float16", F.softmax, randn(3, 4, dtype=torch.float16), 1),
    case("softmax of float64", F.softmax, randn(3, 4, dtype=torch.float64), 1),
    case("softmax of rank 0", F.softmax, randn(), 0),
    case("_softmax", torch.ops.aten._softmax, randn(3, 4), 1, False),
    case("special_softmax", torch.ops.aten.special_softmax, randn(3, 4), 1),
    case("softmin", F.softmin, randn(3, 4), 1),
    case("softmax dynamic", F.softmax, randn(3, 4), -1).dynamic({0: {0: "B", 1: "T"}}),
    case("log_softmax", F.log_softmax, randn(3, 4, scale=5), -1),
    case("log_softmax of large numbers", F.log_softmax, randn(3, 4, scale=1e4), 1),
    case("log_softmax of float16", F.log_softmax, randn(3, 4, dtype=torch.float16), 1),
    case("_log_softmax", torch.ops.aten._log_softmax, randn(3, 4), 1, False),
    case("special_log_softmax", torch.ops.aten.special_log_softmax, randn(3, 4), 1),
]
