"""Integers and inputs that are never negative are drawn as the model takes them, as are those of hypothesis."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from t2n_core import ModelExport, TractNNEF
from t2n_core.check.sampling.hypothesis_inputs import draw_inputs, is_strategy
from tests.nets import OfFunction, net_of
from tests.releases import NEWEST


def net_for(function: Callable[..., Tensor]) -> nn.Module:
    return net_of(
        lambda self, x, numbers: function(self, x, numbers),
        rnn=nn.GRU(4, 3, batch_first=True),
        table=nn.Embedding(11, 4),
    )


def packed(net: Any, x: Tensor, lengths: Tensor) -> Tensor:
    sequence = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(net.rnn(sequence)[0], batch_first=True, total_length=x.shape[1])[0]


def packed_in_order(net: Any, x: Tensor, lengths: Tensor) -> Tensor:
    sequence = pack_padded_sequence(x, lengths, batch_first=True)
    return pad_packed_sequence(net.rnn(sequence)[0], batch_first=True, total_length=x.shape[1])[0]


def export_of(function: Callable[..., Tensor], numbers: Any, axes: dict[str, dict[int, str]]) -> ModelExport:
    torch.manual_seed(1)
    example = {"x": torch.randn(3, 7, 4), "numbers": torch.tensor(numbers)}
    return ModelExport(net_for(function).eval(), example, dynamic_axes=axes)


def drawn_of(export: ModelExport) -> dict[str, str]:
    return export.reference_for(TractNNEF(NEWEST)).distributions()


TIME = {"x": {1: "T"}}
INDICES = (lambda net, x, i: x[:, i], "indices from 0 to the last of axis 1 of x")
GATHERED = (lambda net, x, i: x.gather(1, i[:, :, None].expand(-1, -1, 4)), "indices from 0 to the last of axis 1 of x")
LAST = (lambda net, x, n: x.gather(1, (n - 1)[:, None, None].expand(-1, 1, 4)), "lengths from 1 to that of axis 1 of x")
LENGTHS = (packed, "lengths from 1 to that of axis 1 of x")
SORTED = (packed_in_order, "lengths from 1 to that of axis 1 of x, sorted")


@pytest.mark.parametrize(
    ("how", "numbers", "low", "beyond"),
    [
        pytest.param(INDICES, [4, 0, 3], 0, -1, id="indices"),
        pytest.param(INDICES, [0, 0, 0], 0, -1, id="indices that are all 0"),
        pytest.param(GATHERED, [[0, 4], [1, 1], [5, 2]], 0, -1, id="indices of gather"),
        pytest.param(LAST, [4, 5, 2], 1, 0, id="lengths less 1 as indices"),
        pytest.param(LENGTHS, [4, 2, 5], 1, 0, id="lengths"),
        pytest.param(LENGTHS, [1, 1, 1], 1, 0, id="lengths that are all 1"),
        pytest.param(SORTED, [5, 4, 4], 1, 0, id="sorted lengths"),
        pytest.param(SORTED, [1, 1, 1], 1, 0, id="sorted lengths that are all 1"),
    ],
)
def test_integers_are_bounded_by_the_axis_that_they_belong_to(how: Any, numbers: Any, low: int, beyond: int) -> None:
    function, words = how
    export = export_of(function, numbers, TIME)
    drawn = [(sample.sizes["T"], sample.inputs[1]) for sample in export.samples[1:]]
    assert {1, 11, 17} <= {size for size, _ in drawn}
    assert all(low <= integers.min() and integers.max() <= size + beyond for size, integers in drawn)
    assert max(integers.max() for _, integers in drawn) > 7, "no sample reaches beyond the example's size"
    if "sorted" in words:
        assert all((np.diff(integers) <= 0).all() for _, integers in drawn)
    assert drawn_of(export)["numbers"] == words


def test_tokens_that_are_all_equal_become_any_row_of_the_table() -> None:
    export = export_of(lambda net, x, i: x.mean(1) + net.table(i).mean(1), [[3] * 5] * 3, TIME | {"numbers": {1: "L"}})
    integers = np.concatenate([sample.inputs[1].reshape(-1) for sample in export.samples[1:]])
    assert (integers.min(), integers.max()) == (0, 10)
    assert drawn_of(export) == {
        "x": "floats like the example's",
        "numbers": "integers from 0 to 10, the largest that the model accepts",
    }


def test_integers_that_any_axis_takes_are_the_examples() -> None:
    export = export_of(lambda net, x, n: x * n[:, None, None], [4, 2, 5], TIME)
    assert all(set(sample.inputs[1]) <= {2, 4, 5} for sample in export.samples)
    assert drawn_of(export)["numbers"] == "the example's integers"


def test_a_number_of_rows_that_is_the_size_by_chance_leaves_all_sizes_checked() -> None:
    table = nn.Embedding(8, 4)
    export = export_of(lambda net, x, i: x.mean(1) + table(i).mean(1), [[3] * 5, [1] * 5, [2] * 5], TIME)
    assert {1, 11, 17} <= {sample.sizes["T"] for sample in export.samples}


def test_the_outcome_says_how_inputs_were_drawn(tmp_path: Path) -> None:
    export = export_of(packed, [4, 2, 5], TIME)
    outcome = export.to(TractNNEF(NEWEST), tmp_path / "model.nnef.tar").assert_parity()
    assert outcome.facts["drawn"] == {
        "x": "floats like the example's",
        "numbers": "lengths from 1 to that of axis 1 of x",
    }


def test_an_order_of_other_elements_stays_one() -> None:
    x = torch.tensor([3.0, -1.0, 2.0, 0.5, -2.5])
    net = net_of(lambda _, x, values, order: torch.searchsorted(x, values, sorter=order) + x[order].sum().long())
    export = ModelExport(net, {"x": x, "values": torch.randn(4), "order": x.argsort()})
    for sample in export.samples:
        assert (np.diff(sample.inputs[0][sample.inputs[2]]) >= 0).all()
    assert drawn_of(export)["order"] == "the order of the elements of x"


def searches() -> nn.Module:
    """Return a net that searches in a cumulative distribution, which is sorted for weights from 0 on alone."""
    return net_of(lambda self, w, u: torch.searchsorted(w.cumsum(-1), u)).eval()


def test_edges_of_a_search_are_sorted_in_every_sample() -> None:
    export = ModelExport(searches(), {"w": torch.rand(3, 8), "u": torch.rand(3, 20)})
    samples = export.samples
    assert len(samples) > 1
    assert all((sample.inputs[0] >= 0).all() for sample in samples)
    assert drawn_of(export)["w"] == "floats like the example's, never of the other sign"


def test_an_example_that_is_not_sorted_is_checked_with_others_like_it() -> None:
    assert len(ModelExport(searches(), {"w": torch.randn(3, 8), "u": torch.rand(3, 20)}).samples) > 1


def test_how_floats_of_one_sign_are_drawn() -> None:
    export = ModelExport(OfFunction(lambda x: x * 2).eval(), (torch.rand(3, 50),), input_names=["x"])
    assert len(export.samples) > 1
    assert drawn_of(export) == {"x": "floats like the example's, also of the other sign"}


def drawn(*shape: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


def sampled_along_rays(bins: Tensor, weights: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """Return places between `bins` by the inverse of a distribution: a search in its sums, which have to be sorted."""
    weights = weights + 1e-5
    sums = F.pad(torch.cumsum(weights / weights.sum(-1, keepdim=True), -1), (1, 0))
    u = u.expand([*sums.shape[:-1], u.shape[-1]]).contiguous()
    after = torch.searchsorted(sums, u, right=True)
    ends = torch.stack([(after - 1).clamp(min=0), after.clamp(max=sums.shape[-1] - 1)], -1)
    shape = [ends.shape[0], ends.shape[1], sums.shape[-1]]
    low, high = torch.gather(sums.unsqueeze(1).expand(shape), 2, ends).unbind(-1)
    first, last = torch.gather(bins.unsqueeze(1).expand(shape), 2, ends).unbind(-1)
    width = torch.where(high - low < 1e-5, torch.ones_like(low), high - low)
    return first + (u - low) / width * (last - first), after


def harmonics(pitch: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return sines of a pitch and of its multiples, by phases that are resized, and by ones that wrap around."""
    pitch = F.interpolate(pitch.unsqueeze(1), scale_factor=20.0, mode="nearest").transpose(1, 2)
    turns = (pitch * torch.arange(1, 5, dtype=torch.float32) / 8000) % 1
    turns = F.interpolate(turns.transpose(1, 2), scale_factor=1 / 20, mode="linear").transpose(1, 2)
    phase = torch.cumsum(turns, dim=1) * 2 * math.pi
    phase = F.interpolate(phase.transpose(1, 2) * 20, scale_factor=20.0, mode="linear").transpose(1, 2)
    voiced = (pitch > 10).float()
    wrapped = torch.cumsum(pitch / 8000, 1) % 1
    back = F.pad(-((wrapped[:, 1:] - wrapped[:, :-1]) < 0).float(), (0, 0, 1, 0))
    wrapped_sine = torch.sin(torch.cumsum(pitch / 8000 + back, dim=1) * 2 * math.pi)
    return torch.sin(phase) * 0.1 * voiced + (1 - voiced) * 0.03, wrapped_sine, voiced


