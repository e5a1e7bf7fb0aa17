"""NNEF text as data: its assignments, with names as names, without the shapes and dtypes of computed values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from t2n_core.nnef.lexical import literal_text


class Name(str):
    """A name in the text: of a value or of a symbolic size."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression with operators, such as `(T+1)/2`, as text."""

    text: str
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an operation."""

    name: str
    """Empty for a positional argument."""
    value: Any
    """A bool, int, float, str, Name, Expression, or a list or tuple of these."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """One line of a graph or a fragment: `y = relu(x)`."""

    results: tuple[str, ...]
    operator: str
    """Empty where the argument itself gets a name, `y = x` or `k = [1.0, 2.0]`."""
    arguments: tuple[Argument, ...]
    dtype: str = ""
    """The type in angle brackets."""
    is_list: bool = False
    """True for results in brackets: `[a, b] = split(x, …)`."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return an argument that is passed by name."""
        return next((argument.value for argument in self.arguments if argument.name == name), default)

    def names(self) -> Iterator[Name]:
        """Yield the names among the arguments, in order."""
        for argument in self.arguments:
            yield from names_in(argument.value)

    def text(self) -> str:
        """Return the line, without the semicolon."""
        parts = [
            f"{argument.name} = {value_text(argument.value)}" if argument.name else value_text(argument.value)
            for argument in self.arguments
        ]
        generic = f"<{self.dtype}>" if self.dtype else ""
        called = f"{self.operator}{generic}({', '.join(parts)})" if self.operator else parts[0]
        return f"{self._left_side()} = {called}"

    def _left_side(self) -> str:
        names = ", ".join(self.results)
        if self.is_list:
            return f"[{names}]"
        return names if len(self.results) == 1 else f"({names})"


@dataclass(frozen=True, slots=True)
class FragmentText:
    """A fragment: its text, and what its head and body declare."""

    name: str
    text: str
    parameters: tuple[str, ...]
    results: tuple[str, ...]
    body: tuple[Assignment, ...] | None
    """None for a body that cannot be parsed, for example because of a comprehension."""
    uses: frozenset[str] = frozenset()
    """The operators and fragments that its body uses."""


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a `graph.nnef`."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    assignments: tuple[Assignment, ...]
    extensions: tuple[str, ...] = ()
    fragments: Mapping[str, FragmentText] = field(default_factory=dict)


def names_in(value: Any) -> Iterator[Name]:
    """Yield the names inside an argument, also in lists and expressions."""
    if isinstance(value, Name):
        yield value
    elif isinstance(value, Expression):
        yield from value.names
    elif isinstance(value, list | tuple):
        for item in value:
            yield from names_in(item)


def replace_names(value: Any, new_name: Callable[[Name], str]) -> Any:
    """Return an argument with every name in it replaced, also in lists and expressions."""
    if isinstance(value, Name):
        return Name(new_name(value))
    if isinstance(value, Expression):
        words = [new_name(Name(word)) if word in value.names else word for word in value.text.split(" ")]
        return Expression(" ".join(words), tuple(Name(new_name(name)) for name in value.names))
    if isinstance(value, list | tuple):
        return type(value)(replace_names(item, new_name) for item in value)
    return value


def value_text(value: Any) -> str:
    """Return an argument as text."""
    if isinstance(value, Name):
        return str(value)
    if isinstance(value, Expression):
        return value.text.replace(" ", "")
    if isinstance(value, list):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(value_text, value))})"
    try:
        return literal_text(value)
    except ValueError:  # from another exporter: a number or a string that this one would not write
        return f'"{value}"' if isinstance(value, str) else repr(value)
