"""Text that others wrote: names, messages and objects of users and engines, made fit to keep and to show."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, except tab and newline
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # they turn the direction of what follows
    "\ufeff\ud800-\udfff]"  # byte order marks, lone surrogates
)


def text_of(value: object) -> str:
    """Return `str(value)`, ready to be kept; where that raises, a text that says so."""
    try:
        return storable(str(value))
    except Exception as exc:
        return f"<str() of this {type(value).__name__} raises {type(exc).__name__}>"


def storable(text: str) -> str:
    r"""Return the text with lone surrogates as escapes (`\udcff`): no file and no pipe takes them as they are."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def clipped(text: str, most: int = 100_000) -> str:
    """Return the text, of a longer one the first `most` characters and how many were left out."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most} more characters)"


def all_storable(value: Any) -> Any:
    """Return a value of built-in types with all texts in it storable."""
    return _each_text(value, storable)


def all_visible(value: Any) -> Any:
    """Return a value of built-in types with all texts in it visible."""
    return _each_text(value, visible)


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if type(value) is str:
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(_each_text(item, change) for item in value)
    if type(value) is dict:
        return {_each_text(key, change): _each_text(item, change) for key, item in value.items()}
    return value


def visible(text: str) -> str:
    r"""Return the text with escapes (`\x1b`) in place of what a terminal or a page obeys, or does not show.

    Tabs and newlines stay.
    """
    return _HIDDEN.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


__all__ = ["all_storable", "all_visible", "clipped", "storable", "text_of", "visible"]
