"""The line of a user's rule or extractor, for its errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from t2n_core.text import line_of_error, source_line
from t2n_core.torch_graph.compat.files import NOT_THE_USERS
from t2n_core.torch_graph.custom_ops.module_calls import is_module_call
from t2n_core.torch_graph.graph.ir import TorchOp


def line_of_user(function: Callable[..., Any], op: TorchOp, cause: BaseException | None = None) -> str:
    """Return the line of a rule that failed, or the place of its definition; '' for a rule of this package.

    A node that a module or an autograd function became is written by an extractor, or by that function's rule.
    """
    if is_module_call(op.kind):
        function = op.arguments["key"].writer.function
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or code.co_filename.startswith(NOT_THE_USERS):
        return ""
    of_error = "" if cause is None else line_of_error(cause, NOT_THE_USERS)
    return of_error or source_line(code.co_filename, code.co_firstlineno, code.co_name, "")
