"""Integers are drawn as the model takes them at each size: indices below their axis, lengths up to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from t2n_core import ModelExport, TractNNEF
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
    assert all(low <= found.min() and found.max() <= size + beyond for size, found in drawn)
    assert max(found.max() for _, found in drawn) > 7, "no sample reaches beyond the example's size"
    if "sorted" in words:
        assert all((np.diff(found) <= 0).all() for _, found in drawn)
    assert drawn_of(export)["numbers"] == words


def test_tokens_that_are_all_equal_become_any_row_of_the_table() -> None:
    export = export_of(lambda net, x, i: x.mean(1) + net.table(i).mean(1), [[3] * 5] * 3, TIME | {"numbers": {1: "L"}})
    found = np.concatenate([sample.inputs[1].reshape(-1) for sample in export.samples[1:]])
    assert (found.min(), found.max()) == (0, 10)
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
