"""The sizes of symbols, from the shapes of the inputs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from t2n_core.dialect.expressions import Scope, evaluate_expression
from t2n_core.errors import InputError
from t2n_core.nnef.reading.grammar import parse_expression
from t2n_core.nnef.reading.tree import Literal, Name, Node, names_in, nodes_in

_ASSERTION: Final = "tract_assert"
_SYMBOL: Final = "tract_symbol"


def solve(shapes: Mapping[str, tuple[Sequence[Node], Sequence[int]]]) -> dict[str, int]:
    """Return the sizes of all symbols in the declared shapes of inputs, by the extents that the inputs have.

    An extent is a number, a symbol, or an expression that is linear in each of its symbols. Raises InputError for an
    input of another rank or extent, and for a symbol that no extent determines.
    """
    symbols: dict[str, int] = {}
    left = []
    for name, (declared, extents) in shapes.items():
        if len(declared) != len(extents):
            raise InputError(f"the input `{name}` has {len(extents)} axes, and the graph declares {len(declared)}")
        left += [(name, axis, node, extent) for axis, (node, extent) in enumerate(zip(declared, extents, strict=True))]
    left.sort(key=lambda equation: not isinstance(equation[2], Name))
    while left:
        waiting = []
        for name, axis, node, extent in left:
            unknown = names_in(node) - symbols.keys()
            if len(unknown) == 1:
                symbol = unknown.pop()
                symbols[symbol] = _solution(node, symbol, extent, symbols)
            if names_in(node) <= symbols.keys():
                if size_of(node, symbols) != extent:
                    size = size_of(node, symbols)
                    raise InputError(f"axis {axis} of the input `{name}` has {extent} elements, and not {size}")
            else:
                waiting.append((name, axis, node, extent))
        if len(waiting) == len(left):
            unknown = names_in(waiting[0][2]) - symbols.keys()
            raise InputError(f"no input determines the size `{sorted(unknown)[0]}`")
        left = waiting
    return symbols


def size_of(node: Node, symbols: Mapping[str, int]) -> int:
    """Return the value of a size."""
    if isinstance(node, Literal):
        return int(node.value)
    return int(evaluate_expression(node, Scope({}, symbols, _no_call)))


def _no_call(*_: Any) -> Any:
    raise InputError("a size is computed by an operator")


def _solution(node: Node, symbol: str, extent: int, known_sizes: Mapping[str, int]) -> int:
    if isinstance(node, Name):
        return extent
    at_zero, at_large = (size_of(node, {**known_sizes, symbol: value}) for value in (0, 1 << 20))
    if at_zero == at_large:
        raise InputError(f"the size `{symbol}` cannot be found from an extent of {extent}")
    return round((extent - at_zero) * (1 << 20) / (at_large - at_zero))


def declared_symbols(extensions: Iterable[str]) -> set[str]:
    """Return the symbols that the extensions of a graph declare."""
    parts = (extension.partition(" ") for extension in extensions)
    return {name.strip() for word, _, name in parts if word == _SYMBOL}


def check_assertions(extensions: Iterable[str], symbols: Mapping[str, int]) -> None:
    """Raise InputError for sizes that the assertions of a graph exclude.

    All assertions must hold, and where some belong to scenarios, all of at least one scenario: an engine refuses other
    sizes.
    """
    plain, scenarios = _assertions(extensions)
    for text in plain:
        if not _holds(text, symbols):
            raise InputError(f"the graph asserts `{text}`, and {_sizes_in([text], symbols)}")
    if scenarios and not any(all(_holds(text, symbols) for text in each) for each in scenarios.values()):
        each = dict.fromkeys(" and ".join(texts) for texts in scenarios.values())
        texts = list(itertools.chain.from_iterable(scenarios.values()))
        raise InputError(f"the graph has the scenarios `{'`, `'.join(each)}`, and {_sizes_in(texts, symbols)}")


def asserted_numbers(extensions: Iterable[str]) -> set[int]:
    """Return the integers in the assertions of a graph: sizes next to them are the first and last that are allowed."""
    plain, scenarios = _assertions(extensions)
    nodes = (parse_expression(text) for text in itertools.chain(plain, *scenarios.values()))
    literals = (part.value for node in nodes for part in nodes_in(node) if isinstance(part, Literal))
    return {int(value) for value in literals if isinstance(value, int | float)}


def _assertions(extensions: Iterable[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the assertions outside scenarios, and each scenario's assertions."""
    plain: list[str] = []
    scenarios: dict[str, list[str]] = {}
    for extension in extensions:
        word, _, text = extension.partition(" ")
        if word == _ASSERTION:
            scenario, colon, condition = text.partition(":")
            (scenarios.setdefault(scenario.strip(), []) if colon else plain).append((condition or text).strip())
    return plain, scenarios


def _holds(text: str, symbols: Mapping[str, int]) -> bool:
    """Return whether an assertion holds, or reads a symbol without a size."""
    node = parse_expression(text)
    return not names_in(node) <= symbols.keys() or bool(evaluate_expression(node, Scope({}, symbols, _no_call)))


def _sizes_in(texts: Iterable[str], symbols: Mapping[str, int]) -> str:
    names = set[str]().union(*(names_in(parse_expression(text)) for text in texts))
    return ", ".join(f"{name} = {symbols[name]}" for name in sorted(names & symbols.keys()))
