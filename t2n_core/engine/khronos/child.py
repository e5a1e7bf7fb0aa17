"""Process that runs strict NNEF in one of the two Khronos engines.

    python -m t2n_core.engine.khronos.child interpreter|session --memory=BYTES

`interpreter` is nnef_tools' (PyTorch) with the operators of `ops.py`; `session` is the `nnef` wheel's C++
executor, which can abort, and this process with it. Frames of `wire.py` are read from descriptor 0 and written to the
original descriptor 1.
"""

from __future__ import annotations

import contextlib
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import nnef
import numpy as np

from t2n_core.engine.khronos import nnef_file
from t2n_core.engine.processes.channel import claim_channel
from t2n_core.engine.processes.memory import limit_process
from t2n_core.engine.processes.wire import Frame, read_frame, write_frame
from t2n_core.engine.protocol import Array
from t2n_core.nnef.reading.members import unpack_members
from t2n_core.scratch import scratch_folder

Send: TypeAlias = Callable[..., None]
Run: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]
DTYPES: Mapping[str, str] = {"scalar": "f", "integer": "iu", "logical": "b"}
_NO_MEMORY = re.compile(r"can't allocate memory|not enough memory", re.IGNORECASE)
_MOST_UNPACKED = 16 << 30
LOWERED = (
    "add_n area_downsample avg_roi_align batch_normalization clamp copy_n l1_normalization l2_normalization "
    "linear_quantize local_contrast_normalization local_mean_normalization local_response_normalization "
    "local_variance_normalization logarithmic_quantize max_pool_with_index max_roi_align min_max_linear_quantize "
    "moments nearest_downsample nearest_upsample prelu rms_pool separable_conv separable_deconv "
    "zero_point_linear_quantize"
)
"""Compound operators without a kernel in the C++ executor: its parser must expand them."""


class Rejected(Exception):  # noqa: N818  an answer, not a failure of this process
    """Raised for a wrong graph or wrong inputs; the message states why."""


def main(arguments: Sequence[str]) -> int:
    requests, channel = claim_channel()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which closes this process
    prepare = {"interpreter": prepare_interpreter, "session": prepare_session}[arguments[0]]
    if arguments[0] == "interpreter":
        from t2n_core.engine.khronos.ops import install

        install()
    limit_process(int(arguments[1].removeprefix("--memory=")))
    write_frame(channel, {"event": "ready"})
    with contextlib.suppress(BrokenPipeError):
        while (job := read_frame(requests)) is not None:
            perform(prepare, job, lambda header, arrays=(): write_frame(channel, header, arrays))
            write_frame(channel, {"event": "end", "exit": 0, "killed": False, "stderr": ""})
    return 0


def perform(prepare: Callable[[Path, Any, Mapping[str, Any], Send], Run], job: Frame, send: Send) -> None:
    """Run one job: send its events up to `done` or `error`."""
    times: dict[str, float] = {}
    try:
        with unpacked_archive(Path(job.header["archive"])) as folder:
            send({"event": "stage", "stage": "load"})
            start = time.perf_counter()
            graph = nnef_file.load(folder)
            run = prepare(folder, graph, job.header, send)
            times["load"] = time.perf_counter() - start
            send({"event": "stage", "stage": "run"})
            arrays = iter(job.arrays())
            start = time.perf_counter()
            for count in job.header["batches"]:
                batch = [next(arrays) for _ in range(count)]
                check_inputs(graph, batch)
                send({"event": "outputs"}, [np.asarray(output) for output in run(batch)])
            times["run"] = time.perf_counter() - start
        send({"event": "done", "times": times})
    except MemoryError as wrong:
        send({"event": "oom", "message": f"MemoryError: {wrong}"})
    except BrokenPipeError:
        raise
    except RuntimeError as wrong:
        event = "oom" if _NO_MEMORY.search(str(wrong)) else "error"  # torch has no separate exception for it
        send({"event": event, "message": f"RuntimeError: {wrong}", "times": times})
    except Exception as wrong:  # the engines raise anything from AssertionError to nnef.Error
        message = (
            str(wrong)
            if isinstance(wrong, Rejected | nnef_file.IllegalFileError)
            else f"{type(wrong).__name__}: {wrong}"
        )
        send({"event": "error", "message": message, "times": times})


