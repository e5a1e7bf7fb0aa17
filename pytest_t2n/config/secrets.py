"""Remove passwords and tokens from command lines, so that records do not contain them."""

from __future__ import annotations

import re
from collections.abc import Sequence

_HIDDEN = "***"
_NAME = re.compile(r"(?i)pass(word|wd|phrase)?|token|secret|credential|(api|access|private|auth)[-_]?key|auth\b")
"""Part of the name of an option, or of a variable, whose value is secret."""
_ASSIGNED = re.compile(r"(?s)(?P<name>-{0,2}[\w.-]+)=(?P<value>.*)")
_USER = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*://)[^/@\s]+@")
"""User and password in a URL."""


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command line with the values of secret options, and users in URLs, as `***`."""
    shown: list[str] = []
    hides_next = False
    for argument in arguments:
        text = _USER.sub(rf"\g<scheme>{_HIDDEN}@", argument)
        assigned = _ASSIGNED.fullmatch(text)
        if hides_next and not argument.startswith("-"):
            text = _HIDDEN
        elif assigned is not None and _NAME.search(assigned["name"]):
            text = f"{assigned['name']}={_HIDDEN}"
        hides_next = argument.startswith("-") and "=" not in argument and _NAME.search(argument) is not None
        shown.append(text)
    return shown
