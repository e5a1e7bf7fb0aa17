"""The run of an archive, as the operators see it that need more than their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from t2n_core.dialect.tensors import Tensor
from t2n_core.nnef.reading.tree import Statement
from t2n_core.nnef.signatures import Signature


class Run(Protocol):
    """One evaluation of a graph."""

    @property
    def tensors(self) -> Mapping[str, Any]:
        """The weights of the archive, by label."""

    def typed(self, array: Any, dtype: np.dtype[Any], is_constant: bool = False) -> Tensor:
        """Return a computed array as a tensor of this data type."""

    def body_of(self, name: str) -> tuple[Signature, tuple[Statement, ...]]:
        """Return signature and statements of a fragment. Raises InputError if there is none."""

    def run_fragment(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the result of a fragment, several as a tuple."""
