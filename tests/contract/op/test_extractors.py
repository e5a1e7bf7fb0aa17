"""Modules kept whole: user's extractors, subclasses, and recurrent nets by every way in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import ExtractorWarning, UnsupportedOpsError
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Value
from t2n_core.op.custom_extractors import GRUExtractor, LSTMExtractor, ModuleInfoExtractor
from t2n_core.torch_graph.custom_ops.module_calls import MODULE_CALL
from tests.releases import NEWEST

KIND = f"{MODULE_CALL}.ScaledExtractor"


class Scaled(nn.Module):
    """Runs in numpy, which no tracer can follow: x * weight, and the sum of it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        product = torch.from_numpy(x.detach().numpy() * self.weight.detach().numpy())
        return product, product.sum(-1)


class Net(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.out = nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        product, total = self.inner(x)
        return self.out(product), total


@pytest.fixture
def scaled_extractor() -> Iterator[type[ModuleInfoExtractor]]:
    class ScaledExtractor(ModuleInfoExtractor):
        MODULE_CLASS = Scaled

        def declare_outputs(self, module: Scaled, x: torch.Tensor) -> tuple[torch.Tensor, ...]:  # type: ignore[override]
            return torch.empty_like(x), x.new_empty(x.shape[:-1])

        def convert_to_nnef(
            self, g: Emitter, module: Any, inputs: Sequence[Value], params: Mapping[str, Value]
        ) -> Sequence[Value]:
            product = g.mul(inputs[0], params["weight"])
            axis = product.rank - 1
            return [product, g.squeeze(g.sum_reduce(product, axes=[axis]), axes=[axis])]

    yield ScaledExtractor
    ScaledExtractor.unregister()


def test_a_users_extractor_with_dynamic_axes(scaled_extractor: type[ModuleInfoExtractor], tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = Net(Scaled(5)).eval()
    export = ModelExport(net, (torch.randn(2, 7, 5),), dynamic_axes={"x": {0: "B", 1: "T"}})
    kinds = [op.kind for op in export.captured.graph.op_nodes]
    assert kinds.count(KIND) == 1
    for version in ("0.19.15", NEWEST):
        result = export.to(TractNNEF(version), tmp_path / "m.nnef.tgz")
        result.assert_parity("approximate")
    labels = [o.arguments["label"] for o, _ in result.graph.variables()]
    assert "inner.weight" in labels
    assert "forward" not in vars(net.inner)


def test_without_the_extractor_it_is_refused(tmp_path: Path) -> None:
    from t2n_core.errors import T2NError

    with pytest.raises(T2NError):
        ModelExport(Net(Scaled(5)), (torch.randn(2, 5),)).to(TractNNEF(NEWEST), tmp_path / "m.tgz")


def test_the_forward_is_restored_after_a_failure(scaled_extractor: type[ModuleInfoExtractor]) -> None:
    class Fails(Net):
        def forward(self, x: torch.Tensor) -> Any:
            super().forward(x)
            raise ValueError("no")

    net = Fails(Scaled(5))
    with pytest.raises(Exception, match="no"):
        _ = ModelExport(net, (torch.randn(2, 5),)).captured
    assert "forward" not in vars(net.inner)


def test_an_argument_that_the_extractor_does_not_take_is_refused(
    scaled_extractor: type[ModuleInfoExtractor], tmp_path: Path
) -> None:
    class Twice(Scaled):
        def forward(self, x: torch.Tensor, times: int = 1, mask: Any = None) -> Any:
            return super().forward(x * times)

    class Calls(Net):
        def __init__(self, times: int) -> None:
            super().__init__(Twice(5))
            self.times = times

        def forward(self, x: torch.Tensor) -> Any:
            return self.inner(x, times=self.times)

    class TwiceExtractor(ModuleInfoExtractor):
        MODULE_CLASS = Twice

        def declare_outputs(self, module: Any, x: torch.Tensor, **more: Any) -> Any:  # type: ignore[override]
            return x, x.new_empty(x.shape[:-1])  # an argument as it is: only its shape counts

        convert_to_nnef = scaled_extractor.convert_to_nnef

    try:
        ModelExport(Calls(1), (torch.randn(2, 5),)).to(TractNNEF(NEWEST), tmp_path / "m.tar").assert_parity()
        with pytest.raises(UnsupportedOpsError, match="does not take the argument times=2"):
            ModelExport(Calls(2), (torch.randn(2, 5),)).to(TractNNEF(NEWEST), tmp_path / "m.tar")
    finally:
        TwiceExtractor.unregister()


def test_unregistering_leaves_the_extractors_of_others(scaled_extractor: type[ModuleInfoExtractor]) -> None:
    module = Scaled(3)
    scaled_extractor.unregister()
    assert ModuleInfoExtractor.get_by_module(module) is None

    class Other(ModuleInfoExtractor):
        MODULE_CLASS = Scaled

    scaled_extractor.unregister()  # a second time, when the class has another one
    assert type(ModuleInfoExtractor.get_by_module(module)) is Other
    assert type(ModuleInfoExtractor.get_by_kind(f"{MODULE_CALL}.Other")) is Other
    Other.unregister()
    assert ModuleInfoExtractor.get_by_module(module) is None


def test_subclasses_are_matched_to_the_nearest_base() -> None:
    class Mine(nn.LSTM):
        pass

    class Changed(nn.LSTM):
        def forward(self, *args: Any) -> Any:
            return super().forward(*args)

    assert isinstance(ModuleInfoExtractor.get_by_module(Mine(2, 3)), LSTMExtractor)
    assert ModuleInfoExtractor.get_by_module(Changed(2, 3)) is None  # its own forward must be followed
    assert ModuleInfoExtractor.get_by_module(nn.Linear(2, 3)) is None
    assert type(ModuleInfoExtractor.get_by_kind("aten::gru.input")) is GRUExtractor


def test_a_second_extractor_for_one_class_takes_the_place_of_the_first() -> None:
    with pytest.warns(ExtractorWarning, match="Second takes the place of LSTMExtractor"):

        class Second(ModuleInfoExtractor):
            MODULE_CLASS = nn.LSTM

    try:
        assert isinstance(ModuleInfoExtractor.get_by_module(nn.LSTM(2, 3)), Second)
    finally:
        Second.unregister()
    assert isinstance(ModuleInfoExtractor.get_by_module(nn.LSTM(2, 3)), LSTMExtractor)


class Holder(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> Any:
        return self.net(x)


def through(net: nn.Module, way: str) -> Holder:
    """The net as a module, as a subclass of it, or as a subclass whose forward makes the call itself."""
    kind: Any = type(net)
    forwards: dict[str, Any] = {
        "subclass": lambda self, x: kind.forward(self, x),
        "aten": lambda self, x: call(self, x, aten=True),
        "function": lambda self, x: call(self, x, aten=False),
    }
    if way in forwards:
        net.__class__ = type(kind.__name__, (kind,), {"forward": forwards[way]})
    return Holder(net).eval()


def call(net: Any, x: torch.Tensor, aten: bool) -> Any:
    ways = 2 if net.bidirectional else 1
    name = {"LSTM": "lstm", "GRU": "gru", "RNN": f"rnn_{getattr(net, 'nonlinearity', '')}"}[net.mode[:4].split("_")[0]]
    shape = (net.num_layers * ways, x.shape[0 if net.batch_first else 1])
    h = torch.zeros(*shape, net.proj_size or net.hidden_size, dtype=x.dtype)
    state: Any = h
    if name == "lstm":
        state = (h, torch.zeros(*shape, net.hidden_size, dtype=x.dtype))
    function = getattr(torch.ops.aten, name).input if aten else getattr(torch, name)
    results = function(
        x, state, net._flat_weights, net.bias, net.num_layers, net.dropout, False, net.bidirectional, net.batch_first
    )
    return results[0], tuple(results[1:]) if len(results) > 2 else results[1]


@pytest.mark.parametrize("dynamic", [None, {"x": {0: "B", 1: "T"}}], ids=["static", "dynamic"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.LSTM(5, 7, 2, bidirectional=True, batch_first=True),
        lambda: nn.LSTM(5, 7, proj_size=3, batch_first=True, bias=False),
        lambda: nn.GRU(5, 7, bidirectional=True, batch_first=True),
        lambda: nn.RNN(5, 7, 2, batch_first=True, nonlinearity="relu"),
    ],
    ids=["lstm", "lstm-proj", "gru", "rnn"],
)
def test_every_way_in_gives_the_same_bytes(make: Any, dynamic: Any, tmp_path: Path) -> None:
    archives = {}
    for way in ("module", "subclass", "aten", "function"):
        torch.manual_seed(5)
        export = ModelExport(through(make(), way), {"x": torch.randn(4, 6, 5)}, dynamic_axes=dynamic)
        result = export.to(TractNNEF(NEWEST), tmp_path / "m.tar")
        archives[way] = result.archive.read_bytes()
        result.assert_parity("approximate")
    assert len(set(archives.values())) == 1, {way: len(data) for way, data in archives.items()}


@pytest.mark.parametrize("dynamic", [None, {"x": {0: "B"}}], ids=["static", "dynamic"])
def test_a_users_extractor_in_a_trace(
    scaled_extractor: type[ModuleInfoExtractor], tmp_path: Path, dynamic: Any
) -> None:
    torch.manual_seed(0)
    export = ModelExport(Net(Scaled(5)).eval(), (torch.randn(3, 5),), dynamic_axes=dynamic, capture="trace")
    assert [op.kind for op in export.captured.graph.op_nodes].count(KIND) == 1
    for version in ("0.21.19", NEWEST):
        export.to(TractNNEF(version), tmp_path / "m.tar").assert_parity("approximate")


def test_the_origin_of_a_whole_module_is_the_line_that_calls_it() -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.LSTM(3, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.rnn(x)[0]  # type: ignore[no-any-return]

    ops = ModelExport(Recurrent().eval(), torch.randn(5, 2, 3)).captured.graph.op_nodes
    origins = [op.origin.source for op in ops if op.origin]
    assert origins
    assert all("return self.rnn(x)[0]" in origin for origin in origins), origins
