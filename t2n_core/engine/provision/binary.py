"""The version of a tract command-line binary."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from packaging.version import InvalidVersion, Version

from t2n_core.engine.processes.command import execute
from t2n_core.engine.provision.resolved import ResolvedEngine
from t2n_core.errors import EngineProvisionError

_ASK_TIMEOUT = 30.0


def resolve_binary(path: Path, requested: str) -> ResolvedEngine:
    """Ask the binary for its version. Raises EngineProvisionError if it is not a tract command line."""
    hint = "path: names a tract command-line binary that runs on this machine"
    try:
        content = path.read_bytes()
    except OSError as cause:
        raise EngineProvisionError(f"{path} cannot be read: {cause.strerror}", hint=hint) from cause
    answer = ask_binary(path, "--version")
    match = re.search(r"\btract\S*\s+v?(\d\S*)", answer)
    try:
        version = Version(match[1]) if match else None
    except InvalidVersion:
        version = None
    if version is None:
        raise EngineProvisionError(f"{path} --version prints {answer.strip()[:200]!r}, not a tract version", hint=hint)
    return ResolvedEngine("cli", str(version), path.absolute(), hashlib.sha256(content).hexdigest(), requested)


def ask_binary(path: Path, question: str) -> str:
    """Return what a binary prints for an option. Raises EngineProvisionError if it does not answer."""
    try:
        ended = execute([str(path.absolute()), question], _ASK_TIMEOUT, None, os.environ)
    except OSError as cause:
        raise EngineProvisionError(f"{path} {question} does not work: {cause}") from cause
    if ended.killed or ended.exit_code:
        why = "no answer" if ended.killed else f"it ended with status {ended.exit_code}\n{ended.stderr}".rstrip()
        raise EngineProvisionError(f"{path} {question} does not work: {why}")
    return ended.stdout
