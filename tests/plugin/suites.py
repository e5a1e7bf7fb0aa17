"""Modules of tests as users write them."""

from __future__ import annotations


def marked(values: str = "", model: str = "value", name: str = "test_model") -> str:
    """Return a module with one marked test; given values, in Python, it is parametrized by `value`."""
    parameters = f'@pytest.mark.parametrize("value", {values})\n' if values else ""
    argument = "value" if values else ""
    return f"import pytest\n\n@pytest.mark.nnef_export\n{parameters}def {name}({argument}):\n    return {model}, (1,)\n"
