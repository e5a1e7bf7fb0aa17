"""A module, an exported program, TorchScript and a trace of the same net give the same archive, except for names."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import CaptureError, FrozenDecisionWarning, InputError
from t2n_core.nnef.graph import Graph, Value
from tests.nets import Attention
from tests.releases import NEWEST

TARGET = TractNNEF(NEWEST, check_io=False)


def outline(graph: Graph) -> list[Any]:
    """The statements with their tensors numbered in order, weights by label and content."""
    numbers: dict[int, Any] = {id(v): f"input {i}" for i, v in enumerate(graph.inputs)}
    lines: list[Any] = []
    for operation in graph.operations:
        if operation.name == "external":
            continue
        arguments = {k: _plain(a, numbers) for k, a in operation.arguments.items()}
        for value in operation.outputs:
            numbers[id(value)] = _weight(value) or len(numbers)
        lines.append((operation.name, arguments, [(str(v.dtype), str(v.shape)) for v in operation.outputs]))
    weights = [line for line in lines if line[0] == "variable"]
    return [
        sorted((line for line in lines if line[0] == "variable"), key=repr),
        [line for line in lines if line not in weights],
        [numbers[id(v)] for v in graph.outputs],
    ]


def _weight(value: Value) -> Any:
    if value.weight is None:
        return None
    return hashlib.sha256(b"".join(value.weight.chunks())).hexdigest()


def _plain(argument: Any, numbers: dict[int, Any]) -> Any:
    if isinstance(argument, Value):
        return numbers.get(id(argument)) or _weight(argument)
    if isinstance(argument, list | tuple):
        return [_plain(a, numbers) for a in argument]
    return str(argument)


class Branching(nn.Module):
    """Decides by its settings, loops over its layers, counts in Python."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 6), nn.Linear(6, 6)])
        self.doubled = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for index, layer in enumerate(self.layers):
            x = functional.gelu(layer(x)) + float(index)
        if self.doubled:
            x = x * 2
        return x[:, : x.shape[1] // 2]


class Written(nn.Module):
    """Writes in place."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * self.scale
        y[:, 0] = y[:, 0] + 1
        return functional.relu_(y)


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase], **more: Any) -> None:
        super().__init__()
        self.net = kind(4, 5, batch_first=True, **more)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)[0]


class Pair(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.cat([x, y], 1).softmax(1), x.sum(1)


NETS: dict[str, tuple[Callable[[], nn.Module], tuple[tuple[int, ...], ...], dict[str, dict[int, str]]]] = {
    "linear": (lambda: nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)), ((2, 6),), {"input": {0: "B"}}),
    "conv1d": (
        lambda: nn.Sequential(nn.Conv1d(3, 4, 5, 2, 2), nn.BatchNorm1d(4), nn.SiLU()),
        ((2, 3, 11),),
        {"input": {2: "T"}},
    ),
    "conv2d": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3, groups=1), nn.MaxPool2d(2), nn.Flatten()),
        ((2, 3, 9, 8),),
        {"input": {0: "B"}},
    ),
    "transposed": (lambda: nn.ConvTranspose1d(3, 4, 3, stride=2, output_padding=1), ((2, 3, 7),), {}),
    "norms": (lambda: nn.Sequential(nn.LayerNorm(6), nn.Dropout(), nn.GroupNorm(2, 4)), ((3, 4, 6),), {}),
    "pool1d": (lambda: nn.Sequential(nn.MaxPool1d(3, 2), nn.AvgPool1d(2)), ((2, 3, 17),), {}),
    "pool1d of any length": (lambda: nn.MaxPool1d(3, 2), ((2, 3, 17),), {"input": {2: "T"}}),
    "upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), ((2, 3, 4, 5),), {}),
    "branching": (Branching, ((3, 6),), {"x": {0: "B"}}),
    "attention": (Attention, ((2, 5, 8),), {"x": {0: "B", 1: "T"}}),
    "written": (Written, ((2, 3),), {"x": {0: "B"}}),
    "pair": (Pair, ((2, 3), (2, 4)), {"x": {0: "B"}, "y": {0: "B"}}),
    "lstm": (lambda: Recurrent(nn.LSTM, bidirectional=True), ((2, 7, 4),), {"x": {1: "T"}}),
    "gru": (lambda: Recurrent(nn.GRU, num_layers=2), ((2, 7, 4),), {}),
}


def _net(name: str) -> tuple[nn.Module, tuple[torch.Tensor, ...], Any]:
    make, shapes, axes = NETS[name]
    torch.manual_seed(sum(map(ord, name)))
    return make().eval(), tuple(torch.randn(shape) for shape in shapes), axes or None


@cache
def _direct(name: str, *, free: bool = True) -> ModelExport:
    """The export of the module itself, which all other ways are compared with; captured once."""
    model, args, axes = _net(name)
    return ModelExport(model, args, dynamic_axes=axes if free else None)


@cache
def _outline_of_direct(name: str, *, free: bool = True) -> list[Any]:
    return outline(_direct(name, free=free).lower(TARGET))


def _exported(model: nn.Module, args: tuple[torch.Tensor, ...], axes: Any, names: tuple[str, ...]) -> Any:
    free = tuple(dict.fromkeys((axes or {}).get(n, {}), torch.export.Dim.DYNAMIC) or None for n in names)
    return torch.export.export(model, args, dynamic_shapes=free if any(free) else None)


WAYS = ["program", "script", "traced script", "trace"]
SAVED = [(way, name) for way in ("saved program", "saved script") for name in ("conv1d", "attention", "pair", "gru")]


@pytest.mark.parametrize(("way", "name"), [*((way, name) for way in WAYS for name in NETS), *SAVED])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_way_in_gives_the_same_archive(way: str, name: str, tmp_path: Path) -> None:
    model, args, axes = _net(name)
    # torch.export itself fixes the axis of these, which our capture keeps from happening
    free = not ("program" in way and name in ("lstm", "pool1d of any length"))
    axes = axes if free else None
    direct = _direct(name, free=free)
    source: Any = model
    if "program" in way:
        source = _exported(model, args, axes, direct.inputs.names)
    elif "script" in way:
        source = torch.jit.trace(model, args) if "traced" in way else torch.jit.script(model)
    if way == "saved program":
        torch.export.save(source, tmp_path / "net.pt2")
        source = tmp_path / "net.pt2"
    elif way == "saved script":
        torch.jit.save(source, tmp_path / "net.pt")
        source = str(tmp_path / "net.pt")
    other = ModelExport(
        source,
        args,
        input_names=direct.inputs.names,
        dynamic_axes=axes,
        capture="trace" if way == "trace" else "export",
    )
    assert outline(other.lower(TARGET)) == _outline_of_direct(name, free=free)
    for ours, theirs in zip(other.samples[0].expected, direct.samples[0].expected, strict=True):
        torch.testing.assert_close(torch.from_numpy(ours), torch.from_numpy(theirs))


@pytest.mark.parametrize("way", ["module", "script", "trace"])
@pytest.mark.parametrize("name", ["linear", "conv1d", "branching", "attention", "written", "pair", "lstm"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_way_in_gives_the_same_archive_from_sizes_of_1(way: str, name: str) -> None:
    model, args, axes = _net(name)
    names = _direct(name).inputs.names
    lone = []
    for input_name, tensor in zip(names, args, strict=True):
        for axis in axes[input_name]:
            tensor = tensor.narrow(axis, 0, 1)
        lone.append(tensor.contiguous())
    source: Any = torch.jit.script(model) if way == "script" else model
    capture: Any = "trace" if way == "trace" else "export"
    other = ModelExport(source, tuple(lone), input_names=names, dynamic_axes=axes, capture=capture)
    assert outline(other.lower(TARGET)) == _outline_of_direct(name)
    assert set(other.captured.symbols.values()) == {1}
    assert [tuple(array.shape) for array in other.samples[0].inputs] == [tuple(tensor.shape) for tensor in lone]


class Choosing(nn.Module):
    """Decides on the numbers of its input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x * 2
        return -x


def test_a_decision_on_numbers_is_frozen_with_a_warning_that_names_its_line() -> None:
    args = (torch.rand(2, 3),)
    with pytest.raises(CaptureError, match='capture="trace" freezes'):
        ModelExport(Choosing(), args).lower(TARGET)
    with pytest.warns(FrozenDecisionWarning, match=r"test_ways_in.py:\d+: `if x.sum\(\) > 0:`"):
        graph = ModelExport(Choosing(), args, capture="trace").lower(TARGET)
    assert [op.name for op in graph.operations] == ["external", "mul"]


def test_an_unknown_way_of_capture_is_refused() -> None:
    with pytest.raises(InputError, match="not one of export, trace"):
        ModelExport(nn.ReLU(), torch.randn(2), capture="compile")  # type: ignore[arg-type]


@dataclasses.dataclass
class Batch:
    frames: torch.Tensor
    weights: dict[str, torch.Tensor]


@dataclasses.dataclass
class Scores:
    best: torch.Tensor
    all_of_them: tuple[torch.Tensor, torch.Tensor]


class Nested(nn.Module):
    """Dataclasses, dicts and tuples on both sides, an optional input, a number."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(4, 3)

    def forward(self, batch: Batch, bias: torch.Tensor | None = None, *, scale: float = 1.0) -> Scores:
        y = self.out(batch.frames) * batch.weights["w"] * scale
        if bias is not None:
            y = y + bias
        return Scores(y.amax(-1), (y, y.exp()))

    def encode(self, frames: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"hidden": self.out(frames), "norm": frames.norm(dim=-1)}


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_nested_arguments_and_results(capture: Any) -> None:
    batch = Batch(torch.randn(2, 4), {"w": torch.rand(3)})
    export = ModelExport(Nested().eval(), (batch,), {"bias": None, "scale": 2.0}, capture=capture)
    graph = export.lower(TARGET)
    assert [v.name for v in graph.inputs] == ["batch_frames", "batch_weights_w"]
    assert [v.name for v in graph.outputs] == ["best", "all_of_them_0", "all_of_them_1"]
    export = ModelExport(Nested().eval(), (batch, torch.randn(3)), capture=capture)
    assert [v.name for v in export.lower(TARGET).inputs] == ["batch_frames", "batch_weights_w", "bias"]


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_any_method(capture: Any) -> None:
    export = ModelExport(
        Nested().eval(), torch.randn(2, 4), dynamic_axes={"frames": {0: "B"}}, fn_name="encode", capture=capture
    )
    graph = export.lower(TARGET)
    assert [v.name for v in graph.outputs] == ["hidden", "norm"]
    assert {v.label for v in export.captured.graph.weights} == {"out.weight", "out.bias"}
    assert len(export.samples[0].expected) == 2
    with pytest.raises(InputError, match="no method `decode`"):
        ModelExport(Nested(), torch.randn(2, 4), fn_name="decode")


def test_an_exported_program_brings_inputs_and_free_axes() -> None:
    free = {"x": {0: torch.export.Dim.DYNAMIC}}
    program = torch.export.export(Branching().eval(), (torch.randn(3, 6),), dynamic_shapes=free)
    export = ModelExport(program)
    assert str(export.lower(TARGET).inputs[0].shape) == "(x_dim0, 6)"
    assert ModelExport(program, dynamic_axes={"x": {0: "N"}}).captured.symbols == {"N": 3}
    with pytest.raises(CaptureError, match="this model fixes it to 6"):
        _ = ModelExport(program, dynamic_axes={"x": {1: "T"}}).captured


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    torch.save({"w": torch.randn(2)}, tmp_path / "weights.pt")
    with pytest.raises(InputError, match="holds neither an exported program nor TorchScript"):
        ModelExport(tmp_path / "weights.pt", torch.randn(2))
    with pytest.raises(InputError, match="there is no file"):
        ModelExport(tmp_path / "missing.pt2")
    with pytest.raises(InputError, match="needs example inputs"):
        ModelExport(nn.ReLU())


class Looping(nn.Module):
    """Control flow that TorchScript keeps: a loop over a list, conditions on sizes and on an optional."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> list[torch.Tensor]:
        totals: list[torch.Tensor] = []
        total = torch.zeros(x.shape[0])
        for step in range(x.size(1)):
            total = total + x[:, step] * (step + 1)
            if step % 2 == 0:
                totals.append(total)
        if mask is not None:
            totals[0] = totals[0] * mask
        while len(totals) > 2:
            totals = totals[1:]
        return totals


def test_control_flow_of_a_script_is_followed() -> None:
    script = torch.jit.script(Looping())
    export = ModelExport(script, torch.randn(2, 6), dynamic_axes={"x": {0: "B"}})
    direct = ModelExport(Looping(), torch.randn(2, 6), dynamic_axes={"x": {0: "B"}})
    assert outline(export.lower(TARGET)) == outline(direct.lower(TARGET))
    assert "test_ways_in.py" in str(export.captured.graph.op_nodes[-1])


class Packed(nn.Module):
    """Sequences of known lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.GRU(4, 5, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 7, 2]), True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(self.net(packed)[0], batch_first=True)[0]


def test_packed_sequences_come_through_a_trace() -> None:
    torch.manual_seed(5)
    model, args = Packed().eval(), (torch.randn(3, 7, 4),)
    assert outline(ModelExport(model, args, capture="trace").lower(TARGET)) == outline(
        ModelExport(model, args).lower(TARGET)
    )
