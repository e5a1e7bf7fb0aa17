"""Options and paths of torch-to-nnef's `export_model_to_nnef` that are taken with a warning."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Final

from t2n_core.errors import OptionWarning

_LEFT_OUT: Final = {
    "log_level": "notes are in `result.notes`, and warnings those of Python",
    "check_io_names_qte_match": "the names must always be as many as the inputs and outputs",
    "auto_harden_jit": "control flow of scripts is followed",
    "discover_extra_entrypoints": "entry points `t2n.operators` are always loaded",
    "strict_extra_imports": "an entry point that cannot be loaded is an error",
    "skip_eager_forward": "the model runs in PyTorch when the archive is checked",
}
"""Option -> why it changes nothing."""
_LONG_NAMES: Final = ("natural_verbose", "natural_verbose_camel")
_HIGHEST = 3
"""The highest compression level of archives; gzip's is 9."""


def take_old_options(options: dict[str, Any], compression_level: int | None) -> tuple[dict[str, Any], int | None]:
    """Return an export's options and compression level without torch-to-nnef's options, with a warning for each."""
    remaining = {name: value for name, value in options.items() if name not in _LEFT_OUT}
    for name in options.keys() - remaining.keys():
        _warn(f"{name} changes nothing: {_LEFT_OUT[name]}")
    scheme = remaining.get("nnef_variable_naming_scheme")
    if scheme in _LONG_NAMES:
        remaining["nnef_variable_naming_scheme"] = "natural"
        _warn(f"nnef_variable_naming_scheme={scheme!r} is 'natural': the path of the module and the operator")
    if compression_level is not None and _HIGHEST < compression_level <= 9:
        _warn(f"compression_level={compression_level} is {_HIGHEST}, the highest: weights hardly shrink further")
        compression_level = _HIGHEST
    return remaining, compression_level


def take_old_path(path: str | Path) -> str | Path:
    """Return the path of an archive; `.nnef` alone is `.nnef.tgz`, as in torch-to-nnef, with a warning."""
    if Path(path).suffix != ".nnef":
        return path
    new = Path(path).with_suffix(".nnef.tgz")
    _warn(f"{Path(path).name} is written as {new.name}")
    return new


def _warn(text: str) -> None:
    warnings.warn(OptionWarning(text), stacklevel=4)
