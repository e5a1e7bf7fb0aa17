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
        self.layers = [Layer(key) for key in keys]


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
    outputs = source.run(*inputs.arguments_with(inputs.tensors))
    assert list(outputs) == ["output", "out_cache_key_0", "out_cache_key_1"]
    expected = [torch.cat([layer.keys, x], dim=1) for layer in cache.layers]
    assert torch.equal(outputs["out_cache_key_0"], expected[0])
    assert torch.equal(outputs["out_cache_key_1"], expected[1])
    assert torch.equal(outputs["output"], expected[0].sum(1) + expected[1].sum(1))
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
    assert [tensor.growing for tensor in source.state.tensors] == [(1,)] * 3
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
    assert not any(tensor.growing for tensor in source.state.tensors)


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
    with pytest.raises(
        InputError, match=r"the state `past_key_values` has one that the example lacks at `layers.1.keys`"
    ):
        bind_inputs(source, (torch.randn(2, 4, 3), rows(5, 5)))


class Both:
    """An object whose attributes may be set in either order."""

    def __init__(self, **values: torch.Tensor) -> None:
        self.__dict__.update(values)


@dataclass
class Pair:
    h: torch.Tensor
    c: torch.Tensor


def net(step: Any) -> nn.Module:
    """Return a net that computes `step(x, s)`."""
    made: nn.Module = type("Net", (nn.Module,), {"forward": lambda self, x, s: step(x, s)})()
    return made


def results(step: Any, state: Any, option: Any = None) -> dict[str, float]:
    """Return the first element of each result of a call on x = 1, with its name in the archive."""
    x = torch.ones(2)
    source = stateful(net(step), (x, state), {"s": 1} if option is None else option)
    inputs = bind_inputs(source, (x, state))
    outputs = source.run(*inputs.arguments_with(inputs.tensors))
    return {name: float(part.flatten()[0]) for name, part in outputs.items()}


def full(value: float, size: int = 2) -> torch.Tensor:
    return torch.full((size,), float(value))


BY_PATH: dict[str, tuple[Any, Any]] = {
    "keys in another order": (lambda x, s: (x, {"c": s["c"] + 1, "h": s["h"] + 2}), {"h": full(10), "c": full(20)}),
    "nested keys": (
        lambda x, s: (x, {"a": {"c": s["a"]["c"] + 1, "h": s["a"]["h"] + 2}}),
        {"a": {"h": full(10), "c": full(20)}},
    ),
    "attributes in another order": (lambda x, s: (x, Both(c=s.c + 1, h=s.h + 2)), Both(h=full(10), c=full(20))),
    "a dataclass": (lambda x, s: (x, Pair(c=s.c + 1, h=s.h + 2)), Pair(full(10), full(20))),
    "other shapes": (lambda x, s: (x, {"c": s["c"] + 1, "h": s["h"] + 2}), {"h": full(10), "c": full(20, 3)}),
    "an object in place of a dict": (
        lambda x, s: (x, Pair(c=s["c"] + 1, h=s["h"] + 2)),
        {"h": full(10), "c": full(20)},
    ),
}


@pytest.mark.parametrize("name", BY_PATH)
def test_a_next_value_belongs_to_its_path(name: str) -> None:
    outputs = results(*BY_PATH[name])
    assert {key[-2:]: value for key, value in outputs.items() if key != "output"} == {"_h": 12.0, "_c": 21.0}


@pytest.mark.parametrize("kind", [tuple, list, lambda parts: dict(zip("ab", parts, strict=True))])
def test_a_tensor_that_moves_to_another_place_is_not_kept(kind: Any) -> None:
    def step(x: torch.Tensor, s: Any) -> Any:
        first, *_ = s.values() if isinstance(s, dict) else s
        return x, kind((x.clone(), first))

    outputs = results(step, kind((full(10), full(20))))
    assert [outputs.pop("output"), *outputs.values()] == [1, 1, 10]


def test_places_that_are_exchanged_are_two_outputs() -> None:
    assert results(lambda x, s: (x, (s[1], s[0])), (full(1), full(2))) == {"output": 1, "out_s_0": 2, "out_s_1": 1}


def test_one_tensor_may_be_two_next_values() -> None:
    def step(x: torch.Tensor, s: Any) -> Any:
        following = s[0] + x
        return x, (following, following)

    assert results(step, (full(1), full(5))) == {"output": 1, "out_s_0": 2, "out_s_1": 2}


RETURNED_TWICE: dict[str, tuple[Any, Any, dict[str, float]]] = {
    "in a tuple": (lambda x, s: (s + x,) * 2, 1, {"output": 6, "out_s": 6}),
    "before the result": (lambda x, s: (s + x,) * 2, 0, {"output": 6, "out_s": 6}),
    "counted from the end": (lambda x, s: (s + x, s + 2, s + 3), -1, {"output_0": 6, "output_1": 7, "out_s": 8}),
    "by key": (lambda x, s: dict.fromkeys(("y", "s"), s + x), "s", {"y": 6, "out_s": 6}),
    "by the name of the argument": (lambda x, s: dict.fromkeys(("y", "s"), s + x), None, {"y": 6, "out_s": 6}),
    "of a dataclass": (lambda x, s: Pair(*(s + x,) * 2), "c", {"h": 6, "out_s": 6}),
    "written into": (lambda x, s: s.add_(x), None, {"output": 6, "out_s": 6}),
}


@pytest.mark.parametrize("name", RETURNED_TWICE)
def test_a_result_that_is_a_next_value_too_is_an_output(name: str) -> None:
    step, key, expected = RETURNED_TWICE[name]
    assert results(step, full(5), {"s": key}) == expected


def test_a_changed_object_that_is_returned_is_no_second_output() -> None:
    def step(x: torch.Tensor, s: Both) -> Any:
        s.h = s.h + x
        return x * 3, s

    assert results(step, Both(h=full(5)), "s") == {"output": 3, "out_s_h": 6}


CHANGED_TREES: dict[str, tuple[Any, Any, str]] = {
    "a renamed key": (
        lambda x, s: (x, {"hidden": s["h"]}),
        {"h": full(1)},
        "no tensor at `h`, and one that the example lacks at `hidden`",
    ),
    "fewer": (lambda x, s: (x, s[:1]), (full(1), full(2)), "no tensor at `1`"),
    "more": (lambda x, s: (x, (*s, x)), (full(1), full(2)), "one that the example lacks at `2`"),
    "a tensor in place of a tuple": (lambda x, s: (x, s[0]), (full(1),), "no tensor at `0`, and .* at its place"),
}


@pytest.mark.parametrize("name", CHANGED_TREES)
def test_a_tree_that_changes_is_refused_with_its_paths(name: str) -> None:
    step, state, message = CHANGED_TREES[name]
    with pytest.raises(InputError, match=f"the next value of the state `s` has {message}"):
        results(step, state)


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
