"""The `g` and the parsed arguments of rules that were written for torch.onnx."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from t2n_core.errors import RewriteError
from t2n_core.nnef.graph import Value

_PARSERS: dict[str, Callable[[Any], Any]] = {
    "v": lambda value: value,
    "none": lambda value: value,
    "t": lambda value: value,
    "i": int,
    "f": float,
    "b": bool,
    "s": str,
    "is": lambda value: [int(v) for v in value],
    "fs": lambda value: [float(v) for v in value],
}


class OnnxEmitter:
    """An emitter that also writes operators as `g.op("squeeze", x, axes_i=[0])`."""

    def __init__(self, emitter: Any) -> None:
        self._emitter = emitter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._emitter, name)

    def op(self, name: str, *args: Any, **attributes: Any) -> Any:
        """Write one operator of the target, with the attributes' kinds after an underscore, and return its result.

        `Squeeze` is `squeeze`: CamelCase names are read as NNEF's. Raises LowerError for an unknown name.
        """
        operator = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
        written = {re.sub(r"_[ifstz]$", "", key): value for key, value in attributes.items()}
        try:
            write = getattr(self._emitter, operator)
        except AttributeError as unknown:
            raise self._emitter.fail(
                f"g.op({name!r}): {unknown}", hint="g.op takes the target's own operators, by their names in NNEF"
            ) from unknown
        return write(*args, **written)


def check_descriptors(descriptors: Iterable[str] | None) -> tuple[str, ...]:
    """Return the descriptors of a rule's arguments. Raises RewriteError for an unknown one."""
    names = tuple(descriptors or ())
    for descriptor in names:
        if descriptor not in _PARSERS:
            raise RewriteError(
                f"{descriptor!r} is not a descriptor of an argument", hint=f"write one of {', '.join(_PARSERS)}"
            )
    return names


def parse(g: Any, name: str, value: Any, descriptor: str) -> Any:
    """Return an argument as its descriptor requires. Raises LowerError for a tensor instead of a constant."""
    if value is None:
        return None
    if isinstance(value, Value) and descriptor not in ("v", "none", "t"):
        raise g.fail(f"the argument `{name}` is a tensor of the graph, not a constant as {descriptor!r} asks for")
    try:
        return _PARSERS[descriptor](value)
    except (TypeError, ValueError) as wrong:
        raise g.fail(f"the argument `{name}`={value!r} is not what {descriptor!r} asks for: {wrong}") from wrong
