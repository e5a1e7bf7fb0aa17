"""Inputs under the user's control: a function of the sizes, given sizes, and numpy arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from pytest_t2n.collect.markers import CaseOptions
from pytest_t2n.run.exports.converter import new_export
from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import InputError
from t2n_core.export.options import ExportOptions
from tests.releases import NEWEST


class Pointer(nn.Module):
    """Takes the one frame that a mask marks; a model with a precondition that no random mask keeps."""

    def forward(self, frames: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_exporting():
            assert (mask.sum(1) == 1).all(), "one frame is marked"
        return (frames * mask.unsqueeze(2).float()).sum(1) * 2


AXES = {"frames": {1: "T"}, "mask": {1: "T"}}


def marked(sizes: dict[str, int]) -> dict[str, torch.Tensor]:
    """Return inputs with one frame marked in each row."""
    size = sizes["T"]
    mask = torch.nn.functional.one_hot(torch.randint(size, (3,)), size).bool()
    return {"frames": torch.randn(3, size, 4), "mask": mask}


def export(**options: Any) -> ModelExport:
    return ModelExport(Pointer().eval(), marked({"T": 6}), dynamic_axes=AXES, **options)


def test_a_function_makes_all_inputs_but_the_example(tmp_path: Path) -> None:
    model_export = export(extra_inputs=marked)
    result = model_export.to(TractNNEF(NEWEST), tmp_path / "m.tar")
    assert result.assert_parity("close").status == "pass"
    samples = result.samples
    assert len({sample.sizes["T"] for sample in samples}) > 3
    assert all((sample.inputs[1].sum(1) == 1).all() for sample in samples)
    again = export(extra_inputs=marked).to(TractNNEF(NEWEST, check_io=False), tmp_path / "again.tar").samples
    assert all(np.array_equal(a.inputs[0], b.inputs[0]) for a, b in zip(samples[1:], again[1:], strict=True))


def test_without_it_no_other_size_is_checked() -> None:
    """The reason to have it: each row of a drawn mask has two values at least, and mostly several frames."""
    assert {sample.sizes["T"] for sample in export().samples} <= {6, 1, 2, 3}


def test_the_generators_of_the_user_stay_as_they_are() -> None:
    torch.manual_seed(5)
    np.random.seed(5)
    expected = torch.rand(2).tolist(), np.random.rand(2).tolist()
    torch.manual_seed(5)
    np.random.seed(5)
    model_export = ModelExport(
        Pointer(), (torch.ones(3, 6, 4), marked({"T": 6})["mask"]), extra_inputs=marked, dynamic_axes=AXES
    )
    torch.manual_seed(5)
    _ = model_export.samples
    assert (torch.rand(2).tolist(), np.random.rand(2).tolist()) == expected


def test_sizes_for_which_it_has_none() -> None:
    model_export = export(extra_inputs=lambda sizes: marked(sizes) if sizes["T"] % 2 == 0 else None)
    assert {sample.sizes["T"] % 2 for sample in model_export.samples} == {0}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda sizes: {**marked(sizes), "frames": torch.randn(3, 6, 4)},
            r"returned `frames` of shape \[3, 6, 4\] at T=",
        ),
        (lambda sizes: {**marked(sizes), "frames": torch.randn(3, sizes["T"], 4).double()}, "in torch.float64"),
        (lambda sizes: marked(sizes["S"]), r"failed at T=6: KeyError: 'S'"),
        (lambda sizes: {"frames": marked(sizes)["frames"]}, "missing a required argument: 'mask'"),
    ],
)
def test_a_function_that_does_not_fit(function: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _ = export(extra_inputs=function).samples


def sizes_of(**options: Any) -> list[int]:
    model_export = ModelExport(nn.Tanh(), {"input": torch.randn(2, 6)}, dynamic_axes={"input": {1: "T"}}, **options)
    return [sample.sizes["T"] for sample in model_export.samples]


def test_given_sizes_in_place_of_chosen_ones_or_besides() -> None:
    chosen = sizes_of()
    assert sorted(set(sizes_of(sizes=[{"T": 9}, {"T": 40}]))) == [6, 9, 40]
    assert set(sizes_of(sizes=[])) == {6}
    besides = sizes_of(sizes=[{"T": 9}, ...])
    assert set(besides) == {9, *chosen}
    assert len(besides) == len(chosen) + 1


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([{"S": 3}], "there is no dynamic axis S; there are T"),
        ([{"T": 0}], "sizes: T = 0 is outside the range"),
        ({"T": 3}, "is not a list of sizes by name"),
        ([7], "7 is not a list of sizes by name"),
        ([{"T": "7"}], "is not a list of sizes by name"),
    ],
)
def test_sizes_that_are_none(sizes: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sizes_of(sizes=sizes)


def test_a_size_at_which_the_model_cannot_run_is_an_error() -> None:
    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if not torch.compiler.is_exporting() and x.shape[1] == 7:
                raise ValueError("seven is too many")
            return x * 2

    model_export = ModelExport(Net(), {"x": torch.randn(2, 6)}, dynamic_axes={"x": {1: "T"}}, sizes=[{"T": 7}])
    with pytest.raises(InputError, match="seven is too many"):
        _ = model_export.samples


def test_khronos_asks_for_the_sizes_of_the_example() -> None:
    options = CaseOptions(export=ExportOptions(dynamic_axes=AXES, extra_inputs=marked, sizes=[{"T": 3}, ...]))
    model_export = new_export(Pointer().eval(), marked({"T": 6}), None, options, "khronos", ())
    samples = model_export.samples
    assert len(samples) > 1
    assert {sample.inputs[0].shape for sample in samples} == {(3, 6, 4)}


@pytest.mark.parametrize(
    "args",
    [np.ones((2, 6), np.float32), (np.ones((2, 6), np.float32)[:, ::-1],), {"input": np.ones((2, 6), ">f4")}],
    ids=["alone", "of a view", "of another byte order"],
)
def test_numpy_arrays_are_inputs(args: Any, tmp_path: Path) -> None:
    result = ModelExport(nn.Tanh(), args, extra_inputs=[np.zeros((2, 6), np.float32)]).to(
        TractNNEF(NEWEST), tmp_path / "m.tar"
    )
    assert result.input_names == ["input"]
    assert result.assert_parity("close").passed


def test_an_array_that_no_tensor_can_be() -> None:
    with pytest.raises(InputError, match=r"no tensor has the type <U1 of a numpy array of shape \[1\]"):
        ModelExport(nn.Tanh(), np.array(["a"]))
