"""A tract library from a wheel, as an engine."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from packaging.version import Version

from t2n_core.engine.paths import EnginePath, PathRun, paths_of
from t2n_core.engine.processes.memory import memory_limit as chosen_limit
from t2n_core.engine.processes.worker_engine import WorkerEngine
from t2n_core.engine.protocol import DIED_LISTING, OPERATORS_UNKNOWN, Array, EngineReply, KeptStates
from t2n_core.engine.provision.resolved import CPU, ResolvedEngine
from t2n_core.engine.tract.out_of_range import explain, graph_text
from t2n_core.engine.tract.session import EngineSession
from t2n_core.engine.tract.signature import Signature
from t2n_core.engine.tract.transforms.table import ROUND_TRIP
from t2n_core.engine.tract.transforms.transform import Transform
from t2n_core.errors import EngineLoadError, InputError
from t2n_core.nnef.releases import Releases
from t2n_core.scratch import scratch_folder

GraphStage = Literal["raw", "declutter", "optimise"]

_LOG = logging.getLogger(__name__)
_OPTIMISED_ONLY = Version("0.23")
_HOLDS_STATE = Version("0.23")
_RESETS_SCANS = Version("0.20.18")
_KEEPS_SIZES = Releases.of("0.21.2", "0.21.8")
_WORKER = "t2n_core.engine.tract.worker"
_GRAPH: Final = """version 1.0;
graph first(x) -> (y)
{ x = external<scalar>(shape = [1, 64]); y = tanh(x); }
"""
_COMPILES: Final = 600.0
"""Seconds that a runtime may take to compile its kernels."""
_GRACE = 10.0
"""Seconds that a forking worker has beyond the job's time limit to report that it killed the job."""


