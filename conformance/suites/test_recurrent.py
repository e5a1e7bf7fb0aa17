"""Suite `recurrent`: every recurrent net a user can write, as PyTorch computes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import rnn

from conformance.cases.recurrent import BATCH, HIDDEN, INPUT, TIME, RecurrentCase, all_cases, representative_cases
from conformance.checks.at_one import export_at_one
from t2n_core import ModelExport

pytestmark = pytest.mark.nnef_export(target="tract")
BOTH = pytest.mark.nnef_export(target=["tract", "khronos"])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`case` is any net, `fixed_case` what NNEF 1.0 can hold: float32 and fixed sizes."""
    for argument, fixed in (("case", False), ("fixed_case", True)):
        if argument in metafunc.fixturenames:
            cases = [c for c in all_cases() if not fixed or c.is_fixed]
            if not metafunc.config.getoption("complete"):
                cases = representative_cases(cases)
            metafunc.parametrize(argument, cases, ids=[c.id for c in cases])


@pytest.fixture(autouse=True)
def capture_way(request: pytest.FixtureRequest) -> None:
    """`--capture-way=trace` proves all nets of this suite by way of torch.jit.trace."""
    _Way.capture = request.config.getoption("capture_way")


class _Way:
    capture: Any = "export"


def _export(model: nn.Module, inputs: Any, **options: Any) -> ModelExport:
    return ModelExport(model, inputs, capture=_Way.capture, **options)


@lru_cache(maxsize=2)
def export_of(case: RecurrentCase) -> ModelExport:
    """Captured once for all engines: they follow each other. So for the functions below."""
    model, inputs, dynamic_axes = case.build()
    return _export(model, inputs, dynamic_axes=dynamic_axes, input_names=list(inputs))


def test_recurrent(case: RecurrentCase, nnef_export: Any) -> None:
    nnef_export(export_of(case)).assert_parity("approximate")


@pytest.mark.nnef_export(target="khronos")
def test_recurrent_unrolled(fixed_case: RecurrentCase, nnef_export: Any) -> None:
    nnef_export(export_of(fixed_case)).assert_parity("approximate")


@lru_cache(maxsize=2)
def one_sequence_export(kind: str, hidden: int) -> ModelExport:
    case = RecurrentCase(kind, 2, True, True, True, "none", True, "f32", 0.0, "static")
    torch.manual_seed(case.seed)
    net = case.net() if hidden == HIDDEN else NETS[kind](INPUT, hidden, bidirectional=True, batch_first=True)
    return _export(net.eval(), {"input": torch.randn(1, TIME, INPUT)})


@BOTH
@pytest.mark.parametrize(
    ("kind", "hidden"),
    [*((k, HIDDEN) for k in ("lstm", "lstm_proj", "gru", "rnn_tanh", "rnn_relu")), ("lstm", 64), ("gru", 64)],
)
def test_one_sequence(kind: str, hidden: int, nnef_export: Any) -> None:
    """Check a batch of 1, known at export, for which releases have separate forms."""
    nnef_export(one_sequence_export(kind, hidden)).assert_parity("approximate")


@lru_cache(maxsize=2)
def dynamic_export_at_one(kind: str, state: str) -> ModelExport:
    model, inputs, axes = RecurrentCase(kind, 2, True, True, True, state, True, "f32", 0.0, "both").build()
    return export_at_one(model, inputs, axes, capture=_Way.capture, input_names=list(inputs))


@pytest.mark.parametrize("state", ["none", "given"])
@pytest.mark.parametrize("kind", ["lstm", "lstm_proj", "gru", "rnn_tanh", "rnn_relu"])
def test_dynamic_traced_at_1(kind: str, state: str, nnef_export: Any) -> None:
    """Check the example of one step of one sequence, where both axes are dynamic."""
    nnef_export(dynamic_export_at_one(kind, state)).assert_parity("approximate")


class Different(nn.Module):
    """Nets of one size and of different batches and dtypes, which take different forms."""

    def __init__(self, net: Callable[[int, int], nn.Module]) -> None:
        super().__init__()
        self.one, self.many, self.exact = net(INPUT, HIDDEN), net(INPUT, HIDDEN), net(INPUT, HIDDEN).double()

    def forward(self, one: torch.Tensor, many: torch.Tensor) -> Any:
        return self.one(one), self.many(many), self.exact(many.double())


