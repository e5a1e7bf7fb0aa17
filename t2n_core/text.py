"""Untrusted text: names, messages and objects of users and engines, made safe to store and to display."""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, except tab and newline
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # change the direction of the following text
    "\ufeff\ud800-\udfff]"  # byte order marks, lone surrogates
)
_FRAME: Final = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')
"""One frame of a stack trace, as Python writes it."""


def text_of(value: object) -> str:
    """Return `str(value)`, safe to store; if that raises, a text that reports it."""
    try:
        return storable(str(value))
    except Exception as exc:
        return f"<str() of this {type(value).__name__} raises {type(exc).__name__}>"


def reason_of(error: Exception) -> str:
    """Return the message of an error; of one of the system, such as a missing file, without its number."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def storable(text: str) -> str:
    r"""Return the text with lone surrogates as escapes (`\udcff`), since no file or pipe can encode them."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def clip(text: str, most: int = 100_000) -> str:
    """Return the text, or the first `most` characters of a longer one and the number of the others."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most} more characters)"


def first_lines(cause: BaseException, most: int = 6) -> str:
    """Return the first lines of a message that are not blank, or the name of the exception's class."""
    lines = [line for line in str(cause).strip().splitlines() if line.strip()]
    return "\n".join(lines[:most]) or type(cause).__name__


def suggestion(word: str, candidates: Iterable[str], otherwise: str | None = None, most: int = 1) -> str:
    """Return "did you mean" with the known words that an unknown one is most like.

    Where it is like none of them, it is `otherwise`, by default a list of all of them.
    """
    import difflib

    words = list(candidates)
    near = difflib.get_close_matches(word, words, most)
    if not near:
        return f"known: {', '.join(words)}" if otherwise is None else otherwise
    return f"did you mean `{'` or `'.join(near)}`?"


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
    r"""Return the text with escapes (`\x1b`) for characters that a terminal or a page interprets or hides.

    Tabs and newlines stay.
    """
    return _HIDDEN.sub(_escape, text)


def in_markdown(text: str) -> str:
    """Return the text as one line that Markdown renders unchanged, also in the cell of a table."""
    text = " ".join(visible(text).splitlines()).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{letter}" if letter in "\\`*_[]|~" else letter for letter in text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def source_line(file: str, line: int | str, function: str, code: str) -> str:
    """Return a source line of a model as text for users."""
    return f"{file}:{line} in {function}" + (f": `{code}`" if code else "")


def line_of_error(error: BaseException, without: Sequence[str]) -> str:
    """Return the innermost source line that led to an exception, as text; '' if there is none.

    Frames in files whose paths begin with one of `without` are left out.
    """
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(tuple(without))]
    if not frames:
        return ""
    frame = frames[-1]
    code = linecache.getline(frame.filename, frame.lineno or 0).strip()
    return source_line(frame.filename, frame.lineno or 0, frame.name, code)


def source_in_trace(trace: str, without: Sequence[str] = ()) -> str:
    """Return the innermost line outside PyTorch in a stack trace, as text; '' if there is none.

    Frames in files whose paths begin with one of `without` are left out.
    """
    frames = [frame for frame in _FRAME.finditer(trace) if not frame["file"].startswith(tuple(without))]
    user_frames = [
        f for f in frames if "/torch/nn/modules/" not in f["file"] and "/torch/nn/functional" not in f["file"]
    ]
    if not frames:
        return ""
    frame = (user_frames or frames)[-1]
    code = trace[frame.end() :].lstrip("\n").split("\n", 1)[0].strip()
    return source_line(frame["file"], frame["line"], frame["function"], code)
