"""Names in the bytes of a library that may be operators, transforms, runtimes and C functions.

Constants of a Rust library stand beside each other without separators, so that a name has to be searched at all ends
of a run of letters; symbols state the lengths of their parts.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

_SHORTEST_WORD, _LONGEST = 4, 48
_OPERATOR = re.compile(rb"(?=(tract_[a-z0-9_]{2,48}))")
_FUNCTION = re.compile(rb"\0(tract_[a-z0-9_]+)(?=\0)")
_RUN = re.compile(rb"[a-z][a-z0-9_]{3,2000}")
_PART = re.compile(rb"(?<![0-9])([1-9][0-9]?)(?=([a-z][a-z0-9_]+))")
_NO_OPERATORS = ("tract_nnef_", "tract_linalg", "tract_onnx_opl", "tract_pulse_opl")
_SHORTEST_OPERATOR = len("tract_xyz")


def operator_names(library: bytes) -> list[str]:
    """Return what may be the name of an operator of a registry, sorted."""
    runs = {match[1].decode() for match in _OPERATOR.finditer(library)}
    runs = {run for run in runs if not run.startswith(_NO_OPERATORS)}
    return sorted({run[:end] for run in runs for end in range(_SHORTEST_OPERATOR, len(run) + 1)})


def function_names(library: bytes) -> list[str]:
    """Return what may be the name of an exported C function, sorted."""
    return sorted({match[1].decode() for match in _FUNCTION.finditer(library)})


def word_names(library: bytes, candidates: Iterable[str]) -> list[str]:
    """Return what may be the name of a transform or of a runtime, sorted.

    It is a part of a symbol, as modules are called like what they hold, or it stands beside a known name.
    """
    words = sorted(candidates)
    near = {
        run for run in (match[0].decode() for match in _RUN.finditer(library)) if any(word in run for word in words)
    }
    return sorted({*words, *itertools.chain.from_iterable(map(_parts_of_run, near)), *_parts_of_symbols(library)})


def _parts_of_run(run: str) -> Iterator[str]:
    for begin in range(len(run)):
        for end in range(begin + _SHORTEST_WORD, min(len(run), begin + _LONGEST) + 1):
            yield run[begin:end]


def _parts_of_symbols(library: bytes) -> Iterator[str]:
    """Yield the parts of mangled symbols: `9conv_nhwc`."""
    for match in _PART.finditer(library):
        length = int(match[1])
        if _SHORTEST_WORD <= length <= len(match[2]):
            yield match[2][:length].decode()
