"""Results of earlier sessions, for `--t2n-reuse`.

Only passes are reused: a failure needs fresh evidence, and a crash or a timeout may be caused by the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from filelock import FileLock, Timeout

from pytest_t2n.records.cell import SelectedEngine
from pytest_t2n.records.from_outcome import REUSED
from pytest_t2n.run.bundles import CheckInputs
from t2n_core.files import write_whole
from t2n_core.foreign import is_shared, read_file

if TYPE_CHECKING:
    from t2n_core.parity.judging.judgement import Judgement
    from t2n_core.parity.outcome import Outcome

COMPARISON = 1
"""Incremented when the comparison judges the same outputs differently."""
_MOST_BYTES = 16 << 20
_WORDS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def reuse_result(cache_dir: Path, inputs: CheckInputs, check: Callable[[], Outcome], seconds: float) -> Outcome:
    """Return the pass of an earlier session, otherwise the outcome of `check`, which is stored if it is a pass.

    Workers with equal cells run one of them and reuse it for the others. None waits longer than `seconds`. Results of a
    script, or of a target with its own engine, are not reused or stored: what such an engine runs has no digest.
    """
    engine = inputs.cell.engine
    if is_script(engine) or engine.kind not in ("tract", "khronos"):
        return check()
    key = key_of(inputs)
    results = cache_dir / "results"
    path = results / key[:2] / f"{key}.json"
    if any(map(is_shared, (results, path.parent, path))):
        return check()  # others could have written a pass there
    with exclusive(path.with_suffix(".lock"), seconds):
        outcome = _read_result(path, inputs)
        if outcome is None:
            outcome = check()
            if outcome.passed:
                # a cache that cannot be written only costs time in the next session
                with suppress(OSError):
                    write_whole(path, msgspec.json.encode(outcome.to_dict()))
    return outcome


def key_of(inputs: CheckInputs) -> str:
    """Return a digest of everything that affects a result.

    That is archive, inputs, expected outputs, comparison, and the engine with its kernels on a platform.
    """
    import numpy as np

    from t2n_core.files import archive_digest

    engine, request = inputs.cell.engine, inputs.request
    digest = sha256()
    names = "\0".join((*request.output_names, "", *sorted(request.constant_outputs)))
    archive = archive_digest(request.archive)[0]
    for word in (
        COMPARISON,
        archive,
        engine.target,
        *_engine_identity(engine),
        _criteria_text(request.criteria),
        names,
        *([] if request.interface is None else [request.interface]),
    ):
        digest.update(f"{word}\n".encode())
    for sample in request.samples:
        digest.update(f"{sorted(sample.sizes.items())}\n".encode())
        for group in (sample.inputs, sample.expected):
            digest.update(f"{len(group)}\n".encode())
            for array in group:
                digest.update(f"{array.dtype.str} {array.shape}\n".encode())
                digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def is_script(engine: SelectedEngine) -> bool:
    """Return whether an engine is a script, whose digest does not identify what it runs."""
    from t2n_core.engine.provision.resolved import ResolvedEngine

    return engine.resolved is not None and ResolvedEngine.from_dict(engine.resolved).is_script


@contextmanager
def exclusive(path: Path, seconds: float) -> Iterator[None]:
    """Hold the lock file at `path` for the block; continue without it after `seconds`, or if it cannot be written."""
    lock = FileLock(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=seconds)
    except (OSError, Timeout):
        yield
        return
    try:
        yield
    finally:
        lock.release()


def _read_result(path: Path, inputs: CheckInputs) -> Outcome | None:
    """Return the pass of an earlier session; None if there is none, or it cannot be read."""
    from t2n_core.parity.comparison import OutputComparison
    from t2n_core.parity.outcome import ErrorInfo, Outcome
    from t2n_core.parity.stage import PASSING, Stage, Status
    from t2n_core.parity.tolerance import TractCheckTolerance

    try:
        fields = msgspec.json.decode(read_file(path, _MOST_BYTES))
        outputs = [msgspec.convert(_with_floats(output), OutputComparison) for output in fields["outputs"]]
        error = fields.get("error")
        status = Status(fields["status"])
        if status not in PASSING:
            return None
        return Outcome(
            status,
            Stage.COMPARE,
            error=error and ErrorInfo(**error),
            engine=inputs.cell.engine.title,
            level=TractCheckTolerance(fields["level"]),
            required=inputs.request.criteria.required,
            outputs=tuple(outputs),
            sizes=tuple(fields["sizes"]),
            range=fields.get("range", ""),
            refused_sizes=tuple(fields.get("refused_sizes", ())),
            archive_sha256=fields["archive_sha256"],
            archive_bytes=fields["archive_bytes"],
            paths=tuple(fields["paths"]),
            facts={**fields["facts"], REUSED: True},
        )
    except (OSError, KeyError, ValueError, TypeError):
        return None


def _criteria_text(criteria: Judgement) -> str:
    """Return all criteria except metrics as text."""
    levels, limits = sorted(criteria.levels.items()), sorted(criteria.limits.items())
    return f"{criteria.level} {levels} {limits}" if levels or limits else f"{criteria.level}"


def _engine_identity(engine: SelectedEngine) -> tuple[str, ...]:
    """Return the fields that identify an engine; the versions of the Khronos tools are facts of the platform."""
    fields = engine.resolved or {}
    return (engine.platform, *(fields.get(name, "") for name in ("sha256", "tier", "runtime", "paths")))


def _with_floats(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with the strings for NaN and infinities, which JSON does not have, as floats."""
    numeric = {
        name
        for name in fields
        if name not in ("name", "dtype", "status", "problem", "level", "required", "weak", "limit")
    }
    return {name: _WORDS.get(value, value) if name in numeric and isinstance(value, str) else value
            for name, value in fields.items()}  # fmt: skip
