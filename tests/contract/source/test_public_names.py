"""The public names of the core have docstrings."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest_t2n
import t2n_core
from t2n_core import errors

PACKAGES = [Path(package.__file__).parent for package in (t2n_core, pytest_t2n)]
ROOT = PACKAGES[0].parent


def undocumented(name: str, value: Any) -> Iterator[str]:
    """Yield a public function or class, and the public methods of a class, that have no docstring."""
    if callable(value) and not value.__doc__:
        yield name
    for method, function in vars(value).items() if isinstance(value, type) else ():
        is_inherited = any(getattr(base, method, None) for base in value.__mro__[1:])
        if not method.startswith("_") and callable(function) and not function.__doc__ and not is_inherited:
            yield f"{name}.{method}"


def test_public_names_have_docstrings() -> None:
    assert [full_name for name in t2n_core.__all__ for full_name in undocumented(name, getattr(t2n_core, name))] == []


WARNINGS = sorted(name for name in t2n_core.__all__ if name.endswith("Warning"))


def test_all_warnings_are_public_on_one_page_and_cheap() -> None:
    """A filter in the configuration of pytest loads the class of each session, where torch may be missing."""
    classes = [getattr(errors, name) for name in WARNINGS]
    page = (ROOT / "docs/reference/api/errors.md").read_text("utf-8")
    assert {*re.findall(r"^\| `t2n_core\.(\w+)` ", page, flags=re.MULTILINE), "T2NWarning"} == {*WARNINGS}
    assert all(issubclass(category, errors.T2NWarning) for category in classes)
    defined = re.compile(r"^class \w+\(\w*Warning\)", flags=re.MULTILINE)
    holders = [file for folder in PACKAGES for file in folder.rglob("*.py") if defined.search(file.read_text("utf-8"))]
    assert holders == [Path(errors.__file__)]
    code = f"from t2n_core import {', '.join(WARNINGS)}; import sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_docstring_is_found() -> None:
    class Bare:
        def method(self) -> None: ...

    assert list(undocumented("Bare", Bare)) == ["Bare", "Bare.method"]
