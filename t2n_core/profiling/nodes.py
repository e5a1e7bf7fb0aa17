"""The engine's profile: nodes of the optimised graph with their time, and the statement that owns each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from t2n_core.errors import InputError
from t2n_core.nnef.reading.document import Assignment, Document

_IDLE: Final = ("OptMatMulPack", "MatMatMulPack", "Const", "Source")
"""Beginnings of the operators of nodes that do no work of a statement of their own."""
_PRODUCTS: Final = frozenset(("matmul", "conv", "deconv", "separable_conv", "linear", "tract_core_einsum"))
_HEAVY_NODES: Final = ("MatMul", "Conv", "EinSum", "DepthWise")


@dataclass(frozen=True, slots=True)
class ProfiledNode:
    """One node of the optimised graph."""

    name: str
    operator: str
    seconds: float
    """Mean time of one run."""
    inside: int = 0
    """Nodes of its body, for a scan: the engine gives them no time of their own."""


def read_nodes(text: str) -> list[ProfiledNode]:
    """Return the nodes of an engine's profile that take time, the slowest first. Raises InputError."""
    try:
        nodes = json.loads(text)["nodes"]
        nested: dict[int, int] = {}
        for node in nodes:
            for outer in node["qualified_id"][0][:1]:
                nested[outer[0]] = nested.get(outer[0], 0) + 1
        found = [_node(node, nested) for node in nodes if not node["qualified_id"][0]]
    except (ValueError, KeyError, TypeError, IndexError) as wrong:
        raise InputError(f"the engine's profile cannot be read: {wrong!r}") from wrong
    return sorted((node for node in found if node.seconds > 0), key=lambda node: -node.seconds)


def _node(node: Mapping[str, Any], nested: Mapping[int, int]) -> ProfiledNode:
    own = int(node["qualified_id"][1])
    return ProfiledNode(node["node_name"], node["op_name"], float(node.get("secs_per_iter") or 0.0), nested.get(own, 0))


class Owners:
    """The statement that a node belongs to.

    A node bears the name of a statement, with more after it. A product into which the engine has fused others bears
    that of the last one: the product is found by walking back through statements that own no node.
    """

    def __init__(self, document: Document, nodes: Iterable[ProfiledNode]) -> None:
        self._made: dict[str, Assignment] = {name: one for one in document.assignments for name in one.results}
        working = [(node, self.named(node.name)) for node in nodes if not node.operator.startswith(_IDLE)]
        doing = [name for node, name in working if self._is_product(node) or not self._multiplies(name)]
        self._owning = {name for name in doing if name}

    def _multiplies(self, name: str) -> bool:
        return name in self._made and self._made[name].operator in _PRODUCTS

    @staticmethod
    def _is_product(node: ProfiledNode) -> bool:
        return any(word in node.operator for word in _HEAVY_NODES)

    def named(self, node: str) -> str:
        """Return the longest name of a value that a node's name begins with, up to `_`, `.` or its end; '' if none."""
        end = len(node)
        while end > 0:
            if node[:end] in self._made and (end == len(node) or node[end] in "_."):
                return node[:end]
            end -= 1
        return ""

    def owner(self, node: ProfiledNode) -> str:
        """Return the value whose statement does the work of a node; '' if none is known."""
        name = self.named(node.name)
        if not name or not self._is_product(node):
            return name
        return next((one for one in [name, *self._absorbed(name)] if self._multiplies(one)), name)

    def _absorbed(self, name: str) -> Sequence[str]:
        """Return the values, backwards from one, that no node of their own computes."""
        found: list[str] = []
        waiting = [name]
        while waiting:
            for operand in map(str, self._made[waiting.pop(0)].names()):
                if operand in self._made and operand not in self._owning and operand not in found:
                    found.append(operand)
                    waiting.append(operand)
        return found

    def statement(self, name: str) -> Assignment | None:
        """Return the statement of a value."""
        return self._made.get(name)


__all__ = ["Owners", "ProfiledNode", "read_nodes"]