@lru_cache(maxsize=2)
def different_export(kind: str) -> ModelExport:
    torch.manual_seed(13)
    inputs = {"one": torch.randn(TIME, 1, INPUT), "many": torch.randn(TIME, BATCH, INPUT)}
    return _export(Different({**NETS, "rnn_tanh": nn.RNN}[kind]), inputs)


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn_tanh"])
def test_different_nets(kind: str, nnef_export: Any) -> None:
    nnef_export(different_export(kind)).assert_parity("approximate")


class Cell(nn.Module):
    """One call of a cell, with or without a state."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: torch.Tensor, h: torch.Tensor | None = None, c: torch.Tensor | None = None) -> Any:
        state = (h, c) if c is not None else h
        return self.cell(x, state)


class Loop(Cell):
    """A cell called in a Python loop over a fixed number of steps."""

    def forward(self, x: torch.Tensor) -> Any:  # type: ignore[override]
        state: Any = None
        steps = []
        for step in x.unbind(0):
            state = self.cell(step, state)
            steps.append(state[0] if isinstance(state, tuple) else state)
        return torch.stack(steps), state


CELLS = {
    "lstm": lambda: nn.LSTMCell(INPUT, HIDDEN),
    "gru": lambda: nn.GRUCell(INPUT, HIDDEN),
    "rnn_tanh": lambda: nn.RNNCell(INPUT, HIDDEN),
    "rnn_relu": lambda: nn.RNNCell(INPUT, HIDDEN, nonlinearity="relu", bias=False),
}


@BOTH
@pytest.mark.parametrize("way", ["plain", "state", "single", "loop"])
@pytest.mark.parametrize("kind", list(CELLS))
def test_cell(kind: str, way: str, nnef_export: Any) -> None:
    nnef_export(cell_export(kind, way)).assert_parity("approximate")


@pytest.mark.parametrize("kind", list(CELLS))
def test_cell_dynamic(kind: str, nnef_export: Any) -> None:
    nnef_export(cell_export(kind, "dynamic")).assert_parity("approximate")


@lru_cache(maxsize=2)
def cell_export(kind: str, way: str) -> ModelExport:
    torch.manual_seed(11)
    cell = CELLS[kind]()
    batch = () if way == "single" else (BATCH,)
    if way == "loop":
        return _export(Loop(cell), (torch.randn(TIME, BATCH, INPUT),))
    inputs = {"x": torch.randn(*batch, INPUT)}
    if way != "plain":
        inputs.update({n: torch.randn(*batch, HIDDEN) for n in (("h", "c") if kind == "lstm" else ("h",))})
    axes = {name: {0: "B"} for name in inputs} if way == "dynamic" else None
    return _export(Cell(cell), inputs, dynamic_axes=axes)


class LastStep(nn.Module):
    """What a classifier reads: the last step of a sequence whose length varies."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)[0][:, -1]


class Twice(nn.Module):
    """One module, two calls."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> Any:
        y, state = self.net(x)
        return self.net(x.flip(1), state), y


class Flattened(nn.Module):
    """Steps and sequences on one axis, as a linear layer for all steps wants them."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> Any:
        y, state = self.net(x.transpose(0, 1))
        return y.reshape(-1, y.shape[-1]), state


NETS = {"lstm": nn.LSTM, "gru": nn.GRU}


@lru_cache(maxsize=2)
def reading_export(reader: Callable[[nn.Module], nn.Module], kind: str, dynamic: bool) -> ModelExport:
    torch.manual_seed(12)
    model = reader(NETS[kind](INPUT, HIDDEN, bidirectional=True, batch_first=True))
    axes = {"x": {0: "B", 1: "T"}} if dynamic else None
    return _export(model, {"x": torch.randn(BATCH, TIME, INPUT)}, dynamic_axes=axes)


@pytest.mark.parametrize("kind", list(NETS))
def test_last_step(kind: str, nnef_export: Any) -> None:
    nnef_export(reading_export(LastStep, kind, True)).assert_parity("approximate")


@BOTH
@pytest.mark.parametrize("kind", list(NETS))
def test_two_calls(kind: str, nnef_export: Any) -> None:
    nnef_export(reading_export(Twice, kind, False)).assert_parity("approximate")


