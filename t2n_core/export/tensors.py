"""Tensors without a graph: another model's tensors in the storage formats of an archive, and the archive with them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import torch

from t2n_core.errors import InputError
from t2n_core.nnef.archive import write_files, write_tensors
from t2n_core.nnef.dat import WeightSource
from t2n_core.nnef.reading.graph_file import GRAPH_FILE
from t2n_core.nnef.reading.headers import DAT, TensorHeader, files_of, headers_of
from t2n_core.op.dtypes import numpy_dtype
from t2n_core.op.stored import blocks, float16
from t2n_core.op.stored.blocks import BlockWeight, as_blocks
from t2n_core.op.stored.float16 import Float16Weight
from t2n_core.op.stored.int8 import ByteWeight, as_bytes
from t2n_core.op.weights import TensorWeight
from t2n_core.torch_graph.graph.ir import StoredWeight
from t2n_core.torch_graph.tensor_files import TensorSource, named_tensors


@dataclass(frozen=True, slots=True)
class ExportedTensors:
    """The tensors written, by the keys of the state_dict."""

    path: Path
    names: tuple[str, ...]
    left: tuple[str, ...]
    """Selected tensors that are not in the archive and have no effect: counters, and further names of weights."""


def export_tensors(
    source: TensorSource,
    path: str | Path,
    names: str | Sequence[str] = "*",
    *,
    like: str | Path | None = None,
    changed_from: TensorSource | None = None,
    compression_level: int | None = None,
) -> ExportedTensors:
    """Write tensors of a model under the keys of its state_dict, one at a time, without a graph.

    Args:
        source: a module, a state_dict, or files of one: `.safetensors`, a folder of them, or a file of `torch.save`.
            A tensor is read from a file when it is written.
        path: a folder, `.tar`, `.tgz` or `.tar.gz`.
        names: patterns; the tensors that match one are written.
        like: an archive of the same architecture. Each tensor takes its storage format there: float16, int8 with its
            scales, blocks of 4 bits.
        changed_from: only tensors that differ from this model's are written, such as the model before fine-tuning.
        compression_level: of `.tgz`: 0 to 3.

    Raises:
        InputError: a pattern matches no tensor, nothing is left to write, or a tensor does not fit into the archive,
            which would compute other results: it was folded into a constant there, has another shape, or does not
            support the storage format.
        WriteError: the files cannot be written.
    """
    patterns = [names] if isinstance(names, str) else list(names)
    tensors = named_tensors(source)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in tensors):
            raise InputError(f"no tensor is called {pattern}", hint=f"there are {', '.join(list(tensors)[:5])}, …")
    chosen = [name for name in tensors if any(fnmatchcase(name, pattern) for pattern in patterns)]
    if changed_from is not None:
        before = named_tensors(changed_from)
        chosen = [name for name in chosen if name not in before or not _equal(tensors[name], before[name])]
    forms = None if like is None else headers_of(Path(like))
    left = () if forms is None else tuple(_without_effect(tensors, chosen, forms, Path(str(like))))
    written = [name for name in chosen if name not in left]
    if not written:
        raise InputError("there are no tensors to write: none of the selected ones differs")
    sources: dict[str, WeightSource] = {}
    for name in written:
        sources.update(_as_it_is(tensors, name) if forms is None else _in_storage_format(tensors, name, forms))
    target = write_tensors(sources, path, compression=compression_level)
    return ExportedTensors(target, tuple(written), left)


def replace_tensors(
    archive: str | Path, tensors: str | Path, path: str | Path, *, compression_level: int | None = None
) -> Path:
    """Write a copy of an archive with the tensors of `export_tensors` instead of its own, and return its path.

    Raises:
        InputError: the archive lacks a tensor, or has it in another shape or storage format.
        WriteError: the archive cannot be written.
    """
    base, others = Path(archive), Path(tensors)
    base_headers = headers_of(base)
    for name, header in headers_of(others).items():
        if name not in base_headers:
            raise InputError(f"{base} has no tensor `{name}`")
        if header.content != base_headers[name].content:
            raise InputError(f"`{name}` of {others} has another shape or storage format than that of {base}")
    with tempfile.TemporaryDirectory(prefix="t2n-") as folder:
        files: dict[str, Path] = {}
        for source in (base, others):  # later files replace earlier ones
            with files_of(source) as members:
                for name, stream in members:
                    if name == GRAPH_FILE or name.endswith(DAT):
                        file = files.setdefault(name, Path(folder) / f"{len(files)}{DAT}")
                        with file.open("wb") as out:
                            shutil.copyfileobj(stream, out, 1 << 20)
        return write_files(files, path, compression=compression_level)


def _without_effect(
    tensors: Mapping[str, torch.Tensor], chosen: Sequence[str], forms: Mapping[str, TensorHeader], archive: Path
) -> Iterator[str]:
    """Yield the selected tensors that an archive need not have. Raises InputError for tensors that it should have."""
    there = {_memory(tensors[name]) for name in tensors if name in forms} if isinstance(tensors, dict) else set()
    missing = []
    for name in chosen:
        if name in forms:
            continue
        tensor = tensors[name]
        if not tensor.is_floating_point() or _memory(tensor) in there:
            yield name
        else:
            missing.append(name)
    if missing:
        shown = ", ".join(f"`{name}`" for name in missing[:5])
        raise InputError(
            f"{archive} has no tensor {shown}{'' if len(missing) <= 5 else f' and {len(missing) - 5} more'}",
            hint="what is computed from weights at export, such as a filter and the batch norm after it, is a constant "
            "of the archive; select others by `names`",
        )


def _memory(tensor: torch.Tensor) -> tuple[int, tuple[int, ...]]:
    return tensor.data_ptr(), tuple(tensor.shape)


def _equal(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    return tensor.shape == other.shape and tensor.dtype == other.dtype and torch.equal(tensor.detach(), other.detach())


@dataclass(frozen=True, slots=True, eq=False)
class _Later:
    """A tensor that is read and converted when it is written."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    make: Callable[[], WeightSource]
    in_blocks: bool = False

    def chunks(self) -> Iterator[memoryview]:
        yield from self.make().chunks()


