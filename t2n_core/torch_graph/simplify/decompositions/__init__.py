"""Decompositions of our own, for operators that PyTorch's table does not take apart.

    @decomposition("aten::mvlgamma")
    def mvlgamma(self: Tensor, p: int) -> Tensor: ...

The function takes the arguments of the torch schema and is traced like PyTorch's decompositions are, on fake tensors;
its steps are looked up again. What it cannot take apart it refuses with `Refusal`, which becomes the reason a user
reads. A loop over sizes is an operator of `stand_ins/loops.py`.
"""

from __future__ import annotations

from t2n_core.torch_graph.simplify.by_overload import ByOverload

_TABLE = ByOverload(__name__, __path__)
decomposition = _TABLE.register
"""Registers a decomposition for all overloads of an operator, or for one (`aten::median.dim`)."""
find = _TABLE.find
"""Our decomposition of an operator, if there is one."""
all_decompositions = _TABLE.known


class Refusal(Exception):  # noqa: N818  it is no error of the program
    """The reason why a call has no decomposition."""
