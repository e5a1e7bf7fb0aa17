"""The interface of an archive: names, data types and shapes of its inputs and outputs, in order.

Samples are bound by position, so swapped names show in no number. What an export declared is compared with the text
of the graph and with the facts that the engine reports about the loaded model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from t2n_core.engine.tract.signature import Signature
from t2n_core.errors import InterfaceError
from t2n_core.foreign import ForeignFileError
from t2n_core.nnef.reading.graph_file import read_graph
from t2n_core.nnef.reading.identifiers import QUOTED, name_of

_EXTERNAL: Final = re.compile(
    rf"^\s*({QUOTED}|[^\s=]+)\s*=\s*(?:tract_core_)?external\s*(?:<(\w+)>)?\s*\(([^;]*)\)\s*;", re.MULTILINE
)
_SHAPE: Final = re.compile(r"shape\s*=\s*\[([^]]*)\]")
_DATUM_TYPE: Final = re.compile(r"""datum_type\s*=\s*["'](\w+)["']""")
_DTYPES: Final = {
    "bool": "bool",
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
"""Lower-case datum types of the engine, with the names of NumPy's data types."""
_KINDS: Final = {"integer": "int", "logical": "bool"}
"""Types of the standard that are no floats."""
_HINT: Final = "this is a bug of the exporter, please report it; or the archive was changed after it was exported"


@dataclass(frozen=True, slots=True)
class Port:
    """An input or an output."""

    name: str
    dtype: str = ""
    """The name of NumPy's data type; empty if it is not stated, or NumPy does not have it."""
    shape: tuple[str, ...] | None = None
    """Extents as text: a number, a symbol or an expression; None if they are not stated."""

    @classmethod
    def of_fact(cls, name: str, fact: str) -> Port:
        """Return the port that the engine describes as `3,T,f32`, followed by its value if it is constant."""
        *shape, word = _split(fact.strip())
        return cls(name, _dtype(word), tuple(extent for extent in shape if extent))

    def __str__(self) -> str:
        shape = "" if self.shape is None else f"[{', '.join(self.shape)}]"
        return f"{self.dtype or 'unknown'}{shape}"


@dataclass(frozen=True, slots=True)
class Interface:
    """All inputs and outputs, in order."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    source: str = "the export"
    """The author of the declaration, as messages name it."""
    only_sizes: Mapping[str, int] = field(default_factory=dict)
    """The sizes of symbols that have only one, which an engine may report by either."""

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> Interface:
        """Return the interface in the facts of a reply, without ports if they state none."""
        inputs, outputs = (tuple(Port.of_fact(*pair) for pair in facts.get(kind, ())) for kind in ("input", "output"))
        return cls(inputs, outputs)

    @classmethod
    def of_text(cls, text: str) -> Interface:
        """Return the interface in the text of a graph; of outputs it states only names. Raises ValueError for none."""
        signature = Signature.of(text)
        stated: dict[str, Port] = {}
        missing = set(signature.inputs)
        for identifier, kind, arguments in (match.groups() for match in _EXTERNAL.finditer(text)):
            name = name_of(identifier)
            stated[name] = _port_of_external(name, kind, arguments)
            missing.discard(name)
            if not missing:
                break
        inputs = tuple(stated.get(name) or Port(name) for name in signature.inputs)
        return cls(inputs, tuple(map(Port, signature.outputs)), "its text")


def interface_of(archive: Path) -> Interface | None:
    """Return the interface that the text of an archive states; None if it cannot be read."""
    try:
        return Interface.of_text(read_graph(archive).decode("utf-8"))
    except (OSError, ValueError, ForeignFileError):
        return None


def check_text(declared: Interface, archive: Path) -> None:
    """Raise InterfaceError if the text of an archive states another interface than the declared one.

    An archive that cannot be read is the engine's to refuse.
    """
    stated = interface_of(archive)
    if stated is None:
        return
    for kind in ("input", "output"):
        compared = _Ports.of(kind, declared, stated)
        compared.check_names(f"the archive's {kind}s")
        compared.check_types(f"the archive states the {kind}")


def check_order(declared: Interface, facts: Mapping[str, Any], engine: str) -> None:
    """Raise InterfaceError if an engine has loaded the inputs in another order, so that samples do not fit.

    Names that an engine has made itself, as tract up to 0.20 does, are not compared.
    """
    compared = _Ports.of("input", declared, Interface.of_facts(facts))
    if {port.name for port in compared.declared} == {port.name for port in compared.stated}:
        compared.check_names(f"the inputs that {engine} loaded")


def check_facts(declared: Interface, facts: Mapping[str, Any], engine: str) -> None:
    """Raise InterfaceError if an engine has loaded another interface than the declared one.

    tract orders inputs by their `external` statements, whatever the header of the graph says. It names an output by the
    node that computes it, so that outputs are compared by place, without their names.
    """
    stated = Interface.of_facts(facts)
    for kind in ("input", "output"):
        if kind not in facts:
            continue
        compared = _Ports.of(kind, declared, stated)
        compared.check_count(f"{engine} loaded", kind)
        compared.check_types(f"{engine} loaded the {kind}")


@dataclass(frozen=True, slots=True)
class _Ports:
    """The inputs, or the outputs, of two interfaces."""

    declared: Sequence[Port]
    stated: Sequence[Port]
    source: str
    only_sizes: Mapping[str, int]

    @classmethod
    def of(cls, kind: str, declared: Interface, stated: Interface) -> _Ports:
        if kind == "input":
            return cls(declared.inputs, stated.inputs, declared.source, declared.only_sizes)
        return cls(declared.outputs, stated.outputs, declared.source, declared.only_sizes)

    def check_names(self, subject: str) -> None:
        """Raise InterfaceError if names or their order differ."""
        ours, theirs = ([port.name for port in ports] for ports in (self.declared, self.stated))
        if ours != theirs:
            raise self._error(f"{subject} are {_listed(theirs)}", _listed(ours))

    def check_count(self, subject: str, kind: str) -> None:
        """Raise InterfaceError if there are more or fewer."""
        if len(self.declared) != len(self.stated):
            raise self._error(f"{subject} {len(self.stated)} {kind}s", str(len(self.declared)))

    def check_types(self, subject: str) -> None:
        """Raise InterfaceError if a data type or a shape differs; types that NumPy does not have are not compared."""
        for ours, theirs in zip(self.declared, self.stated, strict=True):
            if not ours.dtype or not theirs.dtype:
                continue
            shapes = self._with_sizes(ours.shape), self._with_sizes(theirs.shape)
            if not _is_same_dtype(ours.dtype, theirs.dtype) or not _is_same_shape(*shapes):
                raise self._error(f"{subject} `{ours.name}` as {theirs}", str(ours))

    def _with_sizes(self, shape: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return shape and tuple(str(self.only_sizes.get(extent, extent)) for extent in shape)

    def _error(self, stated: str, declared: str) -> InterfaceError:
        return InterfaceError(f"{stated}, and {self.source} declared {declared}", hint=_HINT)


def _is_same_dtype(ours: str, theirs: str) -> bool:
    """Return whether data types are equal; the text may state only a kind of numbers."""
    kinds = [dtype.rstrip("0123456789").removeprefix("u") for dtype in (ours, theirs)]
    return ours == theirs or (kinds[0] == kinds[1] and (ours in kinds or theirs in kinds))


def _is_same_shape(ours: tuple[str, ...] | None, theirs: tuple[str, ...] | None) -> bool:
    """Return whether shapes are equal, as far as both are stated.

    Extents are compared where both are a number or a symbol. Expressions have many forms; their values are compared at
    the sizes of each sample.
    """
    if ours is None or theirs is None or ours == theirs:
        return True
    if len(ours) != len(theirs):
        return False
    return all(a == b for a, b in zip(ours, theirs, strict=True) if _is_plain(a) and _is_plain(b))


def _is_plain(extent: str) -> bool:
    return extent.isdecimal() or extent.isidentifier()


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _port_of_external(name: str, kind: str | None, arguments: str) -> Port:
    shape, exact = _SHAPE.search(arguments), _DATUM_TYPE.search(arguments)
    extents = None if shape is None else tuple(filter(None, _split("".join(shape[1].split()))))
    dtype = _KINDS.get(kind or "", "float") if exact is None else _dtype(exact[1])
    return Port(name, dtype, extents)


def _split(text: str) -> list[str]:
    """Return the parts between commas outside parentheses; a space there ends them."""
    if "(" not in text:
        return text.partition(" ")[0].split(",")
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == " " and not depth:
            break
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _dtype(word: str) -> str:
    """Return the name of NumPy's data type for a word such as `F32`, `i64` or `Bool`; '' for another word."""
    return _DTYPES.get(word.lower(), "")
