"""One ctypes driver for the shared library of every tract wheel, from 0.19.2 on.

    driver = TractDriver(library)
    model = driver.load(archive)
    runnable = model.into_runnable(optimise=True)
    outputs = runnable.run([array, ...])

The library references no Python symbols, so any Python can load any of them. The Python code of the wheels is not used:
up to 0.22.4 it reads every output as float32. A Rust panic aborts the process: call this only in an expendable child.
Set RUST_BACKTRACE=0 before the first call, or backtraces become part of the messages.
"""

from __future__ import annotations

import ctypes as c
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from t2n_core.engine.protocol import Array
from t2n_core.errors import EngineError, EngineLoadError, EngineOptimiseError, EngineRunError
from t2n_core.nnef.reading.file_kind import is_onnx

REGISTRIES = ("tract_core", "tract_extra", "tract_transformers", "onnx", "pulse")

_CODES = {
    "?": 0x01,
    "u1": 0x11,
    "u2": 0x12,
    "u4": 0x14,
    "u8": 0x18,
    "i1": 0x21,
    "i2": 0x22,
    "i4": 0x24,
    "i8": 0x28,
    "f2": 0x32,
    "f4": 0x34,
    "f8": 0x38,
}
_COMPLEX_CODES = {"c8": 0x54, "c16": 0x58}
"""Codes for wheels of 0.19 only: later ones are built without complex numbers and crash on these codes."""


