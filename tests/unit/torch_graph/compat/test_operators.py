"""Operators by name: those that the installed PyTorch lacks are left out, misspelt ones are refused."""

from __future__ import annotations

import pytest
import torch

from t2n_core.errors import RegistryError, TorchVersionError
from t2n_core.op.registry import Registry, op
from t2n_core.torch_graph.compat import operators
from t2n_core.torch_graph.compat.operators import Change, find_overloads, functional_overloads, may_be_absent, operator


def test_overloads_of_an_operator() -> None:
    assert find_overloads("aten::median.dim") == [torch.ops.aten.median.dim]
    assert torch.ops.aten.median.dim_values in find_overloads("aten::median")
    assert find_overloads("aten::median.nothing") == []
    assert find_overloads("aten::no_such_operator") == []


def test_overloads_that_write_into_an_argument_are_left_out() -> None:
    names = {overload._overloadname for overload in functional_overloads("aten::relu")}
    assert names == {"default"}


def test_a_misspelt_operator_is_refused() -> None:
    with pytest.raises(RegistryError, match="no operator aten::reluu"):
        functional_overloads("aten::reluu")
    with pytest.raises(RegistryError, match="no operator aten::reluu"):
        op("aten::reluu", registry=Registry())(lambda g, self: self)


def test_an_operator_of_another_release_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "CHANGES", (Change("aten::reluu", since="2.90"),))
    registry = Registry()
    op("aten::reluu", "aten::relu", registry=registry)(lambda g, self: self)
    assert [rule.key for rule in registry] == ["aten::relu"]
    assert functional_overloads("aten::reluu") == []
    assert may_be_absent("aten::reluu.default")
    assert not may_be_absent("aten::relu")


def test_any_operator_may_be_absent_from_an_untested_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "2.90.0")
    assert may_be_absent("aten::relu")
    assert functional_overloads("aten::no_such_operator") == []


def test_a_required_operator_that_is_absent_names_the_release() -> None:
    assert operator("aten::slice.Tensor") is torch.ops.aten.slice.Tensor
    with pytest.raises(TorchVersionError, match=r"torch \S+ has no aten::no_such_operator") as raised:
        operator("aten::no_such_operator")
    assert "pip install torch==" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("change", "release", "expected"),
    [
        (Change("aten::x", before="2.14"), "2.13.0", True),
        (Change("aten::x", before="2.14"), "2.14.1+cu130", False),
        (Change("aten::x", since="2.14"), "2.13.7", False),
        (Change("aten::x", since="2.14"), "2.14.0", True),
        (Change("aten::x", since="2.14", before="2.15"), "2.15.0", False),
    ],
)
def test_the_releases_of_a_change(change: Change, release: str, expected: bool) -> None:
    assert change.is_in(release) is expected