NETS: dict[str, tuple[nn.Module, dict[str, Tensor], dict[str, Any]]] = {
    "a distribution along rays": (
        net_of(lambda _, bins, weights, u: sampled_along_rays(bins, weights, u)),
        {"bins": torch.sort(drawn(3, 9), -1)[0], "weights": drawn(3, 8) * (drawn(8, 3).mT > 0.3), "u": drawn(1, 5)},
        {"bins": {0: "R", 1: torch.export.Dim("K") + 1}, "weights": {0: "R", 1: "K"}, "u": {1: "S"}},
    ),
    "a pitch": (
        net_of(lambda _, pitch: harmonics(pitch)),
        {"pitch": (drawn(1, 12) * 300 + 80) * (drawn(12, 1).mT > 0.2)},
        {"pitch": {0: "B", 1: "T"}},
    ),
}


@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
@pytest.mark.parametrize("name", NETS)
def test_nets(name: str, version: str, tmp_path: Path) -> None:
    model, example, axes = NETS[name]
    export = ModelExport(model.eval(), example, dynamic_axes=axes)
    assert len(export.samples) > 1
    export.to(TractNNEF(version, check_io=False), tmp_path / "model.nnef.tar").assert_parity()


FRAMES = st.integers(1, 9).flatmap(lambda t: hnp.arrays(np.float32, (2, t, 3), elements=st.floats(-9, 9, width=32)))


def test_what_is_drawn_is_the_same_each_time() -> None:
    first, second = draw_inputs(FRAMES), draw_inputs(FRAMES)
    assert 5 <= len(first) <= 10
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert is_strategy(FRAMES)
    assert not is_strategy([1])


def test_each_drawn_input_is_checked_at_its_own_size(tmp_path) -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh()).eval()
    export = ModelExport(model, {"input": torch.randn(2, 4, 3)}, dynamic_axes={"input": {1: "T"}}, extra_inputs=FRAMES)
    drawn = [sample for sample in export.samples if sample.label.startswith("inputs[")]
    assert len(drawn) == len(draw_inputs(FRAMES))
    assert all(sample.sizes == {"T": sample.inputs[0].shape[1]} for sample in drawn)
    assert len({sample.sizes["T"] for sample in drawn}) > 1
    outcome = export.to(TractNNEF(NEWEST), tmp_path / "model.nnef.tar").assert_parity()
    assert {sizes["T"] for sizes in outcome.sizes} >= {sample.sizes["T"] for sample in drawn}
