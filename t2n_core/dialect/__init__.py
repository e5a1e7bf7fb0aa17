"""The meaning of tract's NNEF: a definition of each operator, and an evaluator of archives over them."""

from t2n_core.dialect.graphs.drawing import draw_inputs
from t2n_core.dialect.graphs.evaluation import evaluate
from t2n_core.dialect.operators import operators
from t2n_core.dialect.tensors import Tensor

__all__ = ["Tensor", "draw_inputs", "evaluate", "operators"]
