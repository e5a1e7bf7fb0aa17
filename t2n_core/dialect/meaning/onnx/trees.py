"""Ensembles of decision trees."""

from __future__ import annotations

import operator
from typing import Final

import numpy as np

from t2n_core.dialect.arrays import Array
from t2n_core.dialect.registry import defines
from t2n_core.errors import SpecError

_COMPARISONS: Final = {1: operator.eq, 2: operator.ne, 3: operator.lt, 4: operator.gt, 5: operator.le, 6: operator.ge}
_NAN_IS_TRUE: Final = 0x100


def _leaf(features: Array, node: int, nodes: Array) -> tuple[int, int]:
    """Return the rows of `leaves` that belong to the leaf which a sample reaches."""
    while True:
        feature, if_true, if_false, bits, flags = (int(word) for word in nodes[node])
        compare = _COMPARISONS.get(flags & 0xFF)
        if compare is None:
            return feature, if_true
        value, threshold = np.float32(features[feature]), np.array([bits], dtype=np.uint32).view(np.float32)[0]
        holds = bool(flags & _NAN_IS_TRUE) if np.isnan(value) else bool(compare(value, threshold))
        node = if_true if holds else if_false


@defines("tract_onnx_ml_tree_ensemble_classifier", result="float32")
def tree_ensemble_classifier(
    input: Array, trees: Array, nodes: Array, leaves: Array, max_used_feature: int, n_classes: int, aggregate_fn: str
) -> Array:
    """Return the scores of classes from the leaves that a sample reaches in each tree.

    Shapes: input [N, features], trees [T] the row of each root in `nodes`, nodes [.., 5], leaves [.., 2], result [N,
    n_classes]; `trees`, `nodes` and `leaves` are uint32. A row of `nodes` is a branch: feature, row if true, row if
    false, the bits of the float32 threshold, and the comparison: 1 to 6 for ==, !=, <, >, <=, >=, plus 256 where NaN
    counts as true. Any other comparison makes it a leaf: the first row, and the row after the last one, in `leaves`,
    each a class and the bits of a float32 score. The votes for a class are combined by `SUM`, `AVERAGE`, `MAX` or
    `MIN`; without a vote it is 0.
    Source: ONNX TreeEnsembleClassifier-ml-3; tract onnx-opl/src/ml/tree.rs.
    """
    output = np.zeros([input.shape[0], n_classes])
    rows, votes = np.reshape(nodes, (-1, 5)), np.reshape(leaves, (-1, 2))
    for sample in range(input.shape[0]):
        scores: list[list[float]] = [[] for _ in range(n_classes)]
        for root in np.ravel(trees):
            first, last = _leaf(input[sample], int(root), rows)
            for label, bits in votes[first:last]:
                scores[int(label)].append(float(np.array([bits], dtype=np.uint32).view(np.float32)[0]))
        for label, weights in enumerate(scores):
            if weights:
                output[sample, label] = _aggregate(weights, aggregate_fn)
    return output


def _aggregate(scores: list[float], method: str) -> float:
    match method:
        case "SUM":
            return sum(scores)
        case "AVERAGE":
            return sum(scores) / len(scores)
        case "MAX":
            return max(scores)
        case "MIN":
            return min(scores)
        case _:
            raise SpecError(f"no aggregate is called {method!r}", op="tract_onnx_ml_tree_ensemble_classifier")