class TractDriver:
    """One loaded library, with all of its registries enabled."""

    def __init__(self, library: Path, runtime: str | None = None) -> None:
        """Load the library; graphs run on `runtime`, such as `cuda`, by default on the processor.

        Raises EngineLoadError if this system cannot load the file, it is not tract, or it lacks the runtime.
        """
        try:
            self.lib = c.CDLL(str(library))  # local symbols: several versions do not conflict
            self.lib.tract_version.restype = c.c_char_p
            self.lib.tract_get_last_error.restype = c.c_char_p
            version = self.lib.tract_version()
        except (OSError, AttributeError) as cause:
            raise EngineLoadError(f"{library} cannot be used as a tract library: {cause}") from cause
        self.reported_version: str = version.decode("utf-8", "replace")
        """The version that the library reports, which is wrong in some wheels."""
        codes = {**_CODES, **(_COMPLEX_CODES if self.reported_version.startswith("0.19.") else {})}
        self._code_of = {np.dtype(name): code for name, code in codes.items()}
        self._dtype_of = {code: dtype for dtype, code in self._code_of.items()}
        self._make = self.function("tract_tensor_from_bytes", "tract_value_from_bytes", "tract_value_create")
        self._read = self.function("tract_tensor_as_bytes", "tract_value_as_bytes", "tract_value_inspect")
        self._drop = self.function("tract_tensor_destroy", "tract_value_destroy")
        self._nnef, self._onnx = c.c_void_p(), c.c_void_p()
        self.check(self.function("tract_nnef_create")(c.byref(self._nnef)), EngineLoadError)
        self.registries = tuple(name for name in REGISTRIES if self._enable(name))
        if extended := self.find(
            "tract_nnef_enable_extended_identifier_syntax", "tract_nnef_allow_extended_identifier_syntax"
        ):
            self.check(extended(self._nnef, c.c_bool(True)), EngineLoadError)
        self.runtime = None if runtime is None else self._runtime(runtime)
        """The handle of a runtime; None for the processor, which needs none."""

    def _runtime(self, name: str) -> c.c_void_p:
        out = c.c_void_p()
        self.check(self.function("tract_runtime_for_name")(name.encode(), c.byref(out)), EngineLoadError)
        return out

    def _enable(self, registry: str) -> bool:
        if enable := self.find(f"tract_nnef_enable_{registry}"):
            self.check(enable(self._nnef), EngineLoadError)
            return True
        # since 0.23 tract_core is on, and can only be disabled
        return self.find(f"tract_nnef_disable_{registry}") is not None

    def find(self, *names: str) -> Any:
        """Return the first of these functions that this version exports, or None."""
        return next((getattr(self.lib, name) for name in names if hasattr(self.lib, name)), None)

    def function(self, *names: str) -> Any:
        """Return the first of these functions that this version exports. Raises EngineLoadError if it has none."""
        function = self.find(*names)
        if function is None:
            raise EngineLoadError(f"tract {self.reported_version} has none of the functions {', '.join(names)}")
        return function

    @property
    def no_states(self) -> tuple[Any, ...]:
        """Return the arguments of a profile that give no initial states; only 0.22 takes such arguments."""
        return (None, c.c_size_t(0)) if self.find("tract_state_initializable_states_count") else ()

    def check(self, failed: int, error: type[EngineError]) -> None:
        """Raise `error` with the engine's chain of causes, which belongs to the calling thread."""
        if failed:
            text = self.lib.tract_get_last_error()
            raise error(text.decode("utf-8", "replace") if text else "the engine failed without a message")

    def text(self, function: Any, *arguments: Any) -> str:
        """Call a function whose last argument receives a C string, which is freed."""
        out = c.c_void_p()
        self.check(function(*arguments, c.byref(out)), EngineLoadError)
        text = c.string_at(out.value or 0).decode("utf-8", "replace") if out.value else ""
        if free := self.find("tract_free_cstring"):
            free.restype = None
            free(out)
        return text

    def counts(self, kind: str, pointer: c.c_void_p) -> tuple[int, int]:
        """Return the counts of inputs and outputs; `kind` is `model` or `runnable`."""
        inputs, outputs = c.c_size_t(), c.c_size_t()
        if both := self.find(f"tract_{kind}_nbio"):
            self.check(both(pointer, c.byref(inputs), c.byref(outputs)), EngineLoadError)
        else:
            self.check(self.function(f"tract_{kind}_input_count")(pointer, c.byref(inputs)), EngineLoadError)
            self.check(self.function(f"tract_{kind}_output_count")(pointer, c.byref(outputs)), EngineLoadError)
        return inputs.value, outputs.value

    def load(self, archive: Path) -> TractModel:
        """Load an archive, which is a directory, .tar or .tgz, or an ONNX file.

        Raises EngineLoadError with the chain of causes.
        """
        pointer = c.c_void_p()
        if is_onnx(archive):
            self._load_onnx(archive, pointer)
        else:
            load = self.function("tract_nnef_load", "tract_nnef_model_for_path")
            self.check(load(self._nnef, os.fsencode(archive), c.byref(pointer)), EngineLoadError)
        return TractModel(self, pointer)

    def _load_onnx(self, file: Path, pointer: c.c_void_p) -> None:
        inference = c.c_void_p()
        if not self._onnx:
            self.check(self.function("tract_onnx_create")(c.byref(self._onnx)), EngineLoadError)
        load = self.function("tract_onnx_load", "tract_onnx_model_for_path")
        self.check(load(self._onnx, os.fsencode(file), c.byref(inference)), EngineLoadError)
        typed = self.function("tract_inference_model_into_model", "tract_inference_model_into_typed")
        self.check(typed(c.byref(inference), c.byref(pointer)), EngineLoadError)

    def write(self, model: TractModel, folder: Path) -> None:
        """Write a model as an archive in a folder that does not exist yet. Raises EngineOptimiseError."""
        write = self.function("tract_nnef_write_model_to_dir")
        self.check(write(self._nnef, os.fsencode(folder), model.pointer), EngineOptimiseError)

    def transform_of_registry(self, model: TractModel, transform: str) -> None:
        """Apply a transform of a registry, before 0.23, where an unknown name is accepted without effect.

        Raises EngineOptimiseError.
        """
        if change := self.find("tract_nnef_transform_model"):
            self.check(change(self._nnef, model.pointer, transform.encode()), EngineOptimiseError)
        else:
            model.transform(transform)

    def make_tensor(self, array: Array) -> c.c_void_p:
        """Copy an array into the engine; raises EngineRunError for a dtype that this version does not have."""
        native = array.dtype.newbyteorder("=")  # the engine reads swapped bytes as native ones
        if native not in self._code_of:
            raise EngineRunError(f"tract {self.reported_version} takes no input of dtype {array.dtype}")
        plain = np.ascontiguousarray(array, native).reshape(array.shape)  # ascontiguousarray alone loses rank 0
        shape = (c.c_size_t * plain.ndim)(*plain.shape)
        out = c.c_void_p()
        failed = self._make(
            c.c_uint32(self._code_of[native]),
            c.c_size_t(plain.ndim),
            shape,
            c.c_void_p(plain.ctypes.data),
            c.byref(out),
        )
        self.check(failed, EngineRunError)
        return out

    def read_tensor(self, tensor: c.c_void_p) -> Array:
        """Copy a tensor out; EngineRunError for types that NumPy lacks: symbolic sizes, strings, quantised types."""
        code, rank = c.c_uint32(0), c.c_size_t()
        extents, data = c.POINTER(c.c_size_t)(), c.c_void_p()
        self.check(
            self._read(tensor, c.byref(code), c.byref(rank), c.byref(extents), c.byref(data)),
            EngineRunError,
        )
        if code.value not in self._dtype_of:
            raise EngineRunError(
                f"an output has tract's datum type {code.value:#x}, which NumPy does not have",
                hint="cast this output to a numeric type in the graph",
            )
        dtype = self._dtype_of[code.value]
        shape = tuple(extents[axis] for axis in range(rank.value))
        array = np.empty(shape, dtype)
        if size := math.prod(shape) * dtype.itemsize:
            c.memmove(array.ctypes.data, data, size)
        return array

    def drop_tensors(self, tensors: Sequence[c.c_void_p]) -> None:
        for tensor in tensors:
            self._drop(c.byref(tensor))

    @contextmanager
    def tensors(self, arrays: Sequence[Array]) -> Iterator[list[c.c_void_p]]:
        """Copy arrays into the engine for as long as the block runs. Raises EngineRunError as `make_tensor` does."""
        copies: list[c.c_void_p] = []
        try:
            copies.extend(map(self.make_tensor, arrays))  # copies copies before a failure are dropped below
            yield copies
        finally:
            self.drop_tensors(copies)

    def take_arrays(self, tensors: Sequence[c.c_void_p]) -> list[Array]:
        """Copy tensors out, and drop them. Raises EngineRunError as `read_tensor` does."""
        try:
            return [self.read_tensor(tensor) for tensor in tensors]
        finally:
            self.drop_tensors(tensors)


