"""The operators, transforms, runtimes and C functions of a library of tract, asked of the library itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from t2n_core.errors import EngineLoadError
from t2n_core.releases.scan.names import function_names, operator_names, word_names

_CHILD: Final = "t2n_core.releases.scan.child"
RUNTIMES: Final = ("cuda", "metal", "default")
_SECONDS: Final = 1200.0
"""Limit of one process, which is asked for some ten thousand names."""
_ENABLE: Final = "tract_nnef_enable_"
_NO_REGISTRIES: Final = ("tract_nnef_enable_extended_identifier_syntax",)


class LibraryOperator(msgspec.Struct, frozen=True):
    """An operator that a library resolves."""

    registry: str
    """The registry that has it; empty if a call without arguments ends the process."""
    arguments: Mapping[str, str] = {}
    """Arguments without defaults -> the first type that the engine takes; empty for a type if no value was taken.

    There may be more of them: asking ends where a value does not fit.
    """


class Contents(msgspec.Struct, frozen=True):
    """The names that a release has, sorted."""

    release: str
    operators: Mapping[str, LibraryOperator]
    registries: Sequence[str]
    transforms: Sequence[str]
    runtimes: Sequence[str]
    functions: Sequence[str]


def read_contents(
    release: str,
    library: Path,
    operators: Iterable[str] = (),
    transforms: Iterable[str] = (),
    show: Callable[[str], None] = lambda text: None,
) -> Contents:
    """Return what a library holds; `operators` and `transforms` are names to ask for besides those in its bytes."""
    data = library.read_bytes()
    show("operators")
    registries = ask(library, "operator", sorted({*operator_names(data), *operators}))
    show("arguments of operators")
    arguments = ask(library, "arguments", sorted(registries))
    show("functions, transforms and runtimes")
    functions = sorted(ask(library, "function", function_names(data)))
    return Contents(
        release=release,
        operators={name: _operator(registries[name], arguments.get(name, {})) for name in sorted(registries)},
        registries=_enabled(functions),
        transforms=sorted(ask(library, "transform", word_names(data, transforms))),
        runtimes=sorted(ask(library, "runtime", word_names(data, RUNTIMES))),
        functions=functions,
    )


def _operator(answer: dict[str, Any], arguments: dict[str, Any]) -> LibraryOperator:
    return LibraryOperator(answer.get("registry", ""), dict(arguments.get("arguments", ())))


def _enabled(functions: Sequence[str]) -> list[str]:
    """Return the registries that a program can enable."""
    return [name.removeprefix(_ENABLE) for name in functions if name.startswith(_ENABLE) and name not in _NO_REGISTRIES]


def ask(library: Path, kind: str, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the answers about the names that the library has; {} for one at which its process ends.

    Raises EngineLoadError if the library cannot be used, or does not answer in time.
    """
    answers: dict[str, dict[str, Any]] = {}
    first = 0
    with TemporaryDirectory(prefix="t2n-scan-") as folder:
        while first < len(names):
            last = _ask_from([str(library), kind, folder], names[first:], answers)
            if last is None:
                break
            answers.setdefault(names[first + last], {})
            first += last + 1
    return answers


def _ask_from(words: Sequence[str], names: Sequence[str], answers: dict[str, dict[str, Any]]) -> int | None:
    """Add the answers of one process; return the index of the name at which it ended, or None."""
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", _CHILD, *words], input="\n".join(names), text=True,
            capture_output=True, check=False, env={**os.environ, "RUST_BACKTRACE": "0"}, timeout=_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired as cause:
        raise EngineLoadError(f"{words[0]} did not answer about its names within {_SECONDS:.0f} s") from cause
    if done.returncode and not done.stdout:
        raise EngineLoadError(f"{words[0]} cannot be asked for its names: {done.stderr.strip()[-500:]}")
    at = 0
    for line in done.stdout.splitlines():
        if line.isdecimal():
            at = int(line)
        else:
            answers[names[at]] = json.loads(line)
    return at if done.returncode else None