@lru_cache(maxsize=2)
def flattened_export(kind: str) -> ModelExport:
    case = RecurrentCase(kind, 2, False, False, True, "none", True, "f32", 0.0, "static")
    torch.manual_seed(case.seed)
    return _export(Flattened(case.net()).eval(), {"x": torch.randn(BATCH, TIME, INPUT)})


@BOTH
@pytest.mark.parametrize("kind", ["lstm", "lstm_proj", "gru", "rnn_tanh", "rnn_relu"])
def test_flattened(kind: str, nnef_export: Any) -> None:
    nnef_export(flattened_export(kind)).assert_parity("approximate")


class Packed(nn.Module):
    """Sequences of different lengths, known at export."""

    def __init__(self, net: nn.Module, lengths: list[int], total: int | None) -> None:
        super().__init__()
        self.net, self.lengths, self.total = net, lengths, total
        self.first = bool(net.batch_first)

    def forward(self, x: torch.Tensor) -> Any:
        in_order = self.lengths == sorted(self.lengths, reverse=True)
        packed = rnn.pack_padded_sequence(x, self.lengths, batch_first=self.first, enforce_sorted=in_order)
        y, state = self.net(packed)
        return rnn.pad_packed_sequence(y, batch_first=self.first, total_length=self.total), state


@lru_cache(maxsize=2)
def packed_export(kind: str, lengths: tuple[int, ...], first: bool, total: int | None) -> ModelExport:
    case = RecurrentCase(kind, 2, True, first, True, "none", True, "f32", 0.0, "static")
    torch.manual_seed(case.seed)
    shape = (BATCH, TIME, INPUT) if first else (TIME, BATCH, INPUT)
    return _export(Packed(case.net(), list(lengths), total).eval(), {"x": torch.randn(shape)})


@BOTH
@pytest.mark.parametrize("total", [None, 8], ids=["longest", "total"])
@pytest.mark.parametrize("first", [False, True], ids=["tf", "bf"])
@pytest.mark.parametrize("lengths", [[6, 4, 3, 1], [3, 6, 1, 4], [6, 6, 6, 6]], ids=["sorted", "unsorted", "equal"])
@pytest.mark.parametrize("kind", ["lstm", "lstm_proj", "gru", "rnn_tanh", "rnn_relu"])
def test_packed(kind: str, lengths: list[int], first: bool, total: int | None, nnef_export: Any) -> None:
    nnef_export(packed_export(kind, tuple(lengths), first, total)).assert_parity("approximate")


class PackedByInput(nn.Module):
    """Sequences whose lengths are an input."""

    def __init__(self, net: nn.Module, in_order: bool) -> None:
        super().__init__()
        self.net, self.in_order = net, in_order
        self.first = bool(net.batch_first)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Any:
        packed = rnn.pack_padded_sequence(x, lengths, batch_first=self.first, enforce_sorted=self.in_order)
        y, state = self.net(packed)
        return rnn.pad_packed_sequence(y, batch_first=self.first, total_length=x.shape[1 if self.first else 0]), state


@lru_cache(maxsize=2)
def packed_by_input_export(kind: str, in_order: bool, first: bool, dynamic: bool) -> ModelExport:
    case = RecurrentCase(kind, 2, True, first, True, "none", True, "f32", 0.0, "static")
    torch.manual_seed(case.seed)
    shape = (BATCH, TIME, INPUT) if first else (TIME, BATCH, INPUT)
    lengths = torch.arange(BATCH, 0, -1) if in_order else (torch.arange(BATCH) * 2 + 1) % TIME + 1
    axes = {"x": {int(first): "T", int(not first): "B"}, "lengths": {0: "B"}} if dynamic else None
    model = PackedByInput(case.net(), in_order).eval()
    return _export(model, {"x": torch.randn(shape), "lengths": lengths}, dynamic_axes=axes)


@pytest.mark.parametrize("axes", ["static", "both"])
@pytest.mark.parametrize("first", [False, True], ids=["tf", "bf"])
@pytest.mark.parametrize("in_order", [True, False], ids=["sorted", "unsorted"])
@pytest.mark.parametrize("kind", ["lstm", "lstm_proj", "gru", "rnn_tanh", "rnn_relu"])
def test_packed_by_input(kind: str, in_order: bool, first: bool, axes: str, nnef_export: Any) -> None:
    nnef_export(packed_by_input_export(kind, in_order, first, axes == "both")).assert_parity("approximate")