class TractEngine(WorkerEngine):
    """One version of tract in its own worker; implements `Engine`."""

    name = "tract"

    def __init__(self, resolved: ResolvedEngine, *, fork: bool = hasattr(os, "fork")) -> None:
        """Create the engine. Without `fork` its jobs run in the worker itself, which is replaced if one kills it.

        This also applies to all runtimes but the processor's.
        """
        options = [f"--sha256={resolved.sha256}"]
        if resolved.runtime != CPU:
            options.append(f"--runtime={resolved.runtime}")
            fork = False  # a GPU's context does not survive a fork
        command = [_WORKER, str(resolved.library), *options, *([] if fork else ["--inline"])]
        super().__init__(*command, grace=_GRACE if fork else 0.0, environment=resolved.environment)
        self.resolved = resolved

    @property
    def version(self) -> str:
        return self.resolved.version

    def why_unusable(self) -> str:
        """Return why the engine cannot work on this machine, '' if it can; its worker is started if necessary.

        A runtime other than the processor's computes a graph: before its first one tract compiles the kernels, which
        takes a minute or more (77 s on an H100) and would exceed the time limit of a job. It keeps them in
        the user's cache.
        """
        problem = super().why_unusable()
        if problem or self.resolved.runtime == CPU:
            return problem
        with scratch_folder() as folder:
            (folder / "graph.nnef").write_text(_GRAPH, encoding="utf-8")
            reply = self.run(folder, [[np.zeros((1, 64), np.float32)]], timeout=_COMPILES)
        return "" if reply.status == "ok" else reply.message

    @property
    def runs_stages(self) -> bool:
        """Return whether a graph can run before the optimiser has changed it."""
        return Version(self.version) < _OPTIMISED_ONLY

    @property
    def paths(self) -> tuple[EnginePath, ...]:
        """Return the paths on which an archive is checked, the main one first."""
        return paths_of(self.resolved)

    @property
    def kept_states(self) -> KeptStates:
        """Return the behaviour of a State that several calls use in this release."""
        version = Version(self.version)
        return KeptStates(resets_scans=version >= _RESETS_SCANS, resizes=version not in _KEEPS_SIZES)

    @property
    def holds_state(self) -> bool:
        """Return whether the engine can keep the state of a session."""
        return Version(self.version) >= _HOLDS_STATE

    def __repr__(self) -> str:
        return f"TractEngine({self.resolved.label})"

    def run(
        self,
        archive: Path,
        batches: Sequence[Sequence[Array]],
        *,
        timeout: float = 60.0,
        memory_limit: int | None = None,
        symbols: Mapping[str, int] | None = None,
        stage: GraphStage = "optimise",
        path: EnginePath = EnginePath.DECLUTTER,
        further: Sequence[PathRun] = (),
        pulse: tuple[str, int] | None = None,
        keep_going: bool = False,
        calls: Sequence[tuple[int, int]] = (),
        fed: Sequence[tuple[int, Sequence[tuple[int, int]]]] = (),
        release: ResolvedEngine | None = None,
        transforms: Sequence[Transform] = (),
        scratch: Path | None = None,
        one_state: bool = False,
    ) -> EngineReply:
        """Load `archive` (directory, .tar or .tgz) once and run each batch, inputs in graph order.

        `timeout` is in seconds for the whole job on one path, `memory_limit` in bytes beyond the worker's own size (by
        default `processes.memory`'s; not enforced where jobs are not forked, nor on macOS). `symbols` gives symbolic
        sizes a value before optimising. The stages `raw` and `declutter` run the graph before later steps, up to tract
        0.22; newer versions report an error. `path` is the path of the job; after it the batches of each `further` path
        run on a model that is loaded anew, each within its own time limit. Without batches it only loads and optimises.
        `pulse` is the symbol of the time axis and how many steps the graph then takes at a time; batches are whole
        sequences of such pulses, and outputs as far as they are known at the end. With `keep_going` a batch with an
        error does not end the job: the reply is `ok` and lists the refused ones; a crash still ends it. `calls` run
        after all batches, each a pair of a batch whose State is reused and the batch that then runs in it; the reply
        lists the calls whose outputs differ from a new State's. A stream has no calls. `fed` names batches that take
        outputs of the previous batch, each with pairs of an input's index, whose array is then ignored, and an output's
        index. `release` is another release of the same tier, whose library then stays loaded as well: one worker runs
        them all. `transforms` change the model before it is optimised; a round trip among them needs `scratch`, a
        folder to write to. With `one_state` the batches run one after the other in one State.

        All results and failures of the engine are in the reply. Raises InputError for arrays that cannot be sent.
        """
        timeout *= 1 + len(further)
        options = {
            "timeout": timeout,
            "memory_limit": chosen_limit() if memory_limit is None else memory_limit,
            "symbols": dict(symbols or {}),
            "stage": stage,
            "declutter": path.declutters,
            "further": [path_run.to_dict() for path_run in further],
            "pulse": None if pulse is None else {"symbol": pulse[0], "size": pulse[1]},
            "keep_going": keep_going,
            "calls": list(calls),
            "fed": list(fed),
            **self._transform_options(transforms, scratch),
            "one_state": one_state,
            "library": None if release is None else {"path": str(release.library), "sha256": release.sha256},
            "operators": stage == "optimise",
        }
        reply = self._work(archive, batches, options, timeout)
        if reply.facts.get(OPERATORS_UNKNOWN) == DIED_LISTING:  # which is no fault of the archive
            _LOG.debug("%s runs %s again, since it died while it listed operators", self.name, archive.name)
            again = self._work(archive, batches, {**options, "operators": False}, timeout)
            reply = replace(again, facts={**again.facts, OPERATORS_UNKNOWN: DIED_LISTING})
        return explain(reply, archive, batches)

    def transformed(
        self, archive: Path, transforms: Sequence[Transform], scratch: Path, *, timeout: float = 60.0
    ) -> EngineReply:
        """Load `archive`, apply transforms and optimise the model; `scratch` is a folder to write to.

        The facts of the reply have `input` and `output` as in `run`, the changed model's as `transformed`, and as
        `changed` whether each transform changed the model, None if the engine cannot tell.
        """
        options = {
            "timeout": timeout,
            "memory_limit": chosen_limit(),
            "interface": True,
            **self._transform_options(transforms, scratch),
        }
        return self._work(archive, [], options, timeout)

    def write(
        self,
        archive: Path,
        folder: Path,
        *,
        pulse: tuple[str, int] | None = None,
        symbols: Mapping[str, int] | None = None,
        timeout: float = 60.0,
    ) -> EngineReply:
        """Load `archive`, which may be an ONNX file, and write it as an NNEF archive to a new folder.

        With a pulse it is turned into a stream first, as `run` does; the fact `stream` of the reply has the fields of
        `Stream`.
        """
        options = {
            "timeout": timeout,
            "memory_limit": chosen_limit(),
            "symbols": dict(symbols or {}),
            "pulse": None if pulse is None else {"symbol": pulse[0], "size": pulse[1]},
            "folder": str(folder),
        }
        return self._work(archive, [], options, timeout)

    def _transform_options(self, transforms: Sequence[Transform], scratch: Path | None) -> dict[str, Any]:
        steps = [
            {
                "text": None if transform.name == ROUND_TRIP else transform.text_for(self.version),
                "of_registry": transform.entry.of_registry,
                "begins": transform.entry.begins,
            }
            for transform in transforms
        ]
        return {"transforms": steps, "scratch": None if scratch is None else str(scratch)}

    def profile(
        self,
        archive: Path,
        inputs: Sequence[Array],
        *,
        seconds: float = 1.0,
        symbols: Mapping[str, int] | None = None,
        path: EnginePath = EnginePath.DECLUTTER,
        timeout: float = 60.0,
    ) -> EngineReply:
        """Run `archive` for `seconds`, then profile it for another 5 seconds; the reply's facts are the profile."""
        options = {
            "timeout": timeout,
            "memory_limit": chosen_limit(),
            "symbols": dict(symbols or {}),
            "declutter": path.declutters,
            "profile": seconds,
        }
        return self._work(archive, [inputs], options, timeout)

    @contextmanager
    def session(
        self,
        archive: Path,
        *,
        timeout: float = 60.0,
        memory_limit: int | None = None,
        symbols: Mapping[str, int] | None = None,
        state: Sequence[tuple[str, str]] = (),
        initial: Sequence[Array] | None = None,
        held_by_engine: bool = False,
        transforms: Sequence[str] = (),
        path: EnginePath = EnginePath.DECLUTTER,
    ) -> Iterator[EngineSession]:
        """Keep `archive` loaded in a separate process, for any number of steps; jobs can run in parallel.

        `state` are pairs of an input and the output that is its next value: these stay in the process, which feeds them
        back, and `run` takes and returns only the others. Their first values are `initial`, in the order of the pairs;
        without it they are zeros, empty along the axes whose symbol no other input has. With `held_by_engine` (tract
        0.23 and later) the engine itself keeps them, and they cannot be read; `transforms` are the names of further
        transforms of the engine that are applied to such a graph. `timeout` is in seconds for loading and for each
        step; the other arguments are as for `run`.

        Raises:
            InputError: a wrong pair, a state whose size is not known, or an engine that keeps no state.
            EngineLoadError, EngineOptimiseError, EngineCrash, EngineTimeout, EngineOutOfMemory: it could not be loaded.
        """
        if held_by_engine and not state:
            raise InputError("held_by_engine=True needs state=, the pairs of inputs and outputs that the engine keeps")
        if transforms and not held_by_engine:
            raise InputError("transforms= of a session are for state that the engine holds: held_by_engine=True")
        if held_by_engine and not self.holds_state:
            raise InputError(f"tract {self.version} keeps no state itself: releases from {_HOLDS_STATE} on do")
        try:
            signature = Signature.of(graph_text(archive))
        except (OSError, ValueError) as cause:
            raise EngineLoadError(f"{archive} cannot be read: {cause}") from cause
        signature.without(state)  # before a process starts
        engine_transforms = tuple(transforms) if held_by_engine else None
        session = EngineSession(self._new_worker(), archive, signature, state, timeout, transforms=engine_transforms)
        try:
            limit = chosen_limit() if memory_limit is None else memory_limit
            session.open(dict(symbols or {}), limit, initial, declutter=path.declutters)
            yield session
        finally:
            session.close()
