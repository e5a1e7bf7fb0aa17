"""Results of earlier sessions, for `--t2n-reuse`.

Passes only: a failure is worth its fresh evidence, and a crash or a timeout may be the machine's.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from filelock import FileLock, Timeout

from pytest_t2n.records.from_report import REUSED

if TYPE_CHECKING:
    from pytest_t2n.run.bundles import Material
    from t2n_core.check.outcome import Outcome

COMPARISON = 1
"""Raised when the comparison changes what it says of the same numbers."""
_WORDS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def key_of(material: Material) -> str:
    """Of all that decides about a result: archive, inputs, expected outputs, engine, comparison."""
    import numpy as np

    from t2n_core.check.parity import archive_digest

    engine = material.cell.engine
    digest = sha256()
    binary = engine.resolved["sha256"] if engine.resolved else _khronos_versions()
    names = "\0".join(material.output_names)
    for word in (COMPARISON, archive_digest(material.archive)[0], engine.target, binary, material.tolerance, names):
        digest.update(f"{word}\n".encode())
    for sample in material.samples:
        digest.update(f"{sorted(sample.sizes.items())}\n".encode())
        for group in (sample.inputs, sample.expected):
            digest.update(f"{len(group)}\n".encode())
            for array in group:
                digest.update(f"{array.dtype.str} {array.shape}\n".encode())
                digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def find_result(cache_dir: Path, material: Material) -> Outcome | None:
    """The pass of an earlier session; None if there is none, or it cannot be read."""
    from t2n_core.check.comparison import OutputComparison
    from t2n_core.check.outcome import Outcome
    from t2n_core.check.stage import Stage, Status
    from t2n_core.check.tolerance import TractCheckTolerance

    try:
        fields = msgspec.json.decode(_path(cache_dir, key_of(material)).read_bytes())
        outputs = [msgspec.convert(_numbers(one), OutputComparison) for one in fields["outputs"]]
        return Outcome(
            Status.PASS,
            Stage.COMPARE,
            engine=material.cell.engine.title,
            level=TractCheckTolerance(fields["level"]),
            required=TractCheckTolerance(material.tolerance),
            outputs=tuple(outputs),
            sizes=tuple(sample.sizes for sample in material.samples),
            range=fields.get("range", ""),
            refused_sizes=tuple(fields.get("refused_sizes", ())),
            archive_sha256=fields["archive_sha256"],
            archive_bytes=fields["archive_bytes"],
            facts={**fields["facts"], REUSED: True},
        )
    except (OSError, KeyError, ValueError, TypeError):
        return None


def keep_result(cache_dir: Path, material: Material, outcome: Outcome) -> None:
    """Remember a pass; a cache that cannot be written costs the time of the next session only."""
    if not outcome.passed:
        return
    path = _path(cache_dir, key_of(material))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=".draft-")
        with os.fdopen(descriptor, "wb") as sink:
            sink.write(msgspec.json.encode(outcome.to_dict()))
        os.replace(draft, path)
    except OSError:
        return


@contextmanager
def turn(cache_dir: Path, material: Material, seconds: float) -> Iterator[None]:
    """Hold the key while its cell runs: workers with equal cells run one of them and reuse it for the others.

    Whoever waits longer than `seconds`, or cannot write there, goes on alone.
    """
    lock = FileLock(_path(cache_dir, key_of(material)).with_suffix(".lock"))
    try:
        Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=seconds)
    except (OSError, Timeout):
        yield
        return
    try:
        yield
    finally:
        lock.release()


def _path(cache_dir: Path, key: str) -> Path:
    return cache_dir / "results" / key[:2] / f"{key}.json"


def _khronos_versions() -> str:
    return " ".join(metadata.version(name) for name in ("nnef", "nnef-tools", "pytest-t2n"))


def _numbers(fields: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinities; records hold them as words."""
    numeric = {name for name in fields if name not in ("name", "dtype", "status", "problem", "level", "required")}
    return {name: _WORDS.get(value, value) if name in numeric and isinstance(value, str) else value
            for name, value in fields.items()}  # fmt: skip


__all__ = ["find_result", "keep_result", "key_of", "turn"]
