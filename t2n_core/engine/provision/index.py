"""Queries of the package index through pip's own client, so that the user's mirrors, proxies and certificates apply.

A tract wheel is a plain shared library: any of its Python tags serves any interpreter. So pip is queried for
CPython 3.11, for which every release has wheels, on the platform of this machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
from packaging.version import InvalidVersion, Version

from t2n_core.errors import EngineError, EngineIndexWarning, EngineProvisionError, EngineResolveError
from t2n_core.files import write_whole
from t2n_core.foreign import ForeignFileError, decode_json, read_file

DISTRIBUTION = "tract"
PIP_TIMEOUT = 600.0
"""Seconds for one call of pip; its own retries and time limits, which the user may configure, apply first."""

_ANY_PYTHON = ("--only-binary=:all:", "--python-version=3.11", "--implementation=cp", "--abi=cp311")
_JSON_SINCE = Version("25.1")
_MOST_MEMORY = 1 << 20
"""Bytes of `index.json`."""
_answers: dict[Path, tuple[Version, ...]] = {}


class Memory(msgspec.Struct, frozen=True):
    """The content of `index.json`; `time` in seconds since the epoch."""

    distribution: str
    time: float
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WheelRecord:
    """Name and hash of the wheel that fits this machine, as the index states them."""

    filename: str
    sha256: str


def list_versions(cache_dir: Path, *, offline: bool = False) -> tuple[Version, ...]:
    """Return all versions with a wheel for this platform, pre-releases included, ascending.

    Queries the index once per process and caches the answer in `cache_dir/index.json`. Offline, or with a warning if
    the index does not answer, that file is used. Raises EngineResolveError without any answer.
    """
    versions, note = known_versions(cache_dir, offline=offline)
    warn_of_stale(note)
    return versions


def known_versions(cache_dir: Path, *, offline: bool = False) -> tuple[tuple[Version, ...], str]:
    """Return the versions of `list_versions`, and its warning for `warn_of_stale`; '' if there is none."""
    memory, note = cache_dir / "index.json", ""
    if offline:
        return _recall(memory), note
    if memory not in _answers:
        try:
            answer = ask_index()
        except EngineResolveError as cause:
            answer = _recall(memory)
            if not answer:
                raise
            note = f"the package index did not answer, its versions as of {_age(memory)} are used ({cause.message})"
        else:
            _remember(memory, answer)
        _answers[memory] = answer
    return _answers[memory], note


def last_answer(cache_dir: Path) -> tuple[Version, ...]:
    """Return the index's last answer, of this process or of an earlier one; empty if it was never queried."""
    memory = cache_dir / "index.json"
    return _answers.get(memory) or _recall(memory)


def warn_of_stale(note: str) -> None:
    """Warn that the versions of an earlier answer are used, if that is noted."""
    if note:
        warnings.warn(note, EngineIndexWarning, stacklevel=3)


def forget_answers() -> None:
    """Query the index again next time."""
    _answers.clear()


def wheel_record(version: Version, folder: Path) -> WheelRecord:
    """Return name and hash of a wheel as the index states them; nothing is installed. Raises EngineProvisionError.

    `folder` is only passed on, because pip before 23.3 accepts another Python version only with a target folder.
    """
    dry = ("--dry-run", "--ignore-installed", "--no-deps", f"--target={folder}", "--report=-")
    arguments = ["install", "--quiet", *dry, *_ANY_PYTHON]
    text = run_pip([*arguments, f"{DISTRIBUTION}=={version}"], EngineProvisionError, f"tract {version} was not found")
    try:
        info = json.loads(text)["install"][0]["download_info"]
        filename = unquote(urlsplit(info["url"]).path.rsplit("/", 1)[-1])
        return WheelRecord(filename, info["archive_info"]["hashes"]["sha256"])
    except (ValueError, LookupError, TypeError) as cause:
        raise EngineProvisionError(
            f"the index has no sha256 for the wheel of tract {version}",
            hint="use an index that serves hashes, as PyPI does",
        ) from cause


