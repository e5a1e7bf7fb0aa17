"""A decision on sizes that changes what a model computes is kept: engines refuse the sizes of its other side."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from t2n_core import ModelExport, TractNNEF
from t2n_core.engine.tract.engine import TractEngine
from tests.nets import net_of
from tests.releases import NEWEST

VERSIONS = ("0.21.19", NEWEST)


def net_for(function: Callable[..., Tensor]) -> nn.Module:
    return net_of(
        lambda self, *inputs: function(self, *inputs),
        table=torch.linspace(-1, 1, 196 * 4).reshape(1, 196, 4),
        embedding=nn.Embedding(9, 4, padding_idx=0),
    )


def grid(net: Any, x: Tensor) -> Tensor:
    _, height, width, _ = x.shape
    return x.flatten(1, 2) + net.table if height * width == 196 else x.flatten(1, 2)


def sum_of_sizes(net: Any, x: Tensor, y: Tensor) -> Tensor:
    return x.sum(1) + y.sum(1) * (2 if x.shape[1] + y.shape[1] == 300 else 1)


def difference_of_sizes(net: Any, x: Tensor, y: Tensor) -> Tensor:
    return x.sum(1) + y.sum(1) * (2 if x.shape[1] - y.shape[1] == 20 else 1)


def small_sum_of_sizes(net: Any, x: Tensor, y: Tensor) -> Tensor:
    return x.sum(1) + y.sum(1) * (2 if x.shape[1] + y.shape[1] < 45 else 1)


def thirds(net: Any, x: Tensor) -> Tensor:
    first = x[:, : math.ceil(x.shape[1] / 3)]
    return torch.stack([first.select(1, i) * (i + 1) for i in range(min(first.shape[1], 4))]).sum(0)


def transposed_in_memory(net: Any, x: Tensor) -> Tensor:
    return x.sum(1) if x.transpose(1, 2).is_contiguous() else x.sum(1) * 2


def part_in_memory(net: Any, x: Tensor) -> Tensor:
    return x.sum(1) if x[:, 11:-2].is_contiguous() else x.sum(1) * 2


def channels_in_memory(net: Any, x: Tensor) -> Tensor:
    image = x.permute(0, 3, 1, 2)
    return image.sum((2, 3)) if image[:, :, :3].is_contiguous(memory_format=torch.channels_last) else image.mean((2, 3))


def equal_and_long(net: Any, x: Tensor, y: Tensor) -> Tensor:
    return x.sum(1) + y.sum(1) * (2 if x.shape[1] == y.shape[1] and x.shape[1] > 12 else 1)


def square(net: Any, x: Tensor) -> Tensor:
    return x.sum(1) * 2 if x.shape[1] ** 2 == 40000 else x.sum(1)


def remainder(net: Any, x: Tensor) -> Tensor:
    return x.sum(1) * 2 if x.shape[1] % 61 == 7 else x.sum(1)


def odd_blocks(net: Any, x: Tensor) -> Tensor:
    return x.sum(1) if x.shape[1] // 8 % 2 else x.sum(1) * 2


def before_they_meet(net: Any, x: Tensor, y: Tensor) -> Tensor:
    return (x * 2 if x.shape[1] > 4 else x + 1) * y


def many_elements(net: Any, x: Tensor) -> Tensor:
    return x.sum(1) * (2 if x.numel() == 240 else 1)


def mean_removed(net: Any, x: Tensor) -> Tensor:
    return (x - x.mean(1, keepdim=True) if x.shape[1] > 1 else x) * 2


def sixteen(net: Any, x: Tensor) -> Tensor:
    return (x * 5).sum(1) if x.shape[1] == 16 else x.sum(1)


def square_image(net: Any, x: Tensor) -> Tensor:
    return x.sum((1, 2)) * (2 if x.shape[1] == x.shape[2] else 1)


def tokens(net: Any, x: Tensor) -> Tensor:
    e = net.embedding(x)
    return e.mean(1) if x.shape[1] > 1 else e[:, 0] * 2


def by_lengths(net: Any, x: Tensor, lengths: Tensor) -> Tensor:
    if x.shape[1] > 1:
        x = x - x.mean(1, keepdim=True)
    return x.gather(1, (lengths - 1)[:, None, None].expand(-1, 1, 4))[:, 0]


def by_indices(net: Any, x: Tensor, indices: Tensor) -> Tensor:
    y = x[:, indices]
    return y * 2 if x.shape[1] < 3 else y


def floats(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


@dataclass(frozen=True)
class Case:
    function: Callable[..., Tensor]
    example: tuple[Tensor, ...]
    axes: Mapping[str, Mapping[int, str]]
    range: str
    inside: tuple[Tensor, ...]
    outside: tuple[Tensor, ...]


TWO = {"x": {1: "T"}, "y": {1: "S"}}
ONE = {"x": {1: "T"}}


def both(t: int, s: int) -> tuple[Tensor, Tensor]:
    return floats(2, t, 4), floats(3 - 1, s, 4) + 1


CASES = [
    Case(grid, (floats(1, 8, 6, 4),), {"x": {1: "H", 2: "W"}}, "H >= 1, W >= 1, H*W != 196", (floats(1, 28, 14, 4),),
         (floats(1, 7, 28, 4),)),
    Case(sum_of_sizes, both(7, 5), TWO, "S >= 1, T >= 1, S + T != 300", both(100, 201), both(100, 200)),
    Case(difference_of_sizes, both(7, 5), TWO, "S >= 1, T >= 1, -S + T != 20", both(26, 5), both(25, 5)),
    Case(small_sum_of_sizes, both(7, 5), TWO, "S >= 1, T >= 1, S + T < 45", both(40, 4), both(40, 5)),
    Case(thirds, (floats(2, 2, 4),), ONE, "1 <= T <= 3", (floats(2, 3, 4),), (floats(2, 4, 4),)),
    Case(transposed_in_memory, (floats(2, 7, 4),), ONE, "T >= 2", (floats(2, 2, 4),), (floats(2, 1, 4),)),
    Case(part_in_memory, (floats(2, 7, 4),), ONE, "1 <= T <= 13", (floats(2, 13, 4),), (floats(2, 14, 4),)),
    Case(channels_in_memory, (floats(2, 5, 6, 4),), {"x": {1: "H"}}, "H >= 4", (floats(2, 4, 6, 4),),
         (floats(2, 3, 6, 4),)),
    Case(equal_and_long, both(7, 5), TWO, "S >= 1, T >= 1, T != S", both(16, 17), both(17, 17)),
    Case(square, (floats(2, 7, 4),), ONE, "1 <= T <= 199", (floats(2, 199, 4),), (floats(2, 200, 4),)),
    Case(remainder, (floats(2, 9, 4),), ONE, "T >= 1, T % 61 != 7", (floats(2, 69, 4),), (floats(2, 68, 4),)),
    Case(odd_blocks, (floats(2, 9, 4),), ONE, "T >= 1, (T // 8) % 2 == 1", (floats(2, 31, 4),), (floats(2, 16, 4),)),
    Case(before_they_meet, both(7, 7), {"x": {1: "T"}, "y": {1: "T"}}, "T >= 5", both(5, 5), both(4, 4)),
    Case(many_elements, (floats(2, 7, 4),), {"x": {0: "B", 1: "T"}}, "B >= 1, T >= 1, 4*B*T != 240",
         (floats(5, 11, 4),), (floats(5, 12, 4),)),
    Case(mean_removed, (torch.zeros(2, 7, 4),), ONE, "T >= 2", (floats(2, 2, 4),), (floats(2, 1, 4),)),
    Case(sixteen, (torch.zeros(2, 7, 4),), ONE, "1 <= T <= 15", (floats(2, 15, 4),), (floats(2, 16, 4),)),
    Case(square_image, (torch.zeros(2, 8, 6),), {"x": {1: "H", 2: "W"}}, "H >= 1, W >= 1, H != W", (floats(2, 5, 4),),
         (floats(2, 5, 5),)),
    Case(tokens, (torch.zeros(2, 7, dtype=torch.long),), ONE, "T >= 2", (torch.tensor([[3, 4], [0, 8]]),),
         (torch.tensor([[3], [4]]),)),
    Case(by_lengths, (floats(3, 7, 4), torch.tensor([7, 4, 5])), ONE, "T >= 2",
         (floats(3, 2, 4), torch.tensor([1, 2, 1])), (floats(3, 1, 4), torch.tensor([1, 1, 1]))),
    Case(by_indices, (floats(3, 7, 4), torch.tensor([6, 2, 3])), ONE, "T >= 3",
         (floats(3, 3, 4), torch.tensor([1, 2, 0])), (floats(3, 2, 4), torch.tensor([1, 0, 1]))),
]  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.function.__name__)
def test_the_other_side_of_a_decision_is_refused(case: Case, version: str, tmp_path: Path) -> None:
    model = net_for(case.function).eval()
    inputs = dict(zip(("x", "y"), case.example, strict=False))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = ModelExport(model, inputs, dynamic_axes=case.axes).to(TractNNEF(version), tmp_path / "model.nnef.tar")
    assert str(result.range) == case.range
    engine = result.target.engine()
    assert isinstance(engine, TractEngine)
    batches = [[tensor.numpy() for tensor in batch] for batch in (case.inside, case.outside)]
    reply = engine.run(result.archive, batches, keep_going=True)
    assert reply.status == "ok", reply.message
    assert list(reply.refused) == [1]
    torch.testing.assert_close(torch.from_numpy(reply.outputs[0][0]), model(*case.inside), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("values", [[4, 0, 3], [0, 2, 1]])
def test_a_proof_runs_the_model_on_inputs_that_it_takes_there(values: list[int]) -> None:
    """Indices of the example may be too large at the size on the other side, and zeros show nothing."""
    ran: list[tuple[int, bool]] = []
    factor, same = 2, 2

    def indexed(net: Any, x: Tensor, places: Tensor) -> Tensor:
        chosen = x[:, places] * (factor if x.shape[1] == 3 else same)
        if not torch.compiler.is_exporting() and type(x.shape[1]) is int:
            ran.append((x.shape[1], bool(x.any())))
        return chosen

    example = (torch.zeros(2, 7, 4), torch.tensor(values))
    export = ModelExport(net_for(indexed).eval(), example, dynamic_axes={"x": {1: "T"}}, input_names=["x", "places"])
    assert str(export.captured.range) == "T >= 1"
    assert (3, True) in ran


def test_a_proof_meets_sizes_at_which_an_operator_cannot_run() -> None:
    """The length of the last part is negative at sizes that the other side of its decision has."""

    def last_part(net: Any, x: Tensor) -> Tensor:
        part = functional.pad(x, (-1, -1)).split(5, 3)[-1]
        return torch.arange(part.shape[3]) / 13

    export = ModelExport(net_for(last_part).eval(), {"x": floats(2, 3, 8, 10)}, dynamic_axes={"x": {3: "W"}})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert str(export.captured.range) == "8 <= W <= 12"


class PartInMemory(nn.Module):
    """The same question as `part_in_memory`, for a script."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sum(1) if x[:, 11:-2].is_contiguous() else x.sum(1) * 2


class ChannelsInMemory(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        image = x.permute(0, 3, 1, 2)
        if image[:, :, :3].is_contiguous(memory_format=torch.channels_last):
            return image.sum((2, 3))
        return image.mean((2, 3))


@pytest.mark.parametrize(
    ("model", "example", "expected"),
    [(PartInMemory(), floats(2, 7, 4), "1 <= T <= 13"), (ChannelsInMemory(), floats(2, 5, 6, 4), "T >= 4")],
)
def test_a_script_that_asks_for_the_memory_format_holds_for_one_answer(
    model: nn.Module, example: Tensor, expected: str
) -> None:
    script = torch.jit.script(model.eval())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export = ModelExport(script, {"x": example}, dynamic_axes=ONE)
        assert str(export.captured.range) == expected
