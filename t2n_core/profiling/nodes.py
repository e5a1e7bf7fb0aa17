"""The engine's profile: nodes of the optimised graph with their time, and the operation that owns each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from t2n_core.errors import InputError
from t2n_core.nnef.reading.document import Assignment, Document

_IDLE: Final = ("OptMatMulPack", "MatMatMulPack", "Const", "Source")
"""Prefixes of the operators of nodes that do not compute an operation."""
_PRODUCTS: Final = frozenset(("matmul", "conv", "deconv", "separable_conv", "linear", "tract_core_einsum"))
_ONNX_PRODUCTS: Final = frozenset(("Conv", "ConvTranspose", "Einsum", "Gemm", "MatMul"))
_HEAVY_NODES: Final = ("MatMul", "Conv", "EinSum", "DepthWise")


@dataclass(frozen=True, slots=True)
class ProfiledNode:
    """One node of the optimised graph."""

    name: str
    operator: str
    seconds: float
    """Mean time of one run."""
    inside: int = 0
    """Nodes of its body, for a scan: the engine does not measure them separately."""


def read_nodes(text: str) -> list[ProfiledNode]:
    """Return the nodes of an engine's profile that take time, the slowest first. Raises InputError."""
    try:
        nodes = json.loads(text)["nodes"]
        nested: dict[int, int] = {}
        for node in nodes:
            for outer in node["qualified_id"][0][:1]:
                nested[outer[0]] = nested.get(outer[0], 0) + 1
        profiled = [_node(node, nested) for node in nodes if not node["qualified_id"][0]]
    except (ValueError, KeyError, TypeError, IndexError) as wrong:
        raise InputError(f"the engine's profile cannot be read: {wrong!r}") from wrong
    return sorted((node for node in profiled if node.seconds > 0), key=lambda node: -node.seconds)


def _node(node: Mapping[str, Any], nested: Mapping[int, int]) -> ProfiledNode:
    node_id = int(node["qualified_id"][1])
    return ProfiledNode(
        node["node_name"], node["op_name"], float(node.get("secs_per_iter") or 0.0), nested.get(node_id, 0)
    )


class Owners:
    """Maps nodes to the operations that own them.

    A node's name begins with an operation's name. A product into which the engine has fused other operations has the
    last one's name: the product is found by walking back through operations that own no node.
    """

    def __init__(self, document: Document, nodes: Iterable[ProfiledNode]) -> None:
        self._producers: dict[str, Assignment] = {
            name: assignment for assignment in document.assignments for name in assignment.results
        }
        working = [(node, self.value_of(node.name)) for node in nodes if not node.operator.startswith(_IDLE)]
        doing = [name for node, name in working if self._is_product(node) or not self._multiplies(name)]
        self._owning = {name for name in doing if name}

    def _multiplies(self, name: str) -> bool:
        return name in self._producers and self._producers[name].operator in _PRODUCTS | _ONNX_PRODUCTS

    @staticmethod
    def _is_product(node: ProfiledNode) -> bool:
        return any(word in node.operator for word in _HEAVY_NODES)

    def value_of(self, node: str) -> str:
        """Return the longest name of a value that a node's name begins with, up to its end or one of `_.-`; else ''."""
        end = len(node)
        while end > 0:
            if node[:end] in self._producers and (end == len(node) or node[end] in "_.-"):
                return node[:end]
            end -= 1
        return ""

    def owner(self, node: ProfiledNode) -> str:
        """Return the value whose operation a node computes; '' if unknown."""
        name = self.value_of(node.name)
        if not name or not self._is_product(node):
            return name
        return next((candidate for candidate in [name, *self._fused_values(name)] if self._multiplies(candidate)), name)

    def _fused_values(self, name: str) -> Sequence[str]:
        """Return the values, backwards from one, that no separate node computes."""
        fused_names: list[str] = []
        waiting = [name]
        while waiting:
            for operand in map(str, self._producers[waiting.pop(0)].names()):
                if operand in self._producers and operand not in self._owning and operand not in fused_names:
                    fused_names.append(operand)
                    waiting.append(operand)
        return fused_names

    def statement(self, name: str) -> Assignment | None:
        """Return the operation of a value."""
        return self._producers.get(name)
