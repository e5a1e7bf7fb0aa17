"""Fixtures of the tests of engines' files."""

from __future__ import annotations

from tests.local_index import local_index, pip_calls, quick_index

__all__ = ["local_index", "pip_calls", "quick_index"]