class TractModel:
    """A loaded graph. From 0.23 on it is already decluttered."""

    def __init__(self, driver: TractDriver, pointer: c.c_void_p) -> None:
        self._driver = driver
        self.pointer = pointer

    def __del__(self) -> None:
        if self.pointer:
            self._driver.lib.tract_model_destroy(c.byref(self.pointer))

    def facts(self) -> dict[str, list[tuple[str, str]]]:
        """Return node name and fact (`3,8,F32`) of each `input` and `output`, in graph order."""
        driver = self._driver
        by_kind: dict[str, list[tuple[str, str]]] = {}
        for kind, count in zip(("input", "output"), driver.counts("model", self.pointer), strict=True):
            by_kind[kind] = []
            for index in range(count):
                name = driver.text(driver.function(f"tract_model_{kind}_name"), self.pointer, c.c_size_t(index))
                fact = c.c_void_p()
                get = driver.function(f"tract_model_{kind}_fact")
                driver.check(get(self.pointer, c.c_size_t(index), c.byref(fact)), EngineLoadError)
                by_kind[kind].append((name, driver.text(driver.function("tract_fact_dump"), fact)))
                driver.lib.tract_fact_destroy(c.byref(fact))
        return by_kind

    def set_symbols(self, values: Mapping[str, int]) -> None:
        """Give symbolic sizes a value. Raises EngineOptimiseError."""
        driver = self._driver
        if concretize := driver.find("tract_model_concretize_symbols"):
            names = (c.c_char_p * len(values))(*[name.encode() for name in values])
            sizes = (c.c_int64 * len(values))(*values.values())
            failed = concretize(self.pointer, c.c_size_t(len(values)), names, sizes)
            driver.check(failed, EngineOptimiseError)
        else:
            self.transform(json.dumps({"name": "set_symbols", "values": dict(values)}))

    def declutter(self) -> None:
        """Declutter the model in place. Raises EngineOptimiseError."""
        if declutter := self._driver.find("tract_model_declutter"):
            self._driver.check(declutter(self.pointer), EngineOptimiseError)

    @property
    def can_declutter(self) -> bool:
        """Return whether this version declutters on request, and not whenever a model is changed."""
        return self._driver.find("tract_model_declutter") is not None

    def pulse(self, symbol: str, size: int) -> None:
        """Let the graph take `size` steps of the streamed axis `symbol` at a time. Raises EngineOptimiseError."""
        driver = self._driver
        if simple := driver.find("tract_model_pulse_simple"):
            failed = simple(c.byref(self.pointer), symbol.encode(), str(size).encode())
            driver.check(failed, EngineOptimiseError)
        else:
            self.transform(json.dumps({"name": "pulse", "symbol": symbol, "pulse": str(size)}))

    def transform(self, transform: str) -> None:
        """Change the model in place by one of the engine's transforms: its name, or JSON with its arguments.

        Raises EngineOptimiseError.
        """
        change = self._driver.function("tract_model_transform")
        self._driver.check(change(self.pointer, transform.encode()), EngineOptimiseError)

    def numbers(self, name: str) -> list[int]:
        """Return an integer per input or output for a property such as `pulse.delay`. Raises EngineOptimiseError."""
        driver, tensor = self._driver, c.c_void_p()
        get = driver.function("tract_model_property")
        driver.check(get(self.pointer, name.encode(), c.byref(tensor)), EngineOptimiseError)
        try:
            return [int(number) for number in driver.read_tensor(tensor).reshape(-1)]
        finally:
            driver.drop_tensors([tensor])

    def optimise(self, *, declutter: bool = True) -> None:
        """Optimise the model in place, up to 0.22, by default decluttered before, as Rust's `into_optimized` does.

        Later its runnable is optimised. Raises EngineOptimiseError.
        """
        if declutter:
            self.declutter()
        if optimise := self._driver.find("tract_model_optimize"):
            self._driver.check(optimise(self.pointer), EngineOptimiseError)

    def into_runnable(self, *, optimise: bool, declutter: bool = True) -> TractRunnable:
        """Return a runnable, which consumes the model; `declutter` is for a model that is optimised.

        Raises EngineOptimiseError, also if `optimise` is off and this version always optimises.
        """
        driver = self._driver
        if optimise:
            self.optimise(declutter=declutter)
        elif not driver.find("tract_model_optimize"):
            raise EngineOptimiseError(
                f"tract {driver.reported_version} runs optimised graphs only",
                hint="the stages raw and declutter can be run up to tract 0.22",
            )
        out = c.c_void_p()
        if driver.runtime is not None:
            prepare = driver.function("tract_runtime_prepare")
            failed = prepare(driver.runtime, c.byref(self.pointer), c.byref(out))
        else:
            failed = driver.function("tract_model_into_runnable")(c.byref(self.pointer), c.byref(out))
        driver.check(failed, EngineOptimiseError)
        return TractRunnable(driver, out)


