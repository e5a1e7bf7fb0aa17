"""A model that computes something else while it is captured, or at each call, does not pass."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _get_current_dispatch_mode

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import T2NError
from t2n_core.parity.stage import Status
from tests.releases import NEWEST

AXES = pytest.mark.parametrize("axes", [{}, {"x": {0: "B"}}], ids=["static", "dynamic"])


class Net(nn.Module):
    def __init__(self, compute: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        self.compute, self.calls, self.last = compute, 0, torch.zeros(())

    def forward(self, x: Tensor) -> Tensor:
        return self.compute(self, x)


def x3(captured: Callable[[Tensor], object]) -> Callable[[Any, Tensor], Tensor]:
    """Return a function that computes 3x, and 2x where it finds that it is captured."""
    return lambda net, x: x * 2 if captured(x) else x * 3


DETECTS = {
    "exporting": x3(lambda x: torch.compiler.is_exporting()),
    "compiling": x3(lambda x: torch.compiler.is_compiling()),
    "fake": x3(lambda x: isinstance(x, FakeTensor)),
    "type": x3(lambda x: type(x) is not Tensor),
    "mode": x3(lambda x: _get_current_dispatch_mode() is not None),
    "frames": x3(lambda x: any(frame.function == "_export_to_torch_ir" or "proxy_tensor" in frame.filename
                               for frame in inspect.stack(0))),
}  # fmt: skip


def counted(net: Any, x: Tensor) -> Tensor:
    net.calls += 1
    return x * net.calls


CALLS = [0]


def counted_elsewhere(net: Any, x: Tensor) -> Tensor:
    CALLS[0] += 1
    return x * CALLS[0]


def remembered(net: Any, x: Tensor) -> Tensor:
    y = x + net.last
    net.last = x.detach().sum()
    return y


STATES = {"attribute": counted, "global": counted_elsewhere, "tensor": remembered}
DRAWS = {
    "python": lambda net, x: x * random.random(),
    "numpy": lambda net, x: x * float(np.random.default_rng().random()),
    "constant": lambda net, x: x * torch.tensor(random.random()),
    "torch": lambda net, x: x * torch.rand(()),
    "dropout": lambda net, x: torch.dropout(x, 0.5, True),
}


def status_of(model: nn.Module, axes: Any, folder: Path, dtype: torch.dtype = torch.float32) -> Status | type:
    """Return how the check of an archive ends, or the error that refuses to export."""
    torch.manual_seed(1)
    try:
        export = ModelExport(model.eval(), {"x": torch.randn(3, 4, dtype=dtype)}, dynamic_axes=axes)
        result = export.to(TractNNEF(NEWEST, check_io=False, dynamic_axes=axes), folder / "m.tar")
    except T2NError as error:
        return type(error)
    return result.check_parity().status


@AXES
@pytest.mark.parametrize("name", list(DETECTS))
def test_a_model_that_detects_its_capture_is_a_mismatch(name: str, axes: Any, tmp_path: Path) -> None:
    assert status_of(Net(DETECTS[name]), axes, tmp_path) is Status.MISMATCH


@AXES
@pytest.mark.parametrize("name", list(STATES))
def test_a_model_with_a_hidden_state_does_not_pass(name: str, axes: Any, tmp_path: Path) -> None:
    status = status_of(Net(STATES[name]), axes, tmp_path)
    assert status is Status.MISMATCH or (name == "tensor" and isinstance(status, type))


@AXES
@pytest.mark.parametrize("name", list(DRAWS))
def test_a_model_that_draws_numbers_does_not_pass(name: str, axes: Any, tmp_path: Path) -> None:
    status = status_of(Net(DRAWS[name]), axes, tmp_path)
    assert status is Status.MISMATCH or (name in ("torch", "dropout") and isinstance(status, type))


class Copied(nn.Module):
    """Computes 3x; a copy that it makes of itself computes 2x, and so does what is captured."""

    def __init__(self, dtype: torch.dtype, copied: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((4,), 2.0, dtype=dtype))
        self.copied = copied

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight * (1.0 if self.copied or torch.compiler.is_exporting() else 1.5)

    def __deepcopy__(self, memo: Any) -> Copied:
        return Copied(self.weight.dtype, copied=True)


@pytest.mark.filterwarnings("ignore:.*bfloat16:UserWarning")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_a_model_is_not_judged_by_the_copy_that_it_makes_of_itself(dtype: torch.dtype, tmp_path: Path) -> None:
    assert status_of(Copied(dtype), {}, tmp_path, dtype) is Status.MISMATCH