def _as_it_is(tensors: Mapping[str, torch.Tensor], name: str) -> dict[str, WeightSource]:
    tensor = tensors[name]
    dtype = torch.float32 if tensor.dtype == torch.bfloat16 else tensor.dtype
    return {name: _Later(numpy_dtype(dtype), tuple(tensor.shape), lambda: TensorWeight(tensors[name].to(dtype)))}


def _in_storage_format(
    tensors: Mapping[str, torch.Tensor], name: str, forms: Mapping[str, TensorHeader]
) -> dict[str, WeightSource]:
    """Return a tensor and its scales in the storage format of an archive. Raises InputError."""
    form, tensor = forms[name], tensors[name]
    shape, dtype = tuple(tensor.shape), form.dtype

    def number() -> torch.Tensor:
        stored = tensors[name]
        return stored.float() if stored.dtype in (torch.bfloat16, torch.float16) and dtype != np.float16 else stored

    if dtype is None and form.shape in (shape, (shape[0], tensor[:1].numel())):
        _require_no_loss(name, "in blocks", blocks.loss(number()))
        return {
            name: _Later(np.dtype(np.float32), form.shape, lambda: BlockWeight(as_blocks(number()), form.shape), True)
        }
    if form.shape != shape:
        raise InputError(f"`{name}` has the shape {list(shape)}, and {list(form.shape)} in the archive")
    of_scales = forms.get(f"{name}.scale")
    if dtype == np.int8 and tensor.is_floating_point() and of_scales is not None:
        channels = tuple(axis for axis, extent in enumerate(of_scales.shape) if extent > 1)

        def round_weight() -> StoredWeight:
            return as_bytes(number(), channels or (0,))

        return {
            name: _Later(dtype, shape, lambda: ByteWeight(round_weight())),
            f"{name}.scale": _Later(
                np.dtype(np.float32), of_scales.shape, lambda: TensorWeight(_scales(round_weight()))
            ),
        }
    if dtype == np.float16 and tensor.dtype in (torch.float32, torch.bfloat16):
        _require_no_loss(name, "float16", float16.loss(number()) if tensor.dim() > 1 else "")
        return {name: _Later(dtype, shape, lambda: Float16Weight(number()))}
    if dtype is None or numpy_dtype(number().dtype) != dtype:
        raise InputError(f"`{name}` is {tensor.dtype}, and {dtype or 'of an unknown format'} in the archive")
    return {name: _Later(dtype, shape, lambda: TensorWeight(number()))}


def _require_no_loss(name: str, form: str, reason: str) -> None:
    """Raise InputError if there is a reason why a tensor cannot be stored as it is in the archive."""
    if reason:
        raise InputError(f"`{name}` cannot be {form} as it is in the archive: {reason}")


def _scales(stored: StoredWeight) -> torch.Tensor:
    assert stored.scales is not None
    return stored.scales
