"""The meaning of tract's NNEF: a definition of each operator, and an evaluator of archives over them.

It needs NumPy, and neither PyTorch nor an engine. What this module exports is stable.
"""

from t2n_core.dialect.cases import Case, cases
from t2n_core.dialect.graphs.drawing import draw_inputs
from t2n_core.dialect.graphs.evaluation import evaluate
from t2n_core.dialect.operators import operators
from t2n_core.dialect.tensors import Tensor

__all__ = ["Case", "Tensor", "cases", "draw_inputs", "evaluate", "operators"]
