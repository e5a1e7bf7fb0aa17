"""Test data as the ONNX model zoo lays it out: a folder of `input_0.pb`, `output_0.pb` and so on."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import onnx
from onnx import numpy_helper

from t2n_core.engine.protocol import Array
from t2n_core.errors import InputError
from t2n_core.onnx_file.model import parse_message


def read_tensors(folder: Path, kind: Literal["input", "output"], count: int) -> tuple[Array, ...]:
    """Return the inputs or outputs of a folder, in order. Raises InputError for another number of them."""
    files = len(list(folder.glob(f"{kind}_*.pb")))
    if files != count:
        raise InputError(f"{folder} has {files} files {kind}_N.pb, and the model has {count} {kind}s")
    return tuple(_read_tensor(folder / f"{kind}_{index}.pb") for index in range(count))


def _read_tensor(path: Path) -> Array:
    tensor = parse_message(onnx.TensorProto, path, "an ONNX tensor")
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError) as wrong:
        raise InputError(f"{path} is no tensor: {wrong}") from None
