"""Functions of PyTorch are replaced for a block, and put back."""

from __future__ import annotations

import pytest
import torch

from t2n_core.errors import TorchVersionError
from t2n_core.torch_graph.compat.patches import replaced, swaps


def test_a_function_is_replaced_and_put_back() -> None:
    plain = torch.fx.proxy.TracerBase
    with replaced("torch.fx.proxy.TracerBase", lambda original: (original, "new")):
        assert torch.fx.proxy.TracerBase == (plain, "new")
    assert torch.fx.proxy.TracerBase is plain


def test_a_builtin_is_shadowed_in_one_module() -> None:
    with replaced("torch.export._trace.print", lambda _: "quiet"):
        assert vars(torch.export._trace)["print"] == "quiet"
    assert "print" not in vars(torch.export._trace)


@pytest.mark.parametrize("path", ["torch.fx.proxy.NoSuchName", "torch.no_such_module.name"])
def test_an_absent_name(path: str) -> None:
    with pytest.raises(TorchVersionError, match=f"has no {path}"), replaced(path, lambda plain: plain):
        pass
    with replaced(path, lambda plain: plain, optional=True):
        pass


def test_a_static_method_and_an_inherited_attribute_come_back_as_they_were() -> None:
    class Base:
        size = 1

        @staticmethod
        def name() -> str:
            return "plain"

    class Derived(Base):
        pass

    def fail_while_swapped() -> None:
        with swaps() as swap:
            swap(Base, "name", staticmethod(lambda: "new"))
            swap(Derived, "size", 2)
            assert (Base.name(), Derived().name(), Derived.size, Base.size) == ("new", "new", 2, 1)
            raise KeyError

    plain = vars(Base)["name"]
    with pytest.raises(KeyError):
        fail_while_swapped()
    assert vars(Base)["name"] is plain
    assert "size" not in vars(Derived)
