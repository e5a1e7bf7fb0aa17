"""Messages for marked tests that return or check too little."""

from __future__ import annotations

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
