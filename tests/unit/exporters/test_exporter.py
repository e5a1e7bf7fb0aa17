"""What an exporter is asked for, and the sizes that it declares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from t2n_core import DeclaredSizes, Exporter, ExportRequest, ModelExport
from t2n_core.errors import InputError, RefusedError
from t2n_core.exporters.request import request_of
from t2n_core.exporters.samples import samples_of
from t2n_core.torch_graph.constraints.declared_axes import SizeFrom
from tests.releases import RECENT


class Toy(Exporter):
    """An exporter that is asked for nothing."""

    name = "toy"

    def export(self, request: ExportRequest) -> None:
        raise NotImplementedError


class Fixed(Toy):
    """An exporter of fixed sizes."""

    has_dynamic_axes = False


class Scaled(nn.Module):
    """A net with nested inputs and a keyword."""

    def forward(self, pair: list[torch.Tensor], *, scale: torch.Tensor) -> dict[str, Any]:
        return {"sum": (pair[0] + pair[1]) * scale, "scale": scale}


@pytest.mark.parametrize(
    ("declared", "sizes", "holds"),
    [
        (DeclaredSizes(), {}, True),
        (DeclaredSizes(), {"T": 1}, True),
        (DeclaredSizes(), {"T": 0}, False),
        (DeclaredSizes(default=(2, None)), {"T": 1}, False),
        (DeclaredSizes({"T": (2, 8)}), {"T": 8, "B": 1}, True),
        (DeclaredSizes({"T": (2, 8)}), {"T": 9}, False),
        (DeclaredSizes({"T": (2, 8)}, (4, 4)), {"T": 3, "B": 5}, False),
    ],
)
def test_the_sizes_that_are_declared(declared: DeclaredSizes, sizes: dict[str, int], holds: bool) -> None:
    assert declared.holds(sizes) == holds


def request(model: nn.Module, args: Any, kwargs: Any = None, exporter: Exporter | None = None, **options: Any) -> Any:
    export = ModelExport(model.eval(), args, kwargs, **options)
    return request_of(export, exporter or Toy(), RECENT, Path("toy.nnef.tgz"))


def test_a_call_of_tensors_is_flat_already() -> None:
    export_request = request(nn.Bilinear(3, 4, 2), (torch.ones(5, 3), torch.ones(5, 4)), output_names=["y"])
    assert (export_request.input_names, export_request.output_names) == (("input1", "input2"), ("y",))
    assert export_request.takes_tensors
    model, tensors = export_request.flat()
    assert model is export_request.model
    assert [tuple(tensor.shape) for tensor in tensors] == [(5, 3), (5, 4)]


def test_another_call_is_made_flat() -> None:
    export_request = request(Scaled(), ([torch.ones(3), torch.ones(3)],), {"scale": torch.tensor(2.0)})
    model, tensors = export_request.flat()
    assert not export_request.takes_tensors
    assert not model.training
    assert len(export_request.input_names) == len(tensors) == 3
    total, scale = model(*tensors)
    assert (total.tolist(), scale.item()) == ([4.0, 4.0, 4.0], 2.0)
    assert export_request.output_names == ("output_0", "output_1")


@pytest.mark.parametrize(
    ("axes", "asked"),
    [
        (None, {}),
        ({"input": [0]}, {"input": {0: "input_dim0"}}),
        ({"input": {0: Dim("B", min=2, max=9)}}, {"input": {0: "B"}}),
        ({"input": {0: SizeFrom("B", 0)}}, {"input": {0: "B"}}),
        ({"input": {0: 2 * Dim("B")}}, {"input": {0: "2*B"}}),
    ],
)
def test_dynamic_axes_are_asked_for_by_their_symbols(axes: Any, asked: dict[str, Any]) -> None:
    assert request(nn.Linear(3, 4), torch.ones(6, 3), dynamic_axes=axes).dynamic_axes == asked


def test_what_no_exporter_is_asked_for_is_refused() -> None:
    axes = {"input": {0: "B"}}
    with pytest.raises(RefusedError, match="toy writes fixed sizes alone"):
        request(nn.Linear(3, 4), torch.ones(6, 3), exporter=Fixed(), dynamic_axes=axes)
    assert request(nn.Linear(3, 4), torch.ones(6, 3), exporter=Fixed()).dynamic_axes == {}
    sequence, hidden = torch.ones(6, 1, 3), torch.zeros(1, 1, 4)
    with pytest.raises(RefusedError, match="the option `state` is not supported for other exporters"):
        request(nn.GRU(3, 4), {"input": sequence, "hx": hidden}, state={"hx": 1})


def test_a_method_is_asked_for_as_a_module() -> None:
    class Net(nn.Module):
        def encode(self, x: torch.Tensor) -> torch.Tensor:
            return x * 3

    model, tensors = request(Net(), torch.ones(2), fn_name="encode").flat()
    assert model(*tensors).tolist() == [3.0, 3.0]


def test_all_exporters_are_judged_by_the_same_samples() -> None:
    export = ModelExport(nn.Linear(3, 4).eval(), torch.ones(6, 3), dynamic_axes={"input": {0: Dim("B", min=1, max=9)}})
    samples = samples_of(export)
    for exporter in (Toy(), Fixed()):
        assert samples_of(export) is samples, exporter.name
    sizes = [sample.sizes["B"] for sample in samples]
    assert sizes[0] == 6, "the example"
    assert len(set(sizes)) >= 4
    assert set(sizes) <= set(range(1, 10))
    for sample in samples:
        expected = export.model(torch.from_numpy(sample.inputs[0])).detach().numpy()
        assert (sample.expected[0] == expected).all()


def test_a_model_that_does_not_run_has_no_samples() -> None:
    with pytest.raises(InputError, match="mat1 and mat2"):
        request(nn.Linear(3, 4), torch.ones(2, 5))
