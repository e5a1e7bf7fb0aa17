"""Engine for `path:/to/tract`: a tract command-line binary with the same protocol as a wheel.

Flags, log lines and npz rules follow the command line's source, 0.19.2 to 0.23.5; no released wheel contains a binary,
so this is tested with a script that answers like one. Differences from a wheel: each batch is a separate process that
loads the archive again, float16 is passed and returned as float32 (the reply states so), and there are no facts.
"""

from __future__ import annotations

import re
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from t2n_core.engine.paths import EnginePath, PathRun, paths_of
from t2n_core.engine.processes.command import execute
from t2n_core.engine.processes.death import count_memory_kills, explain_death, first_panic
from t2n_core.engine.processes.environment import single_threaded_environment
from t2n_core.engine.processes.memory import memory_limit as chosen_limit
from t2n_core.engine.processes.wire import plain_array
from t2n_core.engine.protocol import Array, EngineReply, EngineStage
from t2n_core.engine.provision.binary import ask_binary
from t2n_core.engine.provision.resolved import ResolvedEngine
from t2n_core.engine.tract.engine import GraphStage
from t2n_core.engine.tract.out_of_range import explain, graph_text
from t2n_core.engine.tract.signature import Signature
from t2n_core.errors import EngineProvisionError, InputError
from t2n_core.files import file_sha256
from t2n_core.npz import read_npz
from t2n_core.scratch import scratch_folder

_PASSES: Mapping[GraphStage, tuple[str, ...]] = {
    "raw": ("--pass", "load"),
    "declutter": ("--pass", "declutter"),
    "optimise": ("-O",),
}
_REGISTRIES = ("--nnef-tract-core", "--nnef-tract-onnx", "--nnef-tract-pulse", "--nnef-extended-identifier")
_LATER_REGISTRIES = ("--nnef-tract-extra", "--nnef-tract-transformers")
_LOG = "cli=info,tract=info"


