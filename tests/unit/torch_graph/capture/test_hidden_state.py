"""State in Python objects of a model: what later calls depend on is refused, everything else is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core.torch_graph.capture.hidden_state import refusal_of_hidden_state, stores_of
from t2n_core.torch_graph.frontend.inputs import bind_inputs
from t2n_core.torch_graph.frontend.sources import source_of


class Keeps(nn.Module):
    """A net with one attribute, and a buffer."""

    def __init__(self, state: Any = None) -> None:
        super().__init__()
        self.kept = state
        self.register_buffer("before", torch.zeros(1, 3))


class Counter(Keeps):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kept += 1
        return x * self.kept


class Cached(Keeps):
    def forward(self, x: torch.Tensor) -> Any:
        last = self.kept.get("last", 0)
        self.kept["last"] = x
        return x + last


class Window(Keeps):
    def forward(self, x: torch.Tensor) -> Any:
        self.kept.append(x)
        return sum(self.kept[-3:])


class Attribute(Keeps):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + self.kept
        self.kept = x[:, :3]
        return y


class Buffer(Keeps):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + self.before
        self.before = x + 0
        return y


class First(Keeps):
    """Keeps its first input, which the same input twice does not show."""

    def forward(self, x: torch.Tensor) -> Any:
        if self.kept is None:
            self.kept = x
        return x + self.kept


class WrittenInto(Keeps):
    def forward(self, x: torch.Tensor) -> Any:
        y = x + self.kept
        self.kept[:] = x
        return y


class Table(Keeps):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = x.shape[1]
        if size not in self.kept:
            self.kept[size] = torch.arange(size)
        return x + self.kept[size]


class Shown(Keeps):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kept = x.softmax(1)
        return x * self.kept


class Random(Keeps):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kept = torch.rand(3)
        return x + self.kept


class WritesIntoBuffer(Keeps):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kept = x.softmax(1)
        self.before.data.add_(1)
        return x + self.before


class Inside(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: torch.Tensor) -> Any:
        return self.part(x) * 2


STATE: dict[str, tuple[Callable[[], nn.Module], str, str]] = {
    "a counter": (lambda: Counter(0), "kept", "self.kept += 1"),
    "a dict": (lambda: Cached({}), "kept", 'self.kept["last"] = x'),
    "a list": (lambda: Window([]), "kept", "self.kept.append(x)"),
    "an attribute": (lambda: Attribute(torch.zeros(1, 3)), "kept", "self.kept = x[:, :3]"),
    "a buffer": (Buffer, "before", "self.before = x + 0"),
    "the first input": (First, "kept", "self.kept = x"),
    "a tensor": (lambda: WrittenInto(torch.zeros(1, 3)), "kept", "self.kept[:] = x"),
    "a part": (lambda: Inside(Counter(0)), "kept", "self.kept += 1"),
}
NONE: dict[str, Callable[[], nn.Module]] = {
    "a table": lambda: Table({}),
    "a value to look at": Shown,
    "random numbers": Random,
    "a buffer written in place": WritesIntoBuffer,  # the export itself refuses it
    "layers": lambda: nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)),
}


def refusal(model: nn.Module) -> Any:
    torch.manual_seed(0)
    source = source_of(model.eval())
    return refusal_of_hidden_state(source, bind_inputs(source, torch.randn(1, 3)))


@pytest.mark.parametrize("name", STATE)
def test_what_the_next_call_depends_on_is_refused_by_name_and_line(name: str) -> None:
    make, attribute, line = STATE[name]
    error = refusal(make())
    assert error is not None
    assert f"`{attribute}` of " in error.message
    assert f"test_hidden_state.py:{_line_of(line)}: `{line}`" in error.message
    assert "state=" in error.hint


@pytest.mark.parametrize("name", NONE)
def test_what_changes_no_later_call_is_no_state(name: str) -> None:
    assert refusal(NONE[name]()) is None


@pytest.mark.parametrize("name", [*STATE, "a buffer written in place"])
def test_the_model_stays_as_it_was(name: str) -> None:
    model = STATE[name][0]() if name in STATE else NONE[name]()
    part = model.part if isinstance(model, Inside) else model
    original, elements = part.kept, [b.clone() for b in part.buffers()]
    snapshot = original.clone() if isinstance(original, torch.Tensor) else original
    refusal(model)
    assert part.kept is original
    assert torch.equal(original, snapshot) if isinstance(snapshot, torch.Tensor) else not original, (
        "its contents have changed"
    )
    assert all(map(torch.equal, part.buffers(), elements))


def test_a_method_that_a_class_replaces_leads_to_no_copy_of_weights() -> None:
    class Replaced(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1000, 1000))

        def method(self, x: torch.Tensor) -> torch.Tensor:
            return x

        def prepare(self) -> None:
            self.method = self.forward  # type: ignore[method-assign]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.method(x) * self.weight[0, :3]

    model = Replaced()
    with torch.profiler.profile(profile_memory=True) as profile:
        assert refusal(model) is None
    assert max(event.self_cpu_memory_usage for event in profile.events()) < 100_000


def test_stores_are_found_in_every_form() -> None:
    class Writes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.only_here = 1

        def forward(this, x: torch.Tensor) -> torch.Tensor:  # noqa: N805
            this.plain, (this.second, [this.third]) = 1, (2, [3])
            this.deep[0].more["key"] += 1
            this.items.extend([1])
            del this.gone
            local = this
            local.not_seen = x.mean()
            return x

    assert set(stores_of(Writes)) == {"plain", "deep", "items", "gone"} | {"second", "third"}
    assert stores_of(nn.BatchNorm1d) == {}


def _line_of(text: str) -> int:
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if line.strip() == text)
