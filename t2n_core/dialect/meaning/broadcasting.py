"""Broadcasting of NNEF: axes are aligned at the front, and missing ones are added at the end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def aligned(*arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return the arrays with axes of extent 1 added at the end, so that all have the same rank.

    Source: NNEF 1.0.5, Broadcasting: shapes are compared from their first axis on, so that `[2]` fits
    `[2, 3]` and not `[3, 2]`.
    """
    arrays = tuple(map(np.asarray, arrays))
    rank = max(array.ndim for array in arrays)
    return tuple(array.reshape(array.shape + (1,) * (rank - array.ndim)) for array in arrays)
