"""Advanced indexing by the positions of the axes that are read, as masks of attention are built: elements are moved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, arange

from t2n_core import ModelExport, TractNNEF
from tests.nets import OfFunction
from tests.releases import NEWEST, OLDEST, on_each_line

COUNTED: dict[str, Callable[[Tensor], Tensor]] = {
    "one axis": lambda x: x[arange(x.shape[0])],
    "rows and columns": lambda x: x[arange(x.shape[0])[:, None], arange(x.shape[1])],
    "a mask": lambda x: x[arange(x.shape[0])[:, None, None, None], (arange(x.shape[1]) + 0)[None, None, None, :]],
    "columns before rows": lambda x: x[arange(x.shape[0])[None, :], arange(x.shape[1])[:, None]],
    "the last axes": lambda x: x[:, arange(x.shape[1])[:, None, None], arange(3)],
    "the last axes, swapped": lambda x: x[:, arange(x.shape[1]), arange(3)[:, None]],
    "the outer axes": lambda x: x[arange(x.shape[0])[:, None], :, arange(3)],
    "an axis of one element": lambda x: x[:, None][:, torch.tensor([0])[:, None, None], arange(x.shape[1])],
}
PICKED: dict[str, Callable[[Tensor], Tensor]] = {
    "a diagonal": lambda x: x[:3, :3][arange(3), arange(3)],
    "the next steps": lambda x: x[:, (arange(x.shape[1] - 1) + 1)],
    "all but the last": lambda x: x[:, arange(x.shape[1] - 1)],
    "backwards": lambda x: x[:, (x.shape[1] - 1) - arange(x.shape[1])],
    "one step, repeated": lambda x: x[:, arange(x.shape[1]) * 0],
    "steps of one row": lambda x: x[torch.tensor([1]), arange(x.shape[1])],
    "a table of pairs": lambda x: x[(arange(x.shape[1]) + 0 * arange(2)[:, None])[:, :2] * 0, arange(2)],
}


def check(function: Callable[[Tensor], Tensor], version: str, folder: Path) -> set[str]:
    """Prove an archive with free sizes at several of them, and return its operators."""
    others = [(torch.randn(b, t, 3),) for b, t in ((3, 4), (5, 3), (4, 9))]
    export = ModelExport(
        OfFunction(function).eval(), (torch.randn(4, 6, 3),), input_names=["x"], dynamic_axes={"x": {0: "B", 1: "T"}},
        extra_inputs=others,
    )  # fmt: skip
    result = export.to(TractNNEF(version), folder / "model.nnef.tar")
    result.assert_parity("exact")
    return {operation.name for operation in result.graph.operations}


@pytest.mark.parametrize("version", on_each_line(OLDEST, "0.21.19", NEWEST))
@pytest.mark.parametrize("name", COUNTED)
def test_elements_are_moved(name: str, version: str, tract_engine: Any, tmp_path: Path) -> None:
    tract_engine(version)
    assert not check(COUNTED[name], version, tmp_path) & {"tract_core_gather", "tract_core_range", "lt"}


@pytest.mark.parametrize("name", PICKED)
def test_other_indices_pick_elements(name: str, tmp_path: Path) -> None:
    assert "tract_core_gather" in check(PICKED[name], NEWEST, tmp_path)


def of_places(x: Tensor) -> Tensor:
    return x[arange(x.shape[0]), x[:, :, 0].argmax(1)]


@pytest.mark.parametrize("version", on_each_line(OLDEST, "0.21.19", NEWEST))
@pytest.mark.parametrize(
    ("function", "never"),
    [
        (of_places, {"lt"}),
        (lambda x: x[:, x.argmax(2)[0] + 0], {"lt"}),
        (lambda x: (arange(x.shape[1])[None, :, None] >= 0) & (x > 0), {"ge", "and"}),
        (lambda x: (x > 0) & torch.tensor(True) & (arange(3) >= -1), {"ge", "and"}),
    ],
    ids=["places", "places of one row", "positions", "a constant"],
)
def test_what_is_known_of_elements_is_not_computed(
    function: Callable[[Tensor], Tensor], never: set[str], version: str, tract_engine: Any, tmp_path: Path
) -> None:
    tract_engine(version)
    assert not check(function, version, tmp_path) & never