class TractRunnable:
    """A graph that is ready to run any number of times."""

    def __init__(self, driver: TractDriver, pointer: c.c_void_p) -> None:
        self._driver = driver
        self.pointer = pointer
        self.inputs, self.outputs = driver.counts("runnable", pointer)

    def __del__(self) -> None:
        self._driver.lib.tract_runnable_release(c.byref(self.pointer))

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Run once; inputs and outputs are in graph order. Raises EngineRunError."""
        with self._driver.tensors(arrays) as tensors:
            return self._driver.take_arrays(self.run_tensors(tensors))

    def run_steps(self, steps: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Run once per step, each with the state after the previous step. Raises EngineRunError."""
        state = self.spawn()
        return [state.run(arrays) for arrays in steps]

    def run_tensors(self, tensors: Sequence[c.c_void_p]) -> list[c.c_void_p]:
        """Run once on tensors of the engine. The caller owns them and the results, and drops them.

        Raises EngineRunError.
        """
        return self.call("tract_runnable_run", self.pointer, tensors)

    def spawn(self) -> TractState:
        """Return a new state of this graph. Raises EngineRunError."""
        pointer = c.c_void_p()
        spawn = self._driver.function("tract_runnable_spawn_state")
        self._driver.check(spawn(self.pointer, c.byref(pointer)), EngineRunError)
        return TractState(self._driver, self, pointer)

    def call(self, function: str, pointer: c.c_void_p, tensors: Sequence[c.c_void_p]) -> list[c.c_void_p]:
        """Call one of the engine's functions that run this graph. Raises EngineRunError."""
        if len(tensors) != self.inputs:  # the C side reads as many pointers as the model has inputs
            raise EngineRunError(f"{len(tensors)} inputs passed, the model takes {self.inputs}")
        inputs = (c.c_void_p * self.inputs)(*[tensor.value for tensor in tensors])
        got = (c.c_void_p * self.outputs)()
        self._driver.check(self._driver.function(function)(pointer, inputs, got), EngineRunError)
        return [c.c_void_p(value) for value in got]


class TractState:
    """A run of a graph that continues from call to call; the engine keeps its state, such as caches that it folded."""

    def __init__(self, driver: TractDriver, runnable: TractRunnable, pointer: c.c_void_p) -> None:
        self._driver, self._runnable, self._pointer = driver, runnable, pointer

    def __del__(self) -> None:
        self._driver.function("tract_state_destroy")(c.byref(self._pointer))

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Run the next step; inputs and outputs are in graph order. Raises EngineRunError."""
        with self._driver.tensors(arrays) as tensors:
            return self._driver.take_arrays(self._runnable.call("tract_state_run", self._pointer, tensors))