def download_wheel(version: Version, folder: Path) -> Path:
    """Download the wheel with pip into the empty `folder`. Raises EngineProvisionError."""
    arguments = ["download", "--quiet", "--no-deps", f"--dest={folder}", *_ANY_PYTHON]
    run_pip(
        [*arguments, f"{DISTRIBUTION}=={version}"], EngineProvisionError, f"tract {version} could not be downloaded"
    )
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise EngineProvisionError(f"pip left {len(wheels)} wheels for tract {version}, one was expected")
    return wheels[0]


def run_pip(arguments: Sequence[str], error: type[EngineError], problem: str) -> str:
    """Return the standard output of one pip command. Raises `error`, with pip's message, if it fails."""
    environment = {
        **os.environ,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_NO_COLOR": "1",
        "PIP_REQUIRE_VIRTUALENV": "0",  # nothing is installed, so the user's rules for installations do not apply
        "PIP_USER": "0",
    }
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "pip", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            timeout=PIP_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as cause:
        raise error(f"{problem}: pip did not finish in {PIP_TIMEOUT:.0f} s") from cause
    except OSError as cause:
        raise error(f"{problem}: pip could not be started ({cause})") from cause
    if done.returncode:
        raise error(f"{problem}: {_reason(done.stderr)}")
    return done.stdout


def _reason(stderr: str) -> str:
    """Return why pip failed: the broken connection, or its error lines, or its last lines."""
    if broken := re.findall(r"connection broken by '(.*)': \S*$", stderr, re.MULTILINE):
        return f"the index cannot be reached: {broken[-1]}"  # pip itself then reports "no matching distribution"
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return "; ".join(errors or lines[-3:]) or "pip reported no reason"


def ask_index() -> tuple[Version, ...]:
    """Return all versions that pip finds for this platform. Raises EngineResolveError without an answer."""
    arguments = ["index", "versions", DISTRIBUTION, "--pre", *_ANY_PYTHON]
    structured = Version(metadata.version("pip")) >= _JSON_SINCE
    if structured:
        arguments.append("--json")
    text = run_pip(arguments, EngineResolveError, "the package index returned no versions of tract for this platform")
    versions = _parse_json(text) if structured else _parse_text(text)
    if not versions:
        raise EngineResolveError("the package index lists no version of tract for this platform")
    return versions


def _parse_json(text: str) -> tuple[Version, ...]:
    try:
        return _parse_versions(json.loads(text)["versions"])
    except (ValueError, LookupError, TypeError) as cause:
        raise EngineResolveError(f"pip's list of versions is not understood: {text[:200]!r}") from cause


def _parse_text(text: str) -> tuple[Version, ...]:
    match = re.search(r"^Available versions: (.+)$", text, re.MULTILINE)
    if not match:
        raise EngineResolveError(f"pip's list of versions is not understood: {text[:200]!r}")
    return _parse_versions(match[1].split(","))


def _parse_versions(texts: Sequence[str]) -> tuple[Version, ...]:
    versions = set()
    for text in texts:
        try:
            versions.add(Version(text.strip()))
        except InvalidVersion:
            continue  # a version that is not PEP 440 cannot be requested either
    return tuple(sorted(versions))


def _remember(memory: Path, answer: Sequence[Version]) -> None:
    content = msgspec.json.encode(Memory(DISTRIBUTION, time.time(), tuple(map(str, answer))))
    with contextlib.suppress(OSError):  # a read-only cache only loses this; provisioning reports it if it matters
        write_whole(memory, msgspec.json.format(content, indent=1) + b"\n")


def _recall(memory: Path) -> tuple[Version, ...]:
    """Return the cached answer; empty if there is none or it is damaged."""
    try:
        return _parse_versions(_read_memory(memory).versions)
    except (OSError, ForeignFileError):
        return ()


def _read_memory(memory: Path) -> Memory:
    return decode_json(read_file(memory, _MOST_MEMORY), Memory, memory.name)


def _age(memory: Path) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(_read_memory(memory).time))
