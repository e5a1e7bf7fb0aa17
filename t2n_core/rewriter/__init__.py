"""Rewriters: changes to models that cannot be exported as they are, applied during the export and undone afterwards.

from t2n_core import rewriter

@rewriter.function(torch.matmul, target="tract")
def matmul__tract(ctx, input, other):
    return torch.einsum("...ij,...jk->...ik", input, other)

export_model_to_nnef(model, args, "model.nnef.tgz", TractNNEF("0.21"), rewriters=[matmul__tract])

FUNCTION_REWRITER, MODULE_REWRITER and SYMBOLIC_REWRITER register such rewriters for all exports, by mmdeploy's names.
"""

from t2n_core.errors import RewriteWarning
from t2n_core.rewriter.context import RewriteContext, get_context
from t2n_core.rewriter.registries import FUNCTION_REWRITER, MODULE_REWRITER, SYMBOLIC_REWRITER
from t2n_core.rewriter.report import RewriteReport
from t2n_core.rewriter.specs import Rewriter, function, method, module, switch_off, symbolic

__all__ = [
    "FUNCTION_REWRITER",
    "MODULE_REWRITER",
    "SYMBOLIC_REWRITER",
    "RewriteContext",
    "RewriteReport",
    "RewriteWarning",
    "Rewriter",
    "function",
    "get_context",
    "method",
    "module",
    "switch_off",
    "symbolic",
]
