"""Files and environment variables that a process reads, with digests, so that results are resumed with the same only.

Known are modules and files that Python opens; not files that libraries open in other languages, a network, a clock.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.util import source_from_cache
from pathlib import Path
from typing import Any

from t2n_core.foreign import ForeignFileError, open_file
from t2n_core.scratch import scratch_prefix
from t2n_core.text import storable

VARIABLE = "$"
"""Prefix of the name of a variable among the names of files."""
_MOST_BYTES = 16 << 20
"""Most bytes of a file that are compared; a larger file's size and modification time are compared too."""
_DIGITS, _OF_VARIABLE = 12, 6
"""Digits of digests; a variable's are too few to guess its value from."""
_INSTALLED = tuple({sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib", "stdlib", "platstdlib")})
"""Folders of packages: the versions of relevant packages are in the platform."""
_LEFT_OUT = (*_INSTALLED, "/proc/", "/sys/", "/dev/", "<")
_OWN = tuple(f"{Path(__file__).parents[2] / name}{os.sep}" for name in ("pytest_t2n", "t2n_core"))
_NEVER = (*_LEFT_OUT, *_OWN)
"""Places of files that are no input of a test, and of code whose questions for variables do not count."""
_OF_SESSIONS = ("PYTEST_", "T2N_", "COV_", "COLUMNS", "LINES")
"""Prefixes of variables that differ in each session or worker."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND


class Reads:
    """Files and variables that this process reads, each of which is reported with one cell, the next that ends."""

    def __init__(self, root: Path, left_out: Sequence[Path] = ()) -> None:
        """Paths are relative to `root`; files in the folders `left_out` and temporary ones are not inputs of a test."""
        self._root = root
        self._left_out = (*_NEVER, scratch_prefix(), *(f"{path}{os.sep}" for path in left_out))
        self._seen: set[str] = set()
        """Paths, and names of variables, that are known."""
        self._new: set[str] = set()
        """Paths and names that no cell has reported."""
        self._written: set[str] = set()
        self._modules: set[str] = set()
        self._given = dict(os.environ)
        """The variables of the session, which tests may change for themselves."""
        self._last: tuple[str, dict[str, str]] = ("", {})
        """The last cell with its report, which it has to repeat if it is run again."""

    def start(self) -> None:
        """Note what is read from now on."""
        _active.append(self)
        _watch()

    def stop(self) -> None:
        """Note nothing more."""
        with suppress(ValueError):
            _active.remove(self)

    def opened(self, path: str, flags: int) -> None:
        """Note a file that was opened."""
        if path.startswith(self._left_out):
            return
        path = path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
        if flags & _WRITES:
            self._written.add(path)
        elif path not in self._seen:
            self._note(path)

    def asked(self, name: str) -> None:
        """Note a variable that was asked for."""
        if not name.startswith(_OF_SESSIONS) and VARIABLE + name not in self._seen:
            self._note(VARIABLE + name)

    def of_cell(self, nodeid: str) -> dict[str, str]:
        """Return digests of files and variables read that no other cell of this process has recorded."""
        self._add_modules()
        digests = dict(self._last[1]) if self._last[0] == nodeid else {}
        new, self._new = self._new, set()
        names = (item if item.startswith(VARIABLE) else self._name_of(item) for item in sorted(new - self._written))
        for name in filter(None, names):
            digests[storable(name)] = digest_of(name, self._root, self._given)
        self._last = nodeid, digests
        return digests

    def _note(self, name: str) -> None:
        self._seen.add(name)
        self._new.add(name)

    def _add_modules(self) -> None:
        modules = sys.modules.copy()
        if len(modules) == len(self._modules):
            return
        installed: dict[str, bool] = {}
        for name in modules.keys() - self._modules:
            self._modules.add(name)
            package = name.partition(".")[0]
            if package not in installed:
                installed[package] = _is_installed_package(modules.get(package))
            if installed[package]:
                continue
            file = getattr(modules[name], "__file__", None)
            # modules that are made at run time have any name
            if isinstance(file, str) and not file.startswith(_NEVER) and os.path.isabs(file):
                self.opened(file, os.O_RDONLY)

    def _name_of(self, path: str) -> str:
        """Return the name of a file, below the project or beside it; empty for a file that is no input."""
        if path.endswith(".pyc"):
            try:
                path = source_from_cache(path)
            except (ValueError, NotImplementedError):
                return ""  # the file of a test that pytest has rewritten: its module names the source
        # outside of the project, a file that is not there was one of several places to look at
        is_input = path.startswith(f"{self._root}{os.sep}") or os.path.lexists(path)
        return Path(os.path.relpath(path, self._root)).as_posix() if is_input else ""


def changed_reads(reads: Mapping[str, str], root: Path) -> list[str]:
    """Return the names of the files and variables that are not as they were."""
    return [name for name, digest in reads.items() if digest_of(name, root, os.environ) != digest]


def digest_of(name: str, root: Path, variables: Mapping[str, str]) -> str:
    """Return a short digest of a file or a variable; empty if there is none."""
    if name.startswith(VARIABLE):
        value = variables.get(name.removeprefix(VARIABLE))
        if value is None:
            return ""
        return sha256(f"{name}={value}".encode(errors="surrogatepass")).hexdigest()[:_OF_VARIABLE]
    try:
        with open_file(root / name) as file:
            state = os.fstat(file.fileno())
            digest = sha256(file.read(_MOST_BYTES))
    except (OSError, ForeignFileError, ValueError):
        return ""
    if state.st_size > _MOST_BYTES:
        digest.update(f"{state.st_size} {state.st_mtime_ns}".encode())
    return digest.hexdigest()[:_DIGITS]


_active: list[Reads] = []
_watching: list[bool] = []
_listed = threading.local()


def _watch() -> None:
    """Hook into Python's opening of files, once per process, since a hook stays, and into its variables."""
    if not _watching:
        _watching.append(True)
        sys.addaudithook(_audit)
        os.environ.__class__ = _Variables


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    """Note a file that is opened. There are ten thousands of events in a session, and most files are installed."""
    if event != "open" or not _active:
        return
    path, _, flags = arguments
    if not isinstance(path, str) or path.startswith(_NEVER):
        return
    try:
        for reads in _active:
            reads.opened(path, flags if isinstance(flags, int) else 0)
    except (OSError, RuntimeError):
        return


class _Variables(type(os.environ)):  # type: ignore[misc]
    """`os.environ`, which notes the variables that code outside of installed packages asks for by name."""

    def __iter__(self) -> Iterator[str]:
        for key in super().__iter__():
            _listed.key = key  # a copy of the variables asks for each key that it lists
            yield key
        _listed.key = ""

    def __getitem__(self, key: str) -> str:
        is_named = _active and isinstance(key, str) and key != getattr(_listed, "key", "")
        if is_named and not _is_installed(_caller()):
            for reads in _active:
                reads.asked(key)
        value: str = super().__getitem__(key)
        return value


def _caller() -> str:
    """Return the file of the code that asks `os.environ`, beyond the methods of mappings."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith("<frozen"):
        frame = frame.f_back
    return frame.f_code.co_filename if frame is not None else "<"


def _is_installed_package(package: Any) -> bool:
    """Return whether a package lies in an installed folder, so that none of its modules has to be looked at."""
    path = getattr(package, "__path__", ())
    return type(path) is list and len(path) == 1 and isinstance(path[0], str) and path[0].startswith(_NEVER)


def _is_installed(file: str) -> bool:
    return file.startswith(_NEVER)
