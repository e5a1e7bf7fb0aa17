"""The check notices each decision on sizes that a fault in the exporter drops, wherever the fault is.

The numbers of the decisions are nowhere in the models' code, so that only runs that record comparisons lead to them. A
selection runs always, all of them with `pytest -m nightly tests/contract/check/test_dropped_decisions.py`.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from t2n_core import ModelExport, TractNNEF
from t2n_core.torch_graph.capture import reading
from t2n_core.torch_graph.constraints import narrowing
from t2n_core.torch_graph.constraints.guards import Decisions
from tests.releases import NEWEST


class Template(nn.Module):
    """A net of `x` [2, S, 4] and `y` [2, T, 4] that computes something else where its sizes are so."""

    def __init__(self, decides: Callable[[int, int], bool]) -> None:
        super().__init__()
        self.decides = decides

    def weighted(self, n: int, m: int, result: Tensor) -> Tensor:
        return result * 2 if self.decides(n, m) else result + 1

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.weighted(x.shape[1], y.shape[1], x.mean(1) + y.mean(1))


class Strided(Template):
    def __init__(self, decides: Callable[[int, int], bool]) -> None:
        super().__init__(decides)
        self.conv = nn.Conv1d(4, 4, 3, stride=2, padding=1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        z = self.conv(x.mT)
        return self.weighted(z.shape[2], y.size(1), z.mean(2) + y.mean(1))


class Rows(Template):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        rows = x.reshape(-1, 4)
        return self.weighted(len(rows), y.shape[-2], rows.mean(0) + y.mean(1))


class Joined(Template):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        z = torch.cat([x, y, x], 1)
        return self.weighted(z.shape[1], y.shape[1], z.mean(1))


class Attending(Template):
    def __init__(self, decides: Callable[[int, int], bool]) -> None:
        super().__init__(decides)
        self.key = nn.Linear(4, 4)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        scores = (x @ self.key(y).mT).softmax(-1)
        return self.weighted(*scores.shape[1:], (scores @ y).mean(1))


class Recurrent(Template):
    def __init__(self, decides: Callable[[int, int], bool]) -> None:
        super().__init__(decides)
        self.net = nn.GRU(4, 4, batch_first=True)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        states = self.net(x)[0]
        return self.weighted(states.shape[1], y.shape[1], states.mean(1) + y.mean(1))


class Padded(Template):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        z = functional.pad(x, (0, 0, 1, 2))
        return self.weighted(z.shape[1], y.shape[1], z.mean(1) + y.mean(1))


class Helper:
    """An object that is no module, and decides for one."""

    def __init__(self, decides: Callable[[int, int], bool]) -> None:
        self.decides = decides

    def __call__(self, shapes: Sequence[torch.Size]) -> bool:
        (_, n, _), (_, m, _) = shapes
        return self.decides(n, m)


class Helped(Template):
    def __init__(self, decides: Callable[[int, int], bool]) -> None:
        super().__init__(decides)
        self.helper = Helper(decides)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        result = x.mean(1) - y.mean(1)
        return result * 2 if self.helper([x.shape, y.shape]) else result + 1


TEMPLATES = (Template, Strided, Rows, Joined, Attending, Recurrent, Padded, Helped)
DECISIONS = (
    *("n > 900", "m >= 640", "n == 612", "n % 111 == 33", "n * m == 1764", "n + m == 700", "n - m == 300"),
    *(
        "n ** 2 == 44100",
        "n // 2 > 301",
        "math.ceil(n * 0.37) == 77",
        "int(m * 0.5) == 186",
        "n % 9 == m % 9 and n > 194",
    ),
    *("m in (2, 613)", "max(n, m) > 531", "n > 77 and m > 99", "not n < 10 * m"),
)
PAIRS = list(itertools.product(TEMPLATES, DECISIONS))
FAULTS = ("recorded", "named", "narrowed", "proven")
SELECTED = 17
"""One of so many pairs runs always; it has no divisor in common with the numbers of templates, decisions and faults."""


def function_of(text: str) -> Callable[[int, int], bool]:
    """Return a function of two sizes whose code has none of the numbers: they are in a list beside it."""
    numbers: list[Any] = []
    words = text.replace("(", "( ").replace(")", " )").replace(",", " ,").split()
    for index, word in enumerate(words):
        if word[0].isdigit():
            numbers.append(float(word) if "." in word else int(word))
            words[index] = f"numbers[{'+'.join(['one'] * (len(numbers) - 1)) or 'zero'}]"
    scope: dict[str, Any] = {"numbers": tuple(numbers), "math": math, "one": 1, "zero": 0, "__name__": "decisions"}
    exec(compile(f"def decides(n, m):\n    return bool({' '.join(words)})", "<a decision>", "exec"), scope)
    decides: Callable[[int, int], bool] = scope["decides"]
    return decides


def plant(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the exporter lose what is decided in the lines of the decisions."""

    def is_lost(decision: Any) -> bool:
        return "decides(" in decision.origin.source

    if fault == "recorded":
        plain = Decisions.all
        monkeypatch.setattr(
            Decisions, "all", lambda self: [decision for decision in plain(self) if not is_lost(decision)]
        )
    elif fault == "named":
        with_symbols = reading.with_user_symbols
        monkeypatch.setattr(
            reading,
            "with_user_symbols",
            lambda *args: [decision for decision in with_symbols(*args) if not is_lost(decision)],
        )
    elif fault == "narrowed":
        narrowed = reading.narrow_range
        monkeypatch.setattr(
            reading,
            "narrow_range",
            lambda sizes, all_of, *rest: narrowed(sizes, [d for d in all_of if not is_lost(d)], *rest),
        )
    else:
        alike, plain_narrowed = narrowing._may_be_alike, reading.narrow_range
        monkeypatch.setattr(
            narrowing, "_may_be_alike", lambda decision, *rest: is_lost(decision) or alike(decision, *rest)
        )
        monkeypatch.setattr(reading, "narrow_range", lambda *args: plain_narrowed(*args[:3], lambda *region: True))


def status_of(template: type[Template], text: str, fault: str, folder: Path) -> str:
    with torch.random.fork_rng(), pytest.MonkeyPatch.context() as monkeypatch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(3)
        plant(fault, monkeypatch)
        example = {"x": torch.randn(2, 5, 4), "y": torch.randn(2, 7, 4)}
        export = ModelExport(template(function_of(text)).eval(), example, dynamic_axes={"x": {1: "S"}, "y": {1: "T"}})
        return str(export.to(TractNNEF(NEWEST), folder / "model.nnef.tar").check_parity().status)


@pytest.mark.parametrize(
    ("template", "text", "fault"),
    [
        pytest.param(
            *pair,
            FAULTS[index % len(FAULTS)],
            id=f"{pair[0].__name__}-{pair[1]}",
            marks=[] if index % SELECTED == 0 else [pytest.mark.nightly],
        )
        for index, pair in enumerate(PAIRS)
    ],
)
def test_a_dropped_decision_is_noticed(template: type[Template], text: str, fault: str, tmp_path: Path) -> None:
    assert status_of(template, text, fault, tmp_path) == "mismatch"