@contextlib.contextmanager
def unpacked_archive(archive: Path) -> Iterator[Path]:
    """Unpack the archive into a folder, the only format that the Khronos tools read."""
    if archive.is_dir():
        yield archive
        return
    with scratch_folder() as folder:
        unpack_members(archive, folder, most=_MOST_UNPACKED)
        yield folder


def check_inputs(graph: Any, batch: Sequence[Array]) -> None:
    """Check number, dtypes and shapes of the inputs, which the engines do not check. Raises Rejected."""
    if len(batch) != len(graph.inputs):
        raise Rejected(f"the graph has {len(graph.inputs)} inputs, not {len(batch)}")
    for name, array in zip(graph.inputs, batch, strict=True):
        tensor = graph.tensors[name]
        if array.dtype.kind not in DTYPES[tensor.dtype] or (array.dtype.kind == "f" and array.dtype != np.float32):
            raise Rejected(f"the input {name} is {tensor.dtype}, not {array.dtype}")
        if list(array.shape) != list(tensor.shape):
            raise Rejected(f"the input {name} has shape {list(tensor.shape)}, not {list(array.shape)}")


# ---------------------------------------------------------------------------------------------------------- the engines
def prepare_interpreter(folder: Path, graph: Any, header: Mapping[str, Any], send: Send) -> Run:
    """Return a run of the interpreter; with `double` in the header in float64, which separates errors from rounding."""
    import torch
    from nnef_tools.interpreter.pytorch.nnef_module import NNEFModule

    from t2n_core.engine.khronos.ops import OPERATORS

    def check(name: str, tensor: torch.Tensor) -> None:
        if name in graph.tensors and list(tensor.shape) != list(graph.tensors[name].shape):
            inferred, actual = list(graph.tensors[name].shape), list(tensor.shape)
            raise Rejected(f"{name}: its inferred shape is {inferred}, its actual one {actual}")

    module = NNEFModule(str(folder), custom_operators=dict(OPERATORS), activation_callback=check).eval()
    double = bool(header.get("double"))
    if double:
        module.double()
    kinds = ", ".join(f"{t.name}: {t.dtype}{list(t.shape)}" for t in (graph.tensors[n] for n in graph.inputs))
    send({"event": "facts", "facts": {"inputs": kinds, "session_objection": nnef_file.session_objection(graph)}})

    def run(batch: Sequence[Array]) -> list[Array]:
        tensors = [torch.from_numpy(array.copy() if not double else _widen(array)) for array in batch]
        tensors = [t if t.dtype in (torch.bool, torch.float32, torch.float64) else t.long() for t in tensors]
        with torch.no_grad():
            return [output.numpy() for output in module(*tensors)]

    return run


def _widen(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind == "f" else array.copy()


def prepare_session(folder: Path, graph: Any, header: Mapping[str, Any], send: Send) -> Run:
    """Return a run of the C++ executor, which needs 32-bit values, exact shapes and contiguous arrays."""
    narrow = {"f": np.float32, "i": np.int32, "u": np.int32, "b": np.bool_}

    def run(batch: Sequence[Array]) -> list[Array]:
        plain: list[Array] = [np.array(array, dtype=narrow[array.dtype.kind], order="C") for array in batch]
        for before, after in zip(batch, plain, strict=True):
            if not np.array_equal(before, after, equal_nan=before.dtype.kind == "f"):
                raise Rejected("an integer input does not fit 32 bits")
        with nnef.Session(str(folder), lowered=LOWERED.split()) as session:
            # Copies: the executor's own memory is freed with the session.
            return [np.array(output) for output in session(*plain)]

    return run


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
