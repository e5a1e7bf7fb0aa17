"""Messages for marked tests that return or call something else than they should."""

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
    "this test takes the fixture `nnef_export` and returns a model too, which nothing checks: hand it to the fixture, "
    "or leave the fixture out"
)

TO_CHECK = (
    "call `assert_parity()` of what `nnef_export(model, inputs)` gives, or say @pytest.mark.nnef_export(check=False) "
    "if the test is about the export alone"
)

TO_RETURN_GENERATING = (
    "a test marked nnef_generate returns (model, prompt), where prompt is a tensor of tokens [batch, number] or the "
    "arguments of `generate` by name; or the model alone"
)

__all__ = ["NOT_MARKED", "RETURNED_BESIDE_FIXTURE", "TO_CHECK", "TO_RETURN", "TO_RETURN_GENERATING"]
