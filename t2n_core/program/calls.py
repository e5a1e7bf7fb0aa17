"""The calls of the archives of a program, by PyTorch's modules and in an engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from t2n_core.errors import InputError, T2NError
from t2n_core.export.result import ExportResult
from t2n_core.parity.samples import Array
from t2n_core.program.driver import Call


class ModuleCalls:
    """Runs the module of an archive, and refuses inputs that its archive does not take."""

    def __init__(self, parts: Mapping[str, ExportResult]) -> None:
        self.parts = parts
        self.count: Counter[str] = Counter()
        """Number of calls by the name of the part."""

    def __call__(self, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the outputs by name. Raises InputError for inputs that do not fit the archive."""
        part = self.parts[name]
        self.count[name] += 1
        check_fit(part, inputs, f"call {self.count[name]} of {name}")
        outputs = part.reference.answer([inputs[input_name] for input_name in part.input_names], part.stored)
        return dict(zip(part.output_names, outputs, strict=True))


def check_fit(part: ExportResult, inputs: Mapping[str, Array], where: str) -> None:
    """Raise InputError for an input whose data type, rank or sizes do not fit an archive."""
    sizes: dict[str, int] = {}
    for value in part.graph.inputs:
        array = inputs[value.name]
        expected = f"{value.dtype}{list(map(str, value.shape))}"
        fits = str(array.dtype) == str(value.dtype) and array.ndim == len(value.shape)
        for extent, size in zip(value.shape, array.shape, strict=False):
            if isinstance(extent, int):
                fits = fits and extent == size
            elif (symbol := str(extent)).isidentifier():
                fits = fits and sizes.setdefault(symbol, size) == size
        if not fits:
            got = f"{array.dtype}{list(array.shape)}"
            raise InputError(f"{where}: its input {value.name} is {expected}, and the program passes {got}")
    if sizes and set(sizes) >= set(part.captured.symbols) and not part.range.holds(sizes):
        stated = ", ".join(f"{symbol}={size}" for symbol, size in sizes.items())
        raise InputError(f"{where} has sizes outside the range of its archive, {part.range}: {stated}")


@contextmanager
def engine_calls(parts: Mapping[str, ExportResult], timeout: float) -> Iterator[Call]:
    """Return a function that runs the archives in the engine of their target; each stays loaded.

    `timeout` is in seconds for loading and for each call. Raises EngineError.
    """
    with ExitStack() as stack:
        engine: Any = next(iter(parts.values())).target.engine()
        sessions = {
            name: stack.enter_context(engine.session(part.archive, timeout=timeout)) for name, part in parts.items()
        }
        count: Counter[str] = Counter()

        def call(name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            part = parts[name]
            count[name] += 1
            try:
                outputs = sessions[name].run([np.asarray(inputs[input_name]) for input_name in part.input_names])
            except T2NError as error:
                raise type(error)(f"call {count[name]} of {name}: {error.message}", hint=error.hint) from error
            return dict(zip(part.output_names, outputs, strict=True))

        yield call
