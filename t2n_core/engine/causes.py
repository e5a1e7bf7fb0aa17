"""The chain of causes in an engine's error, put in the order and the length in which a person reads it."""

from __future__ import annotations

import re
from typing import Final

from t2n_core.text import clip

_CAUSED_BY: Final = re.compile(r"\n+Caused by:\n")
_NEXT: Final = re.compile(r"^ {2,}\d+: ", re.MULTILINE)
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_LONGEST_QUOTE: Final = 160
_LONGEST_LINE: Final = 800


def deepest_first(message: str) -> str:
    """Return an error with its deepest cause in the first line and what contains it below, long quotations cut.

    tract writes the outermost step first, and quotes a graph that it cannot parse in full. A message without a chain
    keeps its order, and so does one whose head has several lines: the first of them explains the error.
    """
    head, separator, chain = _partition(message)
    if not separator or "\n" in head:
        return _shorten(message)
    causes = [head, *(cause for cause in map(_in_one_line, _NEXT.split(f"{chain}\n")) if cause)]
    first, *outer = reversed(causes)
    return _shorten("\n".join([first, *(f"  in: {step}" for step in outer)]))


def _partition(message: str) -> tuple[str, bool, str]:
    match = _CAUSED_BY.search(message)
    return (message[: match.start()], True, message[match.end() :]) if match else (message, False, "")


def _in_one_line(cause: str) -> str:
    """Return a cause as a single line."""
    return " ".join(line.strip() for line in cause.splitlines()).strip()


def _shorten(message: str) -> str:
    shorter = _QUOTED.sub(_short_quote, message)
    return "\n".join(clip(line, _LONGEST_LINE) for line in shorter.split("\n"))


def _short_quote(match: re.Match[str]) -> str:
    quoted = match[0][1:-1]
    is_path = "/" in quoted and " " not in quoted  # a reader needs it whole, and equal errors differ in nothing else
    return match[0] if is_path else f'"{clip(quoted, _LONGEST_QUOTE)}"'
