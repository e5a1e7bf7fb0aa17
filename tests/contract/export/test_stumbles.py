"""Small things that a new user meets: errors that name what to do, and values that print in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from t2n_core import ModelExport, TractNNEF, export_model_to_nnef
from t2n_core.engine.protocol import EngineReply, EngineStage
from t2n_core.errors import CaptureError, InputError, RangeWarning, UnsupportedOpsError
from t2n_core.parity.check import check_parity
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from tests.nets import OfFunction, net_of
from tests.releases import NEWEST


def test_a_dim_without_a_module_of_its_own(tmp_path: Path) -> None:
    export = ModelExport(nn.Linear(6, 4), {"input": torch.randn(5, 6)}, dynamic_axes={"input": {0: Dim("B", max=9)}})
    assert str(export.to(TractNNEF(NEWEST), tmp_path / "m.tar").range) == "0 <= B <= 9"


def test_an_axis_that_a_module_of_pytorch_fixes_names_no_line_of_ours() -> None:
    export = ModelExport(nn.Linear(6, 4), {"input": torch.randn(5, 6)}, dynamic_axes={"input": {1: "T"}})
    with pytest.raises(CaptureError, match="The size is 6 because of aten::linear") as refused:
        _ = export.captured
    assert "t2n_core" not in str(refused.value)


@pytest.mark.parametrize("given", [lambda x: x, lambda x: (x,), lambda x: {"input": x}], ids=["bare", "tuple", "dict"])
def test_arrays_of_numpy_are_inputs(given: Any, tmp_path: Path) -> None:
    array = np.random.default_rng(3).standard_normal((5, 6)).astype(np.float32)
    before = array.copy()
    result = ModelExport(nn.Linear(6, 4).eval(), given(array)).to(TractNNEF(NEWEST), tmp_path / "m.tar")
    result.assert_parity("approximate")
    np.testing.assert_array_equal(array, before)


def test_random_numbers() -> None:
    with pytest.raises(UnsupportedOpsError, match="draws random numbers, and a graph has none"):
        ModelExport(net_of(lambda _, x: x + torch.randn_like(x)), torch.randn(2, 3)).lower(TractNNEF(NEWEST))


COMPUTED = {
    "padding": lambda x: F.conv1d(x, torch.ones(4, 4, 3), padding=x.shape[2] // 4),
    "dilation": lambda x: F.conv1d(x, torch.ones(4, 4, 2), dilation=x.shape[2] // 2),
    "stride": lambda x: F.conv1d(x, torch.ones(4, 4, 1), stride=x.shape[2] // 4 + 1),
    "alpha": lambda x: F.celu(x, alpha=x.shape[2] * 1.0),
}


@pytest.mark.parametrize("argument", list(COMPUTED))
def test_an_argument_that_must_be_a_number(argument: str) -> None:
    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return COMPUTED[argument](x)

    export = ModelExport(Net(), torch.randn(2, 4, 8), dynamic_axes={"x": {2: "T"}})
    with pytest.raises(UnsupportedOpsError, match=f"does not support `{argument}`.* computed from a dynamic size"):
        export.lower(TractNNEF(NEWEST))


def test_an_argument_that_the_range_fixes_is_a_number() -> None:
    model = OfFunction(lambda x: x.std(2, correction=x.shape[2] // 4))
    export = ModelExport(model, torch.randn(2, 4, 8), dynamic_axes={"x": {2: "T"}})
    with pytest.warns(RangeWarning, match="8 <= T <= 11"):
        graph = export.lower(TractNNEF(NEWEST))
    assert str(graph.sizes) == "8 <= T <= 11"


def test_a_derivative() -> None:
    net = net_of(lambda _, x: torch.func.grad(lambda v: v.sin().sum())(x))
    with pytest.raises(CaptureError, match="leaves a tensor of a function transform"):
        ModelExport(net, torch.randn(2, 3)).lower(TractNNEF(NEWEST))


@pytest.mark.parametrize("target", ["tract", "0.23", TractNNEF])
def test_what_is_no_target(target: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not an InferenceTarget"):
        export_model_to_nnef(nn.Tanh(), torch.randn(2, 3), tmp_path / "m.tgz", target)
    with pytest.raises(InputError, match="not an InferenceTarget"):
        ModelExport(nn.Tanh(), torch.randn(2, 3)).to(target, tmp_path / "m.tgz")


class Hanging:
    """An engine that did not answer."""

    name, version, kept_states = "tract", NEWEST, None

    def __init__(self, stage: EngineStage = "run") -> None:
        self.stage = stage

    def run(self, archive: Path, batches: Any, *, timeout: float = 60.0) -> EngineReply:
        return EngineReply("timeout", self.stage, "killed, since it did not answer in time")

    def close(self) -> None: ...


def test_a_hanging_engine_says_how_long_it_had(tmp_path: Path) -> None:
    archive = tmp_path / "m.tar"
    archive.write_bytes(b"archive")
    x = torch.randn(2, 3).numpy()
    text = check_parity(Hanging(), CheckRequest(archive, [Sample((x,), (x,))], ["y"], timeout=7)).describe()
    assert "did not answer in time (7 seconds)" in text
    assert "give it more time: --timeout of `t2n`, or of a test --t2n-timeout" in text
    sample = Sample((x,), (x,), {"H": 2, "W": 3})
    loading = check_parity(Hanging("load"), CheckRequest(archive, [sample], ["y"], timeout=7)).describe()
    assert "the free sizes H, W: give fewer axes a free size; `t2n bisect-releases` names the releases" in loading


def test_values_print_in_one_line(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(6, 4), nn.Tanh()).eval()
    export = ModelExport(model, {"input": torch.randn(5, 6)}, dynamic_axes={"input": {0: "B"}})
    result = export.to(TractNNEF(NEWEST), tmp_path / "m.tar")
    outcome = result.check_parity()
    assert repr(export) == "<ModelExport of Sequential: input>"
    assert repr(result) == f"<ExportResult m.tar for tract {NEWEST}: input -> output, holds for B >= 1>"
    assert repr(outcome).startswith(f"<Outcome pass at `{outcome.level}` in tract {NEWEST}, stage compare")
    assert max(len(repr(value)) for value in (export, result, outcome)) < 300


def test_notebooks_show_graph_and_comparison(tmp_path: Path) -> None:
    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(x) * 2  # <this line>

    result = ModelExport(Net(), torch.randn(2, 3)).to(TractNNEF(NEWEST), tmp_path / "m.tar")
    page = result._repr_html_()
    assert "test_stumbles.py" in page
    assert "torch.tanh(x) * 2" in page
    assert "&lt;this line&gt;" in page
    assert "tanh(x)" in page
    assert "<th>max abs</th>" in result.check_parity()._repr_html_()
