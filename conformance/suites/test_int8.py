"""Suite `int8`: nets of 8 bits, as torch.ao (eager mode, FX, dynamic) and pt2e leave them.

Each layer is within one step of PyTorch's grid, at all sizes of its batch. Deep nets differ by no more than PyTorch's
own engines do from one another. `--complete` runs all nets, torchvision's among them where it is installed.
"""

from __future__ import annotations

from typing import Any

import pytest

from conformance.cases.int8.case import packing
from conformance.checks.int8 import all_nets, export_of

KHRONOS = ("linear", "conv2d-relu", "cat", "pools", "activations", "dynamic-x86")
"""Nets for which the words of the standard reach; their weights are float32 there."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "net" in metafunc.fixturenames:
        metafunc.parametrize("net", list(all_nets(complete=metafunc.config.getoption("complete"))))


@pytest.mark.nnef_export(target="tract")
def test_int8(net: str, nnef_export: Any, request: pytest.FixtureRequest) -> None:
    """`--capture-way=trace` proves them by way of torch.jit.trace."""
    export, judged = export_of(net, request.config.getoption("capture_way"))
    with packing(all_nets()[net].engine):
        nnef_export(export).assert_parity(**judged)


@pytest.mark.nnef_export(target="khronos")
@pytest.mark.parametrize("name", KHRONOS)
def test_int8_in_the_standard(name: str, nnef_export: Any) -> None:
    export, judged = export_of(name, fixed=True)
    with packing(all_nets()[name].engine):
        nnef_export(export).assert_parity(**judged)
