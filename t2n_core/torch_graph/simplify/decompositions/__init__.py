"""Our own decompositions, for operators that PyTorch's table does not decompose.

    @decomposition("aten::mvlgamma")
    def mvlgamma(self: Tensor, p: int) -> Tensor: ...

The function takes the arguments of the torch schema and is traced on fake tensors, like PyTorch's decompositions; its
steps are looked up again. It raises `Refusal` for a call that it cannot decompose, which becomes the reason in the
error message. A loop over sizes is an operator of `custom_ops/factorisation_steps.py`.
"""

from __future__ import annotations

from t2n_core.torch_graph.simplify.by_overload import ByOverload

_TABLE = ByOverload(__name__, __path__)
decomposition = _TABLE.register
"""Registers a decomposition for all overloads of an operator, or for one (`aten::median.dim`)."""
find = _TABLE.find
"""Our decomposition of an operator, if there is one."""
all_decompositions = _TABLE.overloads


class Refusal(Exception):  # noqa: N818  it is not an error of the program
    """The reason why a call has no decomposition."""
