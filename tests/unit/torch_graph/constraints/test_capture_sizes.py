"""A dynamic axis whose example has 0 or 1 elements is captured at another size; the example stays what is checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import CaptureError, FrozenDecisionWarning
from t2n_core.nnef.sizes.dims import FloorDiv, Modulo, symbol
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.torch_graph.capture.tracer import CapturedModel, TorchModuleTracer, bind_inputs
from t2n_core.torch_graph.constraints.capture_sizes import (
    Limits,
    capture_sizes,
    example_sizes,
    fit_example,
    freeing_sizes,
    resize_example,
)
from t2n_core.torch_graph.constraints.declared_axes import AxisSize
from tests.nets import net_of
from tests.releases import NEWEST

B, T = symbol("B"), symbol("T")
BT = {"x": {0: "B", 1: "T"}}


def net(function: Callable[..., Any]) -> nn.Module:
    return net_of(lambda self, x: function(x, self.start), start=nn.Parameter(torch.randn(1, 1, 4)))


def capture(function: Callable[..., Any], example: Tensor, way: Any = "export") -> CapturedModel:
    model: Any = net(function).eval()
    return TorchModuleTracer(model, args=bind_inputs(model, example), dynamic_axes=BT, capture=way).trace()


def plain(axes: dict[str, dict[int, str]]) -> dict[str, dict[int, AxisSize]]:
    return {name: {axis: AxisSize(symbol) for axis, symbol in of.items()} for name, of in axes.items()}


def choices(shapes: dict[str, tuple[int, ...]], axes: Any, limits: Limits | None = None) -> list[dict[str, int]]:
    return list(capture_sizes(plain(axes), list(shapes), [torch.zeros(shape) for shape in shapes.values()], limits))


def test_no_size_is_chosen_where_the_example_has_none_of_0_or_1() -> None:
    assert choices({"x": (2, 9, 1)}, BT) == []
    assert choices({"x": (1, 0)}, {}) == []


def test_chosen_sizes_are_small_primes_that_no_axis_has() -> None:
    assert [c["B"] for c in choices({"x": (1, 9, 4)}, {"x": {0: "B"}})] == [3, 5, 7, 11, 2, 8, 16]
    first = choices({"x": (1, 3, 5), "y": (1, 0, 7)}, {"x": {0: "B"}, "y": {0: "C", 1: "T"}})[0]
    assert first == {"B": 11, "C": 13, "T": 17}


def test_two_symbols_are_also_varied_alone() -> None:
    candidates = choices({"x": (1, 1, 4)}, BT)
    assert all(len(set(sizes.values())) == len(sizes) for sizes in candidates)
    assert {"B": 3, "T": 2} in candidates
    assert {"B": 3} in candidates


def test_chosen_sizes_are_within_their_limits() -> None:
    assert choices({"x": (1, 9)}, {"x": {0: "B"}}, {"B": (0, 1)}) == []
    assert {c["B"] for c in choices({"x": (1, 9)}, {"x": {0: "B"}}, {"B": (1, 4)})} == {3, 2, 4}
    assert {c["B"] for c in choices({"x": (1, 9)}, {"x": {0: "B"}}, {"B": (None, 2)})} == {2}
    assert all(c["B"] >= 50 for c in choices({"x": (1, 9)}, {"x": {0: "B"}}, {"B": (50, None)}))


def test_an_axis_with_two_sizes_in_the_example_is_left_as_it_is() -> None:
    axes = {"x": {0: "B"}, "y": {0: "B", 1: "T"}}
    assert example_sizes(plain(axes), ["x", "y"], [torch.zeros(2), torch.zeros(1, 1)]) == {"T": 1}


def test_resized_tensors_repeat_what_they_hold() -> None:
    axes = {"x": {0: "B", 1: "T"}, "mask": {0: "T", 1: "T"}, "past": {1: "P"}}
    x, mask = torch.tensor([[[4, 7]]]), torch.ones(1, 1, dtype=torch.bool)
    tensors = [x, mask, torch.zeros(2, 0, 3), torch.randn(1, 2)]
    first, second, past, same = resize_example(
        plain(axes), ["x", "mask", "past", "y"], tensors, {"B": 3, "T": 5, "P": 7}
    )
    assert torch.equal(first, x.expand(3, 5, 2))
    assert first.is_contiguous()
    assert second.shape == (5, 5)
    assert bool(second.all())
    assert past.shape == (2, 7, 3)
    assert float(past.std()) > 0
    assert same is tensors[3]


def test_resized_floats_are_varied_unless_they_are_a_mask() -> None:
    axes = {"x": {0: "B"}, "mask": {0: "B"}}
    x, mask = torch.randn(2, 5), torch.tensor([[0.0, float("-inf")]] * 2)
    wider, masks = resize_example(plain(axes), ["x", "mask"], [x, mask], {"B": 5})
    assert torch.equal(wider[:2], x)
    assert len(wider.unique(dim=0)) == 5
    assert torch.equal(masks, mask[:1].expand(5, 2))
    (narrow, _) = resize_example(plain(axes), ["x", "mask"], [x, mask], {"B": 1})
    assert torch.equal(narrow, x[:1])


def test_sizes_that_free_those_which_follow_from_them() -> None:
    extents = [FloorDiv(T + 3, 4), B, T, Modulo(T, 2)]
    every = SizeRange.of(["B", "T"])
    assert freeing_sizes(extents, {"B": 2, "T": 3}, {2, 3, 5}, every) == {"B": 2, "T": 7}
    assert freeing_sizes(extents, {"B": 2, "T": 7}, {2, 7}, every) is None
    assert freeing_sizes(extents, {"B": 2, "T": 3}, {2, 3}, SizeRange({"B": (1, None), "T": (1, 4)})) is None


NETS: dict[str, Callable[..., Any]] = {
    "matmul": lambda x, start: x @ x.mT,
    "einsum": lambda x, start: torch.einsum("btc,bsc->bts", x, x),
    "einsum with an ellipsis": lambda x, start: torch.einsum("...c,oc->...o", x, start[0]),
    "class token": lambda x, start: torch.cat([start.expand(x.shape[0], -1, -1), x], 1),
    "layer norm": lambda x, start: nn.functional.layer_norm(x.transpose(0, 1) + start, (4,)),
    "flatten": lambda x, start: x.flatten(0, 1).sigmoid(),
    "any": lambda x, start: (x > 0).any(-1),
    "einsum of strides": lambda x, start: torch.einsum("btc,bsc->bts", x[:, ::4], x[:, ::4]),
}


@pytest.mark.parametrize("name", list(NETS))
@pytest.mark.parametrize("way", ["export", "trace"])
def test_a_graph_from_sizes_of_1_is_that_from_others(name: str, way: str) -> None:
    torch.manual_seed(1)
    lone = capture(NETS[name], torch.randn(1, 1, 4), way)
    other = capture(NETS[name], torch.randn(3, 5, 4), way)
    assert lone.symbols == {"B": 1, "T": 1}
    assert lone.captured_at == other.captured_at == other.symbols == {"B": 3, "T": 5}
    assert str(lone.graph) == str(other.graph)


def test_a_script_is_captured_at_free_sizes() -> None:
    class Scripted(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.einsum("btc,bsc->bts", x, x)

    script = torch.jit.script(Scripted())
    captured = TorchModuleTracer(script, args=bind_inputs(script, torch.randn(1, 1, 4)), dynamic_axes=BT).trace()
    assert captured.captured_at == {"B": 3, "T": 5}
    (result,) = captured.graph.outputs
    assert result.shape == (B, T, T)


def test_an_empty_example_is_captured_too() -> None:
    captured = capture(lambda x, start: torch.cat([start.expand(x.shape[0], -1, -1), x], 1), torch.randn(2, 0, 4))
    assert captured.symbols == {"B": 2, "T": 0}
    assert captured.captured_at == {"B": 2, "T": 3}
    assert captured.graph.outputs[0].shape == (B, symbol("T", 0) + 1, 4)


def test_a_size_that_follows_from_the_inputs_is_not_1_either() -> None:
    strided = NETS["einsum of strides"]
    assert capture(strided, torch.randn(2, 3, 4)).captured_at == {"B": 2, "T": 5}
    assert capture(strided, torch.randn(1, 1, 4)).captured_at == {"B": 3, "T": 5}
    assert capture(strided, torch.randn(2, 9, 4)).captured_at == {"B": 2, "T": 9}


def test_another_size_is_taken_where_the_model_cannot_run() -> None:
    def two_positions(x: Tensor, start: Tensor) -> Tensor:
        return x + start.expand(1, 2, -1)[:, : x.shape[1]]

    captured = capture(two_positions, torch.randn(7, 1, 4))
    assert captured.captured_at == {"B": 7, "T": 2}
    assert captured.range.bounds["T"] == (1, 2)


def test_a_size_at_which_the_model_decides_as_for_the_example_is_taken() -> None:
    def branch(x: Tensor, start: Tensor) -> Tensor:
        return x * 2 if x.shape[1] > 2 else x * 3

    assert capture(branch, torch.randn(1, 1, 4)).captured_at == {"B": 3, "T": 2}
    assert capture(branch, torch.randn(1, 9, 4)).captured_at == {"B": 3, "T": 9}


def test_a_decision_that_changes_no_number_is_no_obstacle() -> None:
    def skips(x: Tensor, start: Tensor) -> Tensor:
        return x.flip(1).flip(1) * 2 if x.shape[1] > 1 else x * 2

    assert capture(skips, torch.randn(2, 1, 4)).captured_at == {"B": 2, "T": 3}


def test_pieces_that_nobody_reads_need_not_be_there() -> None:
    """At 1 there is one piece, at other sizes there are two."""
    captured = capture(lambda x, start: x.chunk(2, 1)[0], torch.randn(2, 1, 4))
    assert captured.captured_at == {"B": 2, "T": 5}
    assert captured.range.bounds["T"] == (1, None)


def only_at_1(x: Tensor, start: Tensor) -> Tensor:
    return x * 2 if x.shape[0] == 1 else x * 3


@pytest.mark.parametrize("function", [only_at_1, lambda x, start: x.squeeze(0), lambda x, start: x.squeeze()])
@pytest.mark.parametrize("size", [1, 4])
def test_a_model_that_does_something_else_at_1_is_refused(function: Callable[..., Any], size: int) -> None:
    with pytest.raises(CaptureError, match="the model fixes it to 1") as refused:
        capture(function, torch.randn(1, size, 4))
    assert refused.value.origin is not None
    assert "test_capture_sizes.py" in refused.value.origin.source


def test_what_a_trace_freezes_is_frozen_as_the_example_decides() -> None:
    def branch(x: Tensor, start: Tensor) -> Tensor:
        return x * 2 if x.shape[1] < 10 else x * 3

    with pytest.warns(FrozenDecisionWarning):
        captured = capture(branch, torch.ones(2, 9, 4), "trace")
    (op,) = captured.graph.op_nodes
    assert op.arguments["other"] == 2
    assert captured.range.bounds["T"][1] == 9


def test_a_trace_that_is_right_for_the_example_alone_is_refused() -> None:
    with pytest.raises(CaptureError, match="the axis `B` is not free"):
        capture(only_at_1, torch.ones(1, 9, 4), "trace")


def test_the_error_is_that_of_the_example() -> None:
    def fails(x: Tensor, start: Tensor) -> Tensor:
        return x * int(x.sum())

    with pytest.raises(CaptureError, match="values in a tensor"):
        capture(fails, torch.randn(1, 9, 4))


def test_the_example_is_the_first_sample() -> None:
    example = torch.randn(1, 9, 4)
    export = ModelExport(net(NETS["einsum"]).eval(), example, dynamic_axes=BT)
    export.lower(TractNNEF(NEWEST))
    first, *others = export.samples
    assert first.label == "example"
    assert torch.equal(torch.from_numpy(first.inputs[0]), example)
    assert first.sizes == {"B": 1, "T": 9}
    assert {sample.sizes["B"] for sample in others} >= {3, 5}


def test_fitted_tensors_are_valid_at_smaller_sizes_and_have_spread() -> None:
    x, places, lengths = torch.zeros(2, 7, 3), torch.tensor([4, 0, 6]), torch.tensor([5, 1])
    axes = plain({"x": {1: "T"}})

    def takes_indices(given: Sequence[torch.Tensor]) -> bool:
        return bool(given[1].max() < given[0].shape[1])

    tensors = fit_example(axes, ["x", "places"], [x, places], {"T": 4}, takes_indices)
    assert tensors[1].tolist() == [3, 0, 3]
    assert float(tensors[0].std()) > 0.5

    def takes_lengths(given: Sequence[torch.Tensor]) -> bool:
        return int(given[1].max()) == given[0].shape[1] and not bool(given[0].any())

    zeros, cut = fit_example(axes, ["x", "lengths"], [x, lengths], {"T": 4}, takes_lengths)
    assert cut.tolist() == [4, 1]
    assert not zeros.any(), "the model takes nothing but zeros"
    same = fit_example(axes, ["x", "places"], [x, places], {"T": 4}, lambda _: False)
    assert same[1] is places
