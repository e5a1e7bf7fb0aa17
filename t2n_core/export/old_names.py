"""Functions of torch-to-nnef under their own names, for files that change their imports alone."""

from __future__ import annotations

import glob
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch

from t2n_core.errors import OptionWarning
from t2n_core.export.model import ModelExport
from t2n_core.export.tensors import export_tensors
from t2n_core.files import replacing
from t2n_core.reduce.case import npz_bytes
from t2n_core.torch_graph.tensor_files import named_tensors


class VariableNamingScheme(StrEnum):
    """Values of `nnef_variable_naming_scheme`; the verbose ones are `natural`, with a warning."""

    RAW = "raw"
    NATURAL_VERBOSE = "natural_verbose"
    NATURAL_VERBOSE_CAMEL = "natural_verbose_camel"
    NUMERIC = "numeric"

    @classmethod
    def default(cls) -> VariableNamingScheme:
        """Return the scheme of an export without the option."""
        return cls.NATURAL_VERBOSE


def export_tensors_to_nnef(
    name_to_torch_tensors: Mapping[str, torch.Tensor], output_dir: str | Path
) -> dict[str, torch.Tensor]:
    """Write tensors to a folder by `export_tensors`, and return them. Raises InputError, WriteError."""
    export_tensors(name_to_torch_tensors, output_dir)
    return dict(name_to_torch_tensors)


def export_tensors_from_disk_to_nnef(
    store_filepath: str | Path,
    output_dir: str | Path,
    filter_key: Callable[[str], bool] | None = None,
    fn_check_found_tensors: Callable[[dict[str, torch.Tensor]], object] | None = None,
) -> dict[str, torch.Tensor]:
    """Write the tensors of a file whose names pass a filter to a folder by `export_tensors`, and return them.

    `fn_check_found_tensors` is called with them before they are written. Raises InputError, WriteError.
    """
    tensors = dict(iter_torch_tensors_from_disk(store_filepath, filter_key))
    if fn_check_found_tensors is not None:
        fn_check_found_tensors(tensors)
    export_tensors(store_filepath, output_dir, [glob.escape(name) for name in tensors])
    return tensors


def iter_torch_tensors_from_disk(
    store_filepath: str | Path, filter_key: Callable[[str], bool] | None = None
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield name and tensor of a file, for the names that pass a filter. Raises InputError."""
    tensors = named_tensors(store_filepath)
    for name in tensors:
        if filter_key is None or filter_key(name):
            yield name, tensors[name]


def build_io(
    model: torch.nn.Module,
    test_input: Any,
    io_npz_path: str | Path,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
) -> tuple[list[str], list[str]]:
    """Write the example's inputs and PyTorch's outputs to a `.npz`, and return the names of both.

    They are the sample that the check of an export compares with. Raises InputError, CaptureError.
    """
    export = ModelExport(model, test_input, input_names=input_names, output_names=output_names)
    sample, names = export.samples[0], export.captured.results.names(output_names)
    inputs = dict(zip(export.inputs.names, sample.inputs, strict=True))
    arrays = {**inputs, **dict(zip(names, sample.expected, strict=True))}
    with replacing(Path(io_npz_path)) as file:
        file.write(npz_bytes(arrays))
    return list(export.inputs.names), names


def harden_jit_for_export(
    model: torch.jit.ScriptModule, args: Any = None, *, freeze: bool = True, diagnostics: Any = None
) -> torch.jit.ScriptModule:
    """Return the script as it is, with a warning: its control flow is followed when it is captured."""
    _warn("harden_jit_for_export changes nothing: control flow of scripts is followed, and their constants are folded")
    return model


def init_log(*_: Any, **__: Any) -> None:
    """Change nothing, with a warning: `logging` itself chooses what the log of `t2n_core` shows."""
    _warn("init_log changes nothing: notes are in `result.notes`, and warnings those of Python")


def _warn(text: str) -> None:
    warnings.warn(OptionWarning(text), stacklevel=3)
