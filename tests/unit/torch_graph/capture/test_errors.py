"""Errors of models that PyTorch itself cannot run."""

from __future__ import annotations

import pytest

from t2n_core.torch_graph.capture.errors import refusal_to_run


@pytest.mark.parametrize(
    ("cause", "hint"),
    [
        (AttributeError("'Net' object has no attribute 'nothing'"), "the code of the model raises this in PyTorch too"),
        (KeyError("mel"), "the code of the model raises this in PyTorch too"),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), "compare dtypes and shapes"),
        (TypeError("forward() missing 1 required argument"), "compare dtypes and shapes"),
    ],
)
def test_a_refusal_to_run_says_whether_the_inputs_or_the_code_are_the_reason(cause: Exception, hint: str) -> None:
    error = refusal_to_run(cause, "Net", "example")
    assert str(cause) in error.message
    assert hint in error.hint