class CliEngine:
    """A tract binary; implements `Engine`. Nothing runs between two jobs."""

    name = "tract"
    holds_state = False
    kept_states = None

    def __init__(self, resolved: ResolvedEngine) -> None:
        self.resolved = resolved
        self._registries: tuple[str, ...] | None = None
        self._seen: tuple[int, ...] | None = None
        """The binary's file-system metadata when its digest was the engine's."""

    @property
    def version(self) -> str:
        return self.resolved.version

    @property
    def paths(self) -> tuple[EnginePath, ...]:
        """Return the paths on which an archive is checked, the main one first."""
        return paths_of(self.resolved)

    def __repr__(self) -> str:
        return f"CliEngine({self.resolved.library})"

    def close(self) -> None:
        """Do nothing: no process is left between two jobs."""

    def session(self, archive: Path, **options: Any) -> NoReturn:
        """Raise InputError: nothing stays loaded between two runs of a command."""
        raise InputError(
            f"{self.name} {self.version} is a command line, which keeps no archive loaded: it has no sessions",
            hint="use the version of a wheel, such as 0.23",
        )

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
        keep_going: bool = False,
    ) -> EngineReply:
        """Run as `TractEngine.run` does, one process per batch within `timeout` seconds in all; `times` has only `run`.

        The command always declutters, whatever `path` is. At least one batch is needed. The memory limit, in bytes, is
        enforced on Linux only.
        """
        if not batches:
            raise InputError("the tract command line needs at least one batch of inputs")
        if change := self._change():
            return EngineReply("error", "load", change)
        reply = self._run_all(archive, batches, timeout, memory_limit, symbols, stage, keep_going)
        for path_run in further:
            if reply.status != "ok" or any(other.status != "ok" for other in reply.further):
                break
            again = [batches[number] for number in path_run.batches]
            other = self._run_all(archive, again, timeout, memory_limit, path_run.symbols, stage, keep_going)
            reply = replace(reply, further=(*reply.further, other))
        # a binary that was rebuilt while it ran may have given any of the replies
        change = self._change()
        return EngineReply("error", "load", change) if change else reply

    def _change(self) -> str:
        """Return why the binary is no longer the chosen one; '' if it still is."""
        library, sha256 = self.resolved.library, self.resolved.sha256
        try:
            status = library.stat()
            seen = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            now = sha256 if seen == self._seen else file_sha256(library)
        except OSError as cause:
            return f"{library} cannot be read: {cause.strerror}"
        if now != sha256:
            return f"{library} has changed: it has the sha256 {now}, and the engine is {sha256}"
        self._seen = seen
        return ""

    def _run_all(
        self,
        archive: Path,
        batches: Sequence[Sequence[Array]],
        timeout: float,
        memory_limit: int | None,
        symbols: Mapping[str, int] | None,
        stage: GraphStage,
        keep_going: bool,
    ) -> EngineReply:
        try:
            flags = [*self._accepted_registries(), *_PASSES[stage]]
            names = Signature.of(graph_text(archive)).inputs
        except (EngineProvisionError, OSError, ValueError) as error:
            return EngineReply("error", "load", f"{archive} cannot be read: {error}")
        for name, value in (symbols or {}).items():
            flags += ["--set", f"{name}={value}"]
        start = time.monotonic()
        outputs: list[tuple[Array, ...]] = []
        refused: dict[int, str] = {}
        limit = chosen_limit() if memory_limit is None else memory_limit
        for batch in batches:
            if len(batch) != len(names):
                message = f"{len(batch)} inputs passed, the model takes {len(names)}"
                reply = EngineReply("error", "run", message)
            else:
                left = timeout - (time.monotonic() - start)
                reply = self._run_once(archive, flags, dict(zip(names, batch, strict=True)), left, limit)
            if keep_going and (reply.status, reply.stage) == ("error", "run"):
                refused[len(outputs)] = reply.message
                outputs.append(())
                continue
            outputs += reply.outputs
            if reply.status != "ok":
                reply = replace(reply, outputs=tuple(outputs), refused=refused, widened=False)
                return explain(reply, archive, batches)
        times = {"run": time.monotonic() - start}
        reply = EngineReply("ok", "run", outputs=tuple(outputs), refused=refused, times=times, widened=True)
        return explain(reply, archive, batches)

    def _accepted_registries(self) -> tuple[str, ...]:
        if self._registries is None:
            text = ask_binary(self.resolved.library, "--help")
            self._registries = (*_REGISTRIES, *(flag for flag in _LATER_REGISTRIES if flag in text))
        return self._registries

    def _run_once(
        self, archive: Path, flags: Sequence[str], inputs: Mapping[str, Array], timeout: float, memory: int
    ) -> EngineReply:
        with scratch_folder() as scratch:
            inputs_file, got = scratch / "in.npz", scratch / "out.npz"
            float16 = any(array.dtype == np.float16 for array in inputs.values())
            _save_npz(inputs_file, inputs)
            command = [str(self.resolved.library), str(archive.absolute()), "-f", "nnef", *flags]
            command += ["run", f"--input-from-bundle={inputs_file}", f"--save-outputs={got}"]
            command += ["--allow-float-casts"] if float16 else []
            memory_kills = count_memory_kills()
            # the lines of this log show the stage
            environment = {**single_threaded_environment(), **self.resolved.environment, "TRACT_LOG": _LOG}
            ended = execute(command, timeout, memory, environment)
            exit_code, stderr = ended.exit_code, ended.stderr
            reached = _stage_of(stderr)
            if exit_code == 1:  # an error that the command line reports; a panic exits with 101
                return EngineReply("error", reached, _error_text(stderr), stderr)
            if exit_code or ended.killed:
                for_memory = count_memory_kills() > memory_kills
                death = explain_death(exit_code, stderr, killed_by_us=ended.killed, killed_for_memory=for_memory)
                return EngineReply(death.status, reached, death.message, stderr)
            if panic := first_panic(stderr):  # whatever its status is
                return EngineReply("crash", reached, f"it ended with status 0 after a panic: {panic}", stderr)
            try:
                outputs = tuple(read_npz(got, memory).values())
            except (OSError, ValueError) as cause:
                return EngineReply("crash", "run", f"it succeeded but wrote no outputs: {cause}", stderr)
            return EngineReply("ok", "run", outputs=(outputs,))


def _save_npz(path: Path, inputs: Mapping[str, Array]) -> None:
    """Write an .npz file with any identifiers as names, also `file`, which `np.savez` reserves; float16 as float32."""
    with zipfile.ZipFile(path, "w") as bundle:
        for name, array in inputs.items():
            with bundle.open(f"{name}.npy", "w", force_zip64=True) as entry:
                plain = plain_array(array.astype(np.float32) if array.dtype == np.float16 else array)
                np.lib.format.write_array(entry, plain, allow_pickle=False)


def _stage_of(stderr: str) -> EngineStage:
    if "Model ready" in stderr:
        return "run"
    return "optimise" if re.search(r"Model .*loaded", stderr) else "load"


def _error_text(stderr: str) -> str:
    """Return the output starting at the first line with an error; the causes follow that line."""
    match = re.search(r"^.*(?:\bERROR\b|\bError:).*", stderr, re.MULTILINE | re.DOTALL)
    if match:
        return match[0].strip()[-4000:]
    return f"it ended with status 1 and no error message\n{stderr[-4000:]}".strip()
