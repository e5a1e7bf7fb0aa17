"""Rewriters: changes to models that cannot be exported as they are, applied during the export and undone afterwards.

from t2n_core import rewriter

@rewriter.function(torch.matmul, target="tract")
def matmul__tract(ctx, input, other):
    return torch.einsum("...ij,...jk->...ik", input, other)

export_model_to_nnef(model, args, "model.nnef.tgz", TractNNEF("0.21"), rewriters=[matmul__tract])
"""

from t2n_core.rewriter.context import RewriteContext
from t2n_core.rewriter.report import RewriteReport, RewriteWarning
from t2n_core.rewriter.specs import Rewriter, function, method, module, switch_off, symbolic

__all__ = [
    "RewriteContext",
    "RewriteReport",
    "RewriteWarning",
    "Rewriter",
    "function",
    "method",
    "module",
    "switch_off",
    "symbolic",
]
