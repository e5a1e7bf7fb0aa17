"""The results that marked tests return, and the messages for tests that return or check too little."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

TO_RETURN = (
    "a test marked nnef_export returns (model, inputs), where inputs are a tuple of tensors, a dict of name to tensor, "
    "or one tensor; or it takes the fixture `nnef_export` and calls it"
)

NOT_MARKED = (
    "this test returns a model and its inputs, and nothing checks them: mark it with @pytest.mark.nnef_export, and "
    "look for a misspelt marker (--strict-markers finds those)"
)
RETURNED_BESIDE_FIXTURE = (
    "this test takes the fixture `nnef_export` and also returns a model, which is not checked: pass it to the fixture, "
    "or remove the fixture"
)

TO_CHECK = (
    "call `assert_parity()` of the result of `nnef_export(model, inputs)`, or mark the test with "
    "@pytest.mark.nnef_export(check=False) if it is only about the export"
)

TO_RETURN_GENERATING = (
    "a test marked nnef_generate returns (model, prompt), where prompt is a tensor of tokens [batch, count] or the "
    "arguments of `generate` by name; or only the model"
)

TO_RETURN_PROGRAM = "a test marked nnef_program returns a `t2n_core.program.Program`"
TO_RETURN_FILE = (
    "a test marked nnef_file returns nothing, inputs by name, a pair of inputs and expected outputs, or a PyTorch "
    "module and its inputs; before these two the ONNX model or its path, if the marker names none"
)


def refuse_async(test: Callable[..., Any], returned: Any) -> Any:
    """Return what a test returned. Fails an async one, whose result a plugin that awaits it drops."""
    __tracebackhide__ = True
    if inspect.iscoroutine(returned):
        returned.close()
    if inspect.iscoroutinefunction(inspect.unwrap(test)):
        pytest.fail(f"this test is async: {TO_RETURN}", pytrace=False)
    return returned


def model_and_inputs(returned: Any) -> tuple[Any, Any]:
    """Return the model and the inputs that a test returned. Fails a test that returned anything else."""
    __tracebackhide__ = True
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        pytest.fail(f"this test returned {summary(returned)}: {TO_RETURN}", pytrace=False)
    model, inputs = returned
    if inputs is None or isinstance(inputs, str | bytes):
        pytest.fail(f"the inputs of this test are {summary(inputs)}: {TO_RETURN}", pytrace=False)
    return model, inputs


def summary(value: Any) -> str:
    """Return the kind of a value in words."""
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return "nothing" if value is None else f"a {type(value).__name__}"
