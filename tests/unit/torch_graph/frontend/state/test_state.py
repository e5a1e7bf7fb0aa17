"""State arguments: their tensors by name, what a call does to them, and what cannot be state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core.errors import InputError
from t2n_core.torch_graph.constraints.declared_axes import SizeFrom
from t2n_core.torch_graph.constraints.state_axes import with_state_axes
from t2n_core.torch_graph.frontend.inputs import bind_inputs
from t2n_core.torch_graph.frontend.sources import Source, source_of, with_state
from t2n_core.torch_graph.frontend.state.names import state_name


class Layer:
    """What one layer keeps: rows that it has seen."""

    def __init__(self, keys: torch.Tensor) -> None:
        self.keys = keys
        self.label = "layer"


class Rows:
    """A cache of a class that PyTorch does not know."""

    def __init__(self, *keys: torch.Tensor) -> None:
        self.layers = [Layer(one) for one in keys]


class Reader(nn.Module):
    """Adds rows to its cache in place, and returns their sum alone."""

    def forward(self, x: torch.Tensor, past_key_values: Rows, scale: float = 1.0) -> torch.Tensor:
        for layer in past_key_values.layers:
            layer.keys = torch.cat([layer.keys, x * scale], dim=1)
        return sum((layer.keys.sum(dim=1) for layer in past_key_values.layers), torch.zeros(()))


class Recurrent(nn.Module):
    """Returns its next state beside the output."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.LSTM(3, 4, batch_first=True)

    def forward(self, x: torch.Tensor, hx: Any) -> Any:
        return self.net(x, hx)


def rows(*lengths: int) -> Rows:
    torch.manual_seed(0)
    return Rows(*(torch.randn(2, length, 3) for length in lengths))


def stateful(model: nn.Module, args: Any, option: Any) -> Source:
    return with_state(source_of(model), args, {}, option)


def test_a_cache_that_is_changed_in_place_is_inputs_and_outputs() -> None:
    x, cache = torch.randn(2, 4, 3), rows(5, 5)
    source = stateful(Reader(), (x, cache), "past_key_values")
    inputs = bind_inputs(source, (x, cache))
    assert inputs.names == ("x", "in_cache_key_0", "in_cache_key_1")
    found = source.run(*inputs.arguments_with(inputs.tensors))
    assert list(found) == ["output", "out_cache_key_0", "out_cache_key_1"]
    expected = [torch.cat([layer.keys, x], dim=1) for layer in cache.layers]
    assert torch.equal(found["out_cache_key_0"], expected[0])
    assert torch.equal(found["out_cache_key_1"], expected[1])
    assert torch.equal(found["output"], expected[0].sum(1) + expected[1].sum(1))
    assert [layer.keys.shape[1] for layer in cache.layers] == [5, 5], "the user's cache has changed"


def test_the_numbers_of_a_call_are_in_its_objects_and_not_those_of_the_example() -> None:
    x, cache = torch.randn(2, 4, 3), rows(5)
    source = stateful(Reader(), (x, cache), "past_key_values")
    inputs = bind_inputs(source, (x, cache))
    args, kwargs = inputs.arguments_with([x, torch.zeros(2, 7, 3)])
    assert torch.allclose(source.run(args, kwargs)["output"], x.sum(1))


def test_axes_that_grow_are_found_and_begin_at_nothing() -> None:
    source = stateful(Reader(), (torch.randn(2, 4, 3), rows(5, 6, 5)), "past_key_values")
    assert source.state is not None
    assert [one.growing for one in source.state.tensors] == [(1,)] * 3
    assert with_state_axes({"past_key_values": {0: "B"}, "x": [1]}, source.state) == {
        "in_cache_key_0": {0: "B", 1: SizeFrom("P", 0)},
        "in_cache_key_1": {0: "B", 1: SizeFrom("P1", 0)},
        "in_cache_key_2": {0: "B", 1: SizeFrom("P", 0)},
        "x": {1: "x_dim1"},
    }


def test_declared_sizes_of_axes_that_grow_are_kept() -> None:
    source = stateful(Reader(), (torch.randn(2, 4, 3), rows(5)), "past_key_values")
    assert with_state_axes({"in_cache_key_0": {-2: "L"}}, source.state) == {"in_cache_key_0": {-2: "L"}}


def test_a_next_state_in_the_result_is_named_by_its_place() -> None:
    x, hx = torch.randn(2, 4, 3), (torch.zeros(1, 2, 4), torch.zeros(1, 2, 4))
    source = stateful(Recurrent(), (x, hx), {"hx": 1})
    inputs = bind_inputs(source, (x, hx))
    assert inputs.names == ("x", "in_hx_0", "in_hx_1")
    assert list(source.run(*inputs.arguments_with(inputs.tensors))) == ["output", "out_hx_0", "out_hx_1"]
    assert source.state is not None
    assert not any(one.growing for one in source.state.tensors)


