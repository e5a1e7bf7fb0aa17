"""TorchScript: what it asks of a tensor's dtype is answered by the integers that it compares with."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.capture.tracer import TorchModuleTracer, bind_inputs
from t2n_core.torch_graph.frontend.torchscript.script_numbers import as_integer


def kinds(model: nn.Module, *args: torch.Tensor) -> list[str]:
    script = torch.jit.script(model)
    return [op.kind for op in TorchModuleTracer(script, args=bind_inputs(script, args)).trace().graph.op_nodes]


class ByDtype(nn.Module):
    """Takes one operator for each question that is answered with yes."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x.to(torch.float32)
        if x.dtype == torch.float32:
            z = z.relu()
        if x.dtype in [torch.uint8, torch.int64]:
            z = z.tanh()
        if x.dtype != y.dtype:
            z = z.exp()
        if x.layout == torch.strided:
            z = z.sin()
        if x.device.type == "cpu":
            z = z.cos()
        return z + torch.ones([1], dtype=torch.promote_types(y.dtype, torch.float32))


@pytest.mark.parametrize(
    ("dtype", "taken"),
    [(torch.float32, ["relu", "sin", "cos"]), (torch.uint8, ["tanh", "exp", "sin", "cos"])],
    ids=["float32", "uint8"],
)
def test_a_script_branches_on_dtypes_as_pytorch_does(dtype: torch.dtype, taken: list[str]) -> None:
    node_kinds = kinds(ByDtype(), torch.ones(2, 3).to(dtype), torch.ones(2, 3))
    branches = [kind.removeprefix("aten::") for kind in node_kinds if kind[6:] in ("relu", "tanh", "exp", "sin", "cos")]
    assert branches == taken


DTYPES = [getattr(torch, name) for name in ("uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16")]
DTYPES += [torch.float32, torch.float64, torch.complex64, torch.complex128, torch.bool]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_integer_of_a_dtype_is_the_one_that_operators_take(dtype: torch.dtype) -> None:
    dtype_code: Any = as_integer(dtype)
    assert torch.ops.aten.empty.memory_format([1], dtype=dtype_code).dtype == dtype


def test_a_dtype_that_no_archive_has_is_refused() -> None:
    with pytest.raises(CaptureError, match="float8_e5m2"):
        as_integer(torch.float8_e5m2)
