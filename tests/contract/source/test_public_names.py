"""The public names of the core have docstrings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import t2n_core


def undocumented(name: str, value: Any) -> Iterator[str]:
    """Yield a public function or class, and the public methods of a class, that have no docstring."""
    if callable(value) and not value.__doc__:
        yield name
    for method, function in vars(value).items() if isinstance(value, type) else ():
        is_inherited = any(getattr(base, method, None) for base in value.__mro__[1:])
        if not method.startswith("_") and callable(function) and not function.__doc__ and not is_inherited:
            yield f"{name}.{method}"


def test_public_names_have_docstrings() -> None:
    assert [one for name in t2n_core.__all__ for one in undocumented(name, getattr(t2n_core, name))] == []


def test_a_missing_docstring_is_found() -> None:
    class Bare:
        def method(self) -> None: ...

    assert list(undocumented("Bare", Bare)) == ["Bare", "Bare.method"]
