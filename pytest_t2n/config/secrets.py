"""Command lines for records: the values of options of pytest and of this plugin, and names alone of all others."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256

_HIDDEN = "***"
_FAMILIES = ("--t2n-", "--benchmark-", "--doctest-", "--junit-", "--junitxml", "--log-", "--no-")
_LONG = frozenset(
    "--assert --basetemp --cache-clear --cache-show --capture --co --code-highlight --collect-in-virtualenv "
    "--collect-only --color --config-file --confcutdir --continue-on-collection-errors --debug --deselect "
    "--disable-plugin-autoload --disable-pytest-warnings --disable-warnings --dist --durations --durations-min "
    "--exitfirst --failed-first --ff --fixtures --fixtures-per-test --force-short-summary --full-trace --funcargs "
    "--help --ignore --ignore-glob --import-mode --keep-duplicates --last-failed --last-failed-no-failures --lf --lfnf "
    "--loadscope-reorder --looponfail --markers --max-warnings --max-worker-restart --maxfail --maxprocesses "
    "--new-first --nf --noconftest --numprocesses --override-ini --pdb --pdbcls --pyargs --pythonwarnings --quiet "
    "--report-chars --rootdir --runxfail --setup-only --setup-plan --setup-show --show-capture --showlocals --stepwise "
    "--stepwise-reset --stepwise-skip --strict --strict-config --strict-markers --sw --sw-reset --sw-skip --tb "
    "--testrunuid --trace --trace-config --verbose --verbosity --version --xfail-tb".split()
)
_SHORT = re.compile(r"(?s)-(?P<letter>[ckmnoprW])(?P<value>.*)|-[dfhlqsvVx]+")
"""One-letter options; options of the first group take a value."""
_INI = "--override-ini"
_TEST = re.compile(r"(?s)[^:\s]*(\.py\b|/|::).*")
"""A file, a folder or a test; what else stands alone is only shown if it is a file or a folder."""
_NAME = re.compile(r"--[A-Za-z][\w.-]*|-[A-Za-z]")
_USER = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s]+@")
_QUERY = re.compile(r"(?P<address>[a-zA-Z][a-zA-Z0-9+.-]*://[^?#\s]*)[?#]\S*")
"""Users and queries of addresses, also in values of known options."""


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command line, with `***` for each value that only another plugin can explain."""
    return [shown for shown, _ in _each(arguments)]


def hidden_digest(arguments: Sequence[str]) -> str:
    """Return a short digest of the arguments that `without_secrets` hides, empty for none.

    It tells that they changed, and is too short to guess them from.
    """
    hidden = [typed for shown, typed in _each(arguments) if shown != typed]
    return sha256("\0".join(hidden).encode(errors="surrogatepass")).hexdigest()[:6] if hidden else ""


def _each(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each argument as it is shown, and as it was typed."""
    before = ""
    """The option in front that may take the next argument: a known one, or `***`."""
    for typed in arguments:
        name, assigned, value = typed.partition("=")
        is_known = name in _LONG or name.startswith(_FAMILIES)
        short = _SHORT.fullmatch(typed)
        if before == _HIDDEN and not (is_known or short is not None):
            shown, before = _HIDDEN, ""
        elif before not in ("", _HIDDEN):
            shown, before = _of_known(before, typed), ""
        elif is_known:
            shown = f"{name}={_of_known(name, value)}" if assigned else name
            before = "" if assigned or name != _INI else name
        elif short is not None:
            letter, value = short["letter"] or "", short["value"] or ""
            shown = f"-{letter}{_of_known(letter, value)}" if value else typed
            before = letter if letter and not value else ""
        elif typed.startswith("-"):
            shown = f"{name}={_HIDDEN}" if assigned else name
            shown = shown if _NAME.fullmatch(name) else typed[:2] + _HIDDEN
            before = "" if assigned else _HIDDEN
        else:
            is_test = _TEST.fullmatch(typed) and "://" not in typed
            shown = typed if is_test or os.path.lexists(typed) else _HIDDEN
        yield shown, typed


def _of_known(option: str, value: str) -> str:
    """Return the value of a known option as it is shown: of other plugins' ini keys the names alone."""
    if option in ("o", _INI):
        name, assigned, _ = value.partition("=")
        return value if name.startswith("t2n_") or not assigned else f"{name}={_HIDDEN}"
    return _QUERY.sub(r"\g<address>?" + _HIDDEN, _USER.sub(rf"\g<scheme>{_HIDDEN}@", value))
