"""A user's arrays in files, in the order and the data types of a graph's inputs and outputs."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from t2n_core.errors import InputError, T2NError
from t2n_core.extras import importing
from t2n_core.foreign import ForeignFileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from t2n_core.check.file import CheckedFile
    from t2n_core.parity.judging.interface import Port

IO_FILE = "io.npz"
"""The file with inputs and outputs in the folder of a case, as tract's own have it."""
_FLOAT = "float32"


def read_sets(
    file: CheckedFile, inputs: Sequence[Path], expected: Sequence[Path] = ()
) -> tuple[list[tuple[NDArray[Any], ...]], list[tuple[NDArray[Any], ...]]]:
    """Return the inputs and the expected outputs in files, one file per set, in graph order.

    Without `inputs` they come from the `io.npz` of an archive that is a folder, if it has one. Without `expected`
    the outputs in the input files are the expected outputs, if each file has all of them.

    Raises InputError for arrays that do not fit the graph or each other.
    """
    input_names, output_names = file.names
    if not inputs and (file.path / IO_FILE).is_file():
        inputs = [file.path / IO_FILE]
        print(f"the inputs are those of {inputs[0]}", file=sys.stderr)
    if not expected and _all_hold_outputs(inputs, input_names, output_names):
        expected = inputs
    if expected and len(inputs) != len(expected):
        raise InputError(f"{len(inputs)} files of --inputs and {len(expected)} of --expected: each has its own outputs")
    read = [read_arrays(path, input_names, "input", output_names) for path in inputs]
    ports = None if file.interface is None else file.interface.inputs
    arrays = read if ports is None else [as_declared(*pair, ports) for pair in zip(inputs, read, strict=True)]
    outputs = [read_arrays(path, output_names, "output", input_names) for path in expected]
    for index, path in enumerate(expected):
        if any(array.dtype != other.dtype for array, other in zip(arrays[index], read[index], strict=True)):
            outputs[index] = as_computed(path, outputs[index], file.path, arrays[index], output_names)
    return arrays, outputs


def _all_hold_outputs(paths: Sequence[Path], inputs: Sequence[str], outputs: Sequence[str]) -> bool:
    """Return whether each input file also has all outputs; if not, print the outputs that some have on stderr."""
    present: dict[Path, list[str]] = {}
    for path in paths:
        if path.is_dir():
            present[path] = list(outputs) if (path / "output_0.pb").exists() else []
        else:
            arrays = read_npz(path)
            present[path] = [name for name in outputs if name in arrays]
            if set(present[path]) <= set(inputs):  # results that are inputs are not separate outputs
                present[path] = []
    if all(len(names) == len(outputs) for names in present.values()):
        return True
    for path, names in present.items():
        if names:
            missing = [name for name in outputs if name not in names]
            why = f"it has no {', '.join(missing)}" if missing else "other files of inputs have none"
            print(f"{path}: its outputs {', '.join(names)} are not used: {why}", file=sys.stderr)
    return False


def read_arrays(
    path: Path, names: Sequence[str], kind: Literal["input", "output"], others: Collection[str] = ()
) -> tuple[NDArray[Any], ...]:
    """Return the arrays of a .npz, or of a folder of the ONNX model zoo, in order. Raises InputError."""
    if not path.is_dir():
        return in_order(path, names, kind, others)
    with importing("a folder of test data"):
        from t2n_core.onnx_file.data_set import read_tensors

    return read_tensors(path, kind, len(names))


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a .npz by their names. Raises InputError."""
    from t2n_core import npz

    try:
        return npz.read_npz(path)
    except (OSError, ForeignFileError) as wrong:
        raise InputError(f"{path} cannot be read as .npz: {wrong}") from None


def in_order(path: Path, names: Sequence[str], kind: str, others: Collection[str] = ()) -> tuple[NDArray[Any], ...]:
    """Return the arrays of a .npz in the order of names: by name, or by index, as of `numpy.savez(path, a, b)`.

    The file may hold `others` too, as tract's `io.npz` has inputs and outputs. Raises InputError for a missing or an
    unknown array.
    """
    arrays = read_npz(path)
    if set(arrays) == {f"arr_{index}" for index in range(len(names))}:
        return tuple(arrays[f"arr_{index}"] for index in range(len(names)))
    missing = [name for name in names if name not in arrays]
    unknown = [name for name in arrays if name not in names and name not in others]
    if missing or unknown:
        wrong = [f"has no {', '.join(missing)}"] if missing else []
        wrong += [f"has {', '.join(unknown)}, which is no {kind}"] if unknown else []
        raise InputError(f"{path} {' and '.join(wrong)}; the file's {kind}s are {', '.join(names)}")
    return tuple(arrays[name] for name in names)


def as_declared(path: Path, arrays: Sequence[NDArray[Any]], ports: Sequence[Port]) -> tuple[NDArray[Any], ...]:
    """Return the arrays of a file with floats in the type that the graph declares, and a line on stderr for each cast.

    Raises InputError, which names the file, for another array than one of the declared type.
    """
    declared_arrays = []
    for array, port in zip(arrays, ports, strict=True):
        declared = _FLOAT if port.dtype == "float" else port.dtype
        if array.dtype.kind == "f" and declared.startswith("float"):
            declared_arrays.append(_cast(path, port.name, array, declared))
        elif str(array.dtype) == declared or not declared or (declared == "int" and array.dtype.kind in "iu"):
            declared_arrays.append(array)
        else:
            raise InputError(f"{path}: `{port.name}` is {array.dtype}, and the graph declares {declared}")
    return tuple(declared_arrays)


def as_computed(
    path: Path, arrays: Sequence[NDArray[Any]], archive: Path, inputs: Sequence[NDArray[Any]], names: Sequence[str]
) -> tuple[NDArray[Any], ...]:
    """Return the expected outputs of a file, float32 as float16 where the archive computes that from these inputs.

    tract's own scripts compare so. Where the definitions do not say what it computes, they stay as they are.
    """
    from t2n_core.parity.evaluation.evaluator import Evaluator

    try:
        computed = list(Evaluator.shared().evaluate(archive, inputs).values())
    except T2NError:
        return tuple(arrays)
    if len(computed) != len(arrays):
        return tuple(arrays)
    return tuple(
        _cast(path, name, array, "float16") if array.dtype == _FLOAT and result.dtype == "float16" else array
        for name, array, result in zip(names, arrays, computed, strict=True)
    )


def _cast(path: Path, name: str, array: NDArray[Any], dtype: str) -> NDArray[Any]:
    if array.dtype == dtype:
        return array
    print(f"{path}: `{name}` is cast from {array.dtype} to {dtype}", file=sys.stderr)
    return array.astype(dtype)
