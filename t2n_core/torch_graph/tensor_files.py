"""Named tensors of a model, a state_dict, or files, which stay on disk until they are used."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import msgspec
import torch

from t2n_core.errors import InputError
from t2n_core.foreign import ForeignFileError, decode_json, open_file

TensorSource: TypeAlias = torch.nn.Module | Mapping[str, torch.Tensor] | str | Path

_SAFETENSORS: Final = ".safetensors"
_DTYPES: Final = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
    "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "F8_E8M0": torch.float8_e8m0fnu,
}  # fmt: skip
_LONGEST_HEADER: Final = 100 << 20
_Extent = Annotated[int, msgspec.Meta(ge=0)]


def named_tensors(source: TensorSource) -> Mapping[str, torch.Tensor]:
    """Return a state_dict's tensors by name; tensors in files are read on access.

    A file is `.safetensors` or a state_dict that `torch.save` wrote; a folder contains `.safetensors` files.

    Raises InputError for other files, and for damaged ones.
    """
    if isinstance(source, torch.nn.Module):
        parameters = dict(source.named_parameters(remove_duplicate=False))
        return {**parameters, **dict(source.named_buffers(remove_duplicate=False))}
    if isinstance(source, Mapping):
        return source
    path = Path(source)
    files = sorted(path.glob(f"*{_SAFETENSORS}")) if path.is_dir() else [path]
    if not files or not all(file.is_file() for file in files):
        raise InputError(f"{path} holds no tensors", hint=f"a file or a folder of {_SAFETENSORS}, or a state_dict")
    if path.suffix == _SAFETENSORS or path.is_dir():
        return _SafeTensors(files)
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as cause:  # a damaged file can raise any exception
        raise InputError(f"{path} holds no state_dict: {cause}") from cause
    if not isinstance(loaded, Mapping) or not all(isinstance(value, torch.Tensor) for value in loaded.values()):
        raise InputError(f"{path} holds no state_dict: a mapping of names to tensors")
    return loaded


class _Place(msgspec.Struct):
    """The entry of a tensor in the header of a file."""

    dtype: str
    shape: list[_Extent]
    data_offsets: tuple[_Extent, _Extent]


class _SafeTensors(Mapping[str, torch.Tensor]):
    """The tensors of files, each mapped into memory on access."""

    def __init__(self, files: list[Path]) -> None:
        self._places: dict[str, tuple[Path, int, _Place]] = {}
        for file in files:
            start, header = _header(file)
            self._places.update({name: (file, start, entry) for name, entry in header.items()})

    def __getitem__(self, name: str) -> torch.Tensor:
        file, start, entry = self._places[name]
        if entry.dtype not in _DTYPES:
            raise InputError(f"{file}: `{name}` has the dtype {entry.dtype!r}, which is not supported")
        dtype, shape, (begin, end) = _DTYPES[entry.dtype], entry.shape, entry.data_offsets
        count = math.prod(shape)
        if end - begin != count * dtype.itemsize or start + end > file.stat().st_size:
            raise InputError(f"{file}: `{name}` is not at the position that the header declares")
        try:
            if not count:
                return torch.empty(shape, dtype=dtype)
            file_bytes = torch.from_file(str(file), shared=False, size=start + end, dtype=torch.uint8)
            data = file_bytes[start + begin :]
            return (data if (start + begin) % dtype.itemsize == 0 else data.clone()).view(dtype).reshape(shape)
        except RuntimeError as wrong:  # a shape such as (0, 2**62, 4)
            raise InputError(f"{file}: `{name}` is not a tensor of PyTorch: {wrong}") from wrong

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _header(file: Path) -> tuple[int, dict[str, _Place]]:
    """Return the offset of the tensors in a file, and the entries of its header. Raises InputError."""
    try:
        with open_file(file) as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 0 < length <= min(_LONGEST_HEADER, file.stat().st_size):
                raise InputError(f"{file} is not a file of safetensors")
            entries = decode_json(stream.read(length), dict[str, msgspec.Raw], "its header")
            entries.pop("__metadata__", None)
            return 8 + length, {name: decode_json(bytes(raw), _Place, f"`{name}`") for name, raw in entries.items()}
    except ForeignFileError as wrong:
        raise InputError(f"{file} is not a file of safetensors: {wrong}") from wrong
