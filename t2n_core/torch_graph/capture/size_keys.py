"""Dicts in which a model keeps what it computes for a size, `self.cache[x.shape[1]]`, while the size is symbolic.

Python cannot hash a symbolic size. During capture each dict of the model is a copy that takes such keys, in which
nothing is stored for them yet, so that the model computes what it would at a size that it has not seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import torch

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.capture.containers import replace_stored
from t2n_core.torch_graph.graph.captured import CapturedModel
from t2n_core.torch_graph.reachable import Reachable

UNHASHABLE: Final = "unhashable type: non-nested SymInt"
"""Text of the error of Python for such a key."""
_HINT: Final = "compute the value from the size, or keep the axis static"
_MOST: Final = 8
"""Numbers among the keys of dicts at which a capture is compared with the model, for each symbol."""
_ABSENT: Final = object()
_OF_A_MODULE: Final = frozenset(vars(torch.nn.Module()))


class _SizeKeyedDict(dict[Any, Any]):
    """A dict whose keys may be sizes, and tuples with sizes."""

    def __init__(self, original: dict[Any, Any]) -> None:
        super().__init__(original)
        self.original = original
        self.missed: dict[Any, Any] = {}
        """The keys with sizes that were looked up, and for which nothing has been stored."""
        self.has_sizes = False
        """True once a key with sizes was stored."""

    def __contains__(self, key: Any) -> bool:
        return self._lookup(key) is not _ABSENT

    def __getitem__(self, key: Any) -> Any:
        value = self._lookup(key)
        if value is _ABSENT:
            raise KeyError(key)
        return value

    def get(self, key: Any, default: Any = None) -> Any:
        value = self._lookup(key)
        return default if value is _ABSENT else value

    def __setitem__(self, key: Any, value: Any) -> None:
        hashable = _hashable(key)
        self.has_sizes = self.has_sizes or _has_size(key)
        self.missed.pop(hashable, None)
        super().__setitem__(hashable, value)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def _lookup(self, key: Any) -> Any:
        hashable = _hashable(key)
        value = super().get(hashable, _ABSENT)
        if value is _ABSENT and _has_size(key):
            self.missed[hashable] = key
        return value


class SizeKeyedDicts:
    """The dicts of one model and of its code."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model
        self._numbers: set[int] = set()
        """Integers in the keys before capture, which are sizes of former calls if the dict is a cache."""

    @contextmanager
    def taking_sizes(self) -> Iterator[None]:
        """While active, the dicts take sizes as keys; they are unchanged afterwards.

        Raises CaptureError at the end if the model has looked up a size and stored nothing for it: such a dict is a
        table of some sizes.
        """
        reachable = Reachable()
        reachable.follow(self._model)
        internal_ids = {
            id(value) for module in reachable.modules() for name, value in vars(module).items() if name in _OF_A_MODULE
        }
        copies: dict[int, _SizeKeyedDict] = {}

        def replacement(value: Any) -> Any:
            if type(value) is not dict or id(value) in internal_ids:
                return value
            if id(value) not in copies:
                copies[id(value)] = copy = _SizeKeyedDict(value)
                copy.update({key: replacement(item) for key, item in value.items()})
            return copies[id(value)]

        replace_stored(self._model, replacement)
        try:
            yield
        finally:
            replace_stored(self._model, _original)
            for copy in copies.values():  # a dict inside another that was replaced
                copy.original.update({key: _original(item) for key, item in copy.original.items()})
        for copy in copies.values():
            for key in copy.missed.values():
                raise CaptureError(
                    f"the model looks up the size {key} in a dict, and stores nothing there for a new size", hint=_HINT
                )
            if copy.has_sizes:
                self._numbers.update(number for key in copy.original for number in _numbers_in(key))

    def sizes(self, captured: CapturedModel) -> Iterator[dict[str, int]]:
        """Yield the sizes inside the range of a capture that are keys of a dict that takes sizes."""
        for name, number in itertools.product(captured.symbols, sorted(self._numbers)[:_MOST]):
            at = {**captured.captured_at, name: number}
            if captured.range.holds(at):
                yield at


def of_table(sizes: Mapping[str, int]) -> CaptureError:
    """Return the error for a dict that holds another value for these sizes than the model computes."""
    at = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    return CaptureError(
        f"a dict of the model holds a value for {at} that it does not compute for other sizes", hint=_HINT
    )


def _original(value: Any) -> Any:
    return value.original if isinstance(value, _SizeKeyedDict) else value


def _has_size(key: Any) -> bool:
    if isinstance(key, tuple):
        return any(map(_has_size, key))
    return isinstance(key, torch.SymInt | torch.SymFloat)


def _hashable(key: Any) -> Any:
    """Return a key with the expressions of sizes as text."""
    if isinstance(key, tuple) and _has_size(key):
        return tuple(map(_hashable, key))
    return (torch.SymInt, str(key)) if _has_size(key) else key


def _numbers_in(key: Any) -> Iterator[int]:
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, tuple):
            yield from _numbers_in(part)
        elif isinstance(part, int) and part > 0:
            yield part
