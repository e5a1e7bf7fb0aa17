"""The decorator of built-in rewriters: users' rewriters precede them, and they are not reported if unused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from t2n_core.rewriter.specs import Rewriter, function


def builtin_function(path: str) -> Callable[[Any], Rewriter]:
    """Replace the function or method of an import path, for all targets. Its module is before the colon."""

    def decorate(replacement: Any) -> Rewriter:
        return replace(function(path)(replacement), builtin=True)

    return decorate
