"""The emitter's attributes: operators of the target, and nothing else."""

from __future__ import annotations

import pytest

from t2n_core.nnef.dialects import emitter_for
from t2n_core.nnef.spec import spec_for


@pytest.mark.parametrize(("target", "version"), [("tract", "0.23.9"), ("khronos", "1.0.5")])
def test_a_misspelt_attribute_is_an_error(target: str, version: str) -> None:
    g = emitter_for(spec_for(target, version))
    assert callable(g.matmul)
    with pytest.raises(AttributeError, match=r"has no attribute or operator `matmull`; did you mean matmul"):
        _ = g.matmull
    with pytest.raises(AttributeError, match="has no attribute or operator `rows_overun`"):
        _ = g.rows_overun