def test_arguments_stay_as_they_were_passed() -> None:
    class Optional(nn.Module):
        def forward(self, x: Any = None, mask: Any = None, cache: Any = None, scale: float = 1.0) -> Any:
            assert mask is None
            return {"y": (x + cache[0]) * scale, "cache": (x,)}

    x, cache = torch.randn(3), (torch.zeros(3),)
    for args, kwargs in [((), {"x": x, "cache": cache, "scale": 2.0}), ((x, None, cache, 2.0), {})]:
        source = with_state(source_of(Optional()), args, kwargs, "cache")
        inputs = bind_inputs(source, args, kwargs)
        assert inputs.names == ("x", "in_cache_0")
        assert torch.equal(source.run(*inputs.arguments_with(inputs.tensors))["y"], x * 2.0)


def test_one_tensor_in_two_places_is_two_inputs() -> None:
    zeros = torch.zeros(1, 2, 4)
    source = stateful(Recurrent(), (torch.randn(2, 4, 3), (zeros, zeros)), {"hx": 1})
    assert bind_inputs(source, (torch.randn(2, 4, 3), (zeros, zeros))).names == ("x", "in_hx_0", "in_hx_1")


def test_what_a_call_leaves_as_it_is_has_no_output() -> None:
    @dataclass
    class Both:
        own: torch.Tensor
        encoded: torch.Tensor

    class Decoder(nn.Module):
        def forward(self, x: torch.Tensor, cache: Both) -> torch.Tensor:
            cache.own = torch.cat([cache.own, x])
            return cache.own.sum() + cache.encoded.sum()

    x, cache = torch.randn(2), Both(torch.randn(3), torch.randn(4))
    source = stateful(Decoder(), (x, cache), ["cache"])
    inputs = bind_inputs(source, (x, cache))
    assert inputs.names == ("x", "in_cache_own", "in_cache_encoded")
    assert list(source.run(*inputs.arguments_with(inputs.tensors))) == ["output", "out_cache_own"]


def test_a_tensor_that_is_written_into_is_not_kept() -> None:
    class Ring(nn.Module):
        def forward(self, x: torch.Tensor, ring: torch.Tensor) -> torch.Tensor:
            ring[:2] = x
            return ring.sum()

    x, ring = torch.randn(2), torch.zeros(5)
    source = stateful(Ring(), (x, ring), "ring")
    inputs = bind_inputs(source, (x, ring))
    assert torch.equal(source.run(*inputs.arguments_with(inputs.tensors))["out_ring"][:2], x)
    assert not ring.any(), "the user's tensor has changed"


def test_names_of_the_other_inputs_are_enough() -> None:
    x, cache = torch.randn(2, 4, 3), rows(5)
    source = stateful(Reader(), (x, cache), "past_key_values")
    assert bind_inputs(source, (x, cache), input_names=["rows"]).names == ("rows", "in_cache_key_0")
    assert bind_inputs(source, (x, cache), input_names=["rows", "past"]).names == ("rows", "past")


def test_a_number_of_python_that_a_call_changes_is_refused() -> None:
    class Counted(Rows):
        seen = 5

    class Counting(Reader):
        def forward(self, x: torch.Tensor, past_key_values: Any, scale: float = 1.0) -> torch.Tensor:
            past_key_values.seen += x.shape[1]
            return super().forward(x, past_key_values, scale)

    cache = Counted(torch.randn(2, 5, 3))
    cache.seen = 5
    with pytest.raises(InputError, match=r"changes seen of the state `past_key_values`, which is not a tensor"):
        stateful(Counting(), (torch.randn(2, 4, 3), cache), "past_key_values")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("cache", r"Reader has no parameter 'cache'"),
        ({"past_key_values": 3}, r"the result has no 3, which is declared as the next `past_key_values`"),
        ("scale", r"the example has no 'scale'"),
    ],
)
def test_what_is_no_state_is_refused(option: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        stateful(Reader(), (torch.randn(2, 4, 3), rows(5)), option)


def test_an_empty_state_is_refused() -> None:
    with pytest.raises(InputError, match="the state `past_key_values` of the example holds no tensors"):
        stateful(Reader(), (torch.randn(2, 4, 3), Rows()), "past_key_values")


def test_a_state_of_another_number_of_tensors_is_refused() -> None:
    source = stateful(Reader(), (torch.randn(2, 4, 3), rows(5)), "past_key_values")
    with pytest.raises(InputError, match="has 2 tensors, the example has 1"):
        bind_inputs(source, (torch.randn(2, 4, 3), rows(5, 5)))


@pytest.mark.parametrize(
    ("argument", "path", "name"),
    [
        ("past_key_values", ("layers", 3, "values"), "cache_value_3"),
        ("past_key_values", ("self_attention_cache", "layers", 0, "keys"), "cache_self_key_0"),
        ("cache_params", ("layers", 1, "conv_states", 0), "cache_conv_state_1_0"),
        ("hx", (1,), "hx_1"),
        ("state", (), "state"),
        ("state", ("a-b",), "state_a_b"),
    ],
)
def test_names(argument: str, path: tuple[Any, ...], name: str) -> None:
    assert state_name(argument, path) == name
