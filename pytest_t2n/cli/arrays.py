"""A user's arrays in .npz files, and the names of an archive's inputs and outputs to which they belong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_t2n.run.export_summary import graph_text
from t2n_core.engine.tract.signature import Signature
from t2n_core.errors import InputError
from t2n_core.foreign import ForeignFileError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a .npz by their names. Raises InputError."""
    from t2n_core import npz

    try:
        return npz.read_npz(path)
    except (OSError, ForeignFileError) as wrong:
        raise InputError(f"{path} cannot be read as .npz: {wrong}") from None


def in_order(path: Path, names: Sequence[str], kind: str) -> tuple[NDArray[Any], ...]:
    """Return the arrays of a .npz in the order of names: by name, or by index, as of `numpy.savez(path, a, b)`.

    Raises InputError for a missing or an unknown array.
    """
    arrays = read_npz(path)
    if set(arrays) == {f"arr_{place}" for place in range(len(names))}:
        return tuple(arrays[f"arr_{place}"] for place in range(len(names)))
    missing = [name for name in names if name not in arrays]
    unknown = [name for name in arrays if name not in names]
    if missing or unknown:
        wrong = [f"has no {', '.join(missing)}"] if missing else []
        wrong += [f"has {', '.join(unknown)}, which is no {kind}"] if unknown else []
        raise InputError(f"{path} {' and '.join(wrong)}; the archive's {kind}s are {', '.join(names)}")
    return tuple(arrays[name] for name in names)


def signature_of(archive: Path) -> tuple[list[str], list[str]]:
    """Return the names of the inputs and outputs of an archive. Raises InputError for any other file."""
    if not archive.exists():
        raise InputError(f"there is no archive {archive}")
    try:
        signature = Signature.of(graph_text(archive).decode("utf-8", "replace"))
    except ValueError:
        raise InputError(f"{archive} is not an NNEF archive: it has no graph.nnef with a graph") from None
    return list(signature.inputs), list(signature.outputs)
