"""The evaluator: the values of an archive's tensors, by the definitions of their operators, in float64."""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from t2n_core.dialect.binding import bind, bind_to, call, result_types, tensors_in
from t2n_core.dialect.expressions import Scope, evaluate_expression
from t2n_core.dialect.operators import functions
from t2n_core.dialect.quantised import before_rounding, on_grid, on_levels
from t2n_core.dialect.registry import Definition
from t2n_core.dialect.statements import STATEMENTS
from t2n_core.dialect.tensors import Tensor
from t2n_core.dialect.without_meaning import WITHOUT_MEANING
from t2n_core.errors import (
    BudgetError,
    InputError,
    MalformedArchiveError,
    MeaningError,
    SpecError,
    T2NError,
    UndefinedOperatorError,
)
from t2n_core.nnef.reading.document import FragmentText
from t2n_core.nnef.reading.grammar import parse_body
from t2n_core.nnef.reading.quantisation import Grid
from t2n_core.nnef.reading.tree import Call, Statement, names_in
from t2n_core.nnef.signatures import Signature, fragment_signature

_FAILURES: Final = (
    ValueError,
    IndexError,
    ZeroDivisionError,
    TypeError,
    KeyError,
    OverflowError,
    MemoryError,
    RecursionError,
)
_MOST_RUNS: Final = 1_000_000
_DEEPEST: Final = 100
_LONGEST: Final = 300
"""Characters of a statement in a message."""


class Evaluation:
    """The run of one graph: its weights, fragments and symbols, and the values that are alive."""

    def __init__(
        self,
        fragments: Mapping[str, FragmentText],
        tensors: Mapping[str, Any],
        symbols: Mapping[str, int],
        *,
        grids: Mapping[str, Grid] | None = None,
        unsolved: Container[str] = (),
        round_to_storage: bool = False,
        timeout: float | None = None,
        standard: bool = False,
    ) -> None:
        self.fragments = fragments
        self.tensors = tensors
        self.symbols = symbols
        self._grids = grids or {}
        self._grid: Grid | None = None
        """The grid of the statement that is computed."""
        self._unsolved = unsolved
        self.round_to_storage = round_to_storage
        self._timeout = timeout
        self._end = None if timeout is None else time.monotonic() + timeout
        self.definitions = functions(standard=standard)
        self._runs = self._depth = 0
        """Number of fragments that were run, and the depth of nested runs."""
        self._bodies: dict[str, tuple[Signature, tuple[Statement, ...]]] = {}

    def run(self, statements: Sequence[Statement], values: dict[str, Any], results: Iterable[str]) -> dict[str, Any]:
        """Return the results of statements over `values`, which is left with nothing that no later statement reads.

        Raises MeaningError, with the statement, where a definition cannot be computed or a name is not defined.
        """
        result_names = tuple(results)
        unused = last_uses(statements, values, result_names)
        for index, statement in enumerate(statements):
            self._assign(statement, self._value_of(statement, values), values)
            for name in unused.get(index, ()):
                values.pop(name, None)
        missing = [name for name in result_names if name not in values]
        if missing:
            raise MalformedArchiveError(f"no statement defines the result `{missing[0]}`")
        return {name: values[name] for name in result_names}

    def _value_of(self, statement: Statement, values: dict[str, Any]) -> Any:
        scope = Scope(values, self.symbols, self.call, self._unsolved)
        if self._end is not None and time.monotonic() > self._end:
            raise _at(statement, BudgetError(f"the evaluation took longer than {self._timeout:.0f} seconds"))
        outer, self._grid = self._grid, self._grids.get(statement.results[0])
        try:
            with np.errstate(all="ignore"):
                if self._grid is None:
                    return evaluate_expression(statement.value, scope)
                return on_grid(evaluate_expression(before_rounding(statement), scope), self._grid)
        except (*_FAILURES, InputError, SpecError, MeaningError) as wrong:
            raise _at(statement, wrong) from wrong
        finally:
            self._grid = outer

    def _assign(self, statement: Statement, value: Any, values: dict[str, Any]) -> None:
        names = statement.results
        if len(names) == 1 and not statement.is_list:
            values[names[0]] = value[0] if isinstance(value, tuple) and len(value) == 1 else value
            return
        if not isinstance(value, list | tuple) or len(value) != len(names):
            count = len(value) if isinstance(value, list | tuple) else 1
            raise MeaningError(f"{len(names)} names are assigned {count} results: `{statement.text[:_LONGEST]}`")
        values.update(zip(names, value, strict=True))

    def call(self, operation: Call, arguments: Sequence[tuple[str, Any]]) -> Any:
        """Return the results of a call of a fragment or an operator. Raises UndefinedOperatorError."""
        name = operation.operator
        if name in self.fragments:
            signature, _ = self.body_of(name)
            return self.run_fragment(name, bind_to(signature, arguments))
        statement = STATEMENTS.get(name)
        if statement is not None:
            return statement(self, operation, bind(name, arguments))
        definition = self.definitions.get(name)
        if definition is None:
            reason = WITHOUT_MEANING.get(name)
            raise UndefinedOperatorError(f"`{name}` has no definition" + (f": it {reason}" if reason else ""), op=name)
        return self.apply(definition, bind(name, arguments))

    def apply(self, definition: Definition, arguments: Mapping[str, Any]) -> Any:
        """Return the result of a definition as a tensor, several as a tuple."""
        arguments = on_levels(definition.name, arguments, tensors_in(arguments), self._grid)
        result = call(definition, arguments)
        several = isinstance(result, tuple | list)
        arrays = [np.asarray(value) for value in (result if several else [result])]
        types = result_types(definition, arguments, len(arrays))
        constant = all(tensor.is_constant for tensor in tensors_in(arguments))
        typed = [self.typed(a, a.dtype if t is None else t, constant) for a, t in zip(arrays, types, strict=True)]
        return tuple(typed) if several else typed[0]

    def typed(self, array: Any, dtype: np.dtype[Any], is_constant: bool = False) -> Tensor:
        """Return a computed array as a tensor: integers in its data type, floats in float64 unless they are rounded."""
        if dtype.kind == "f" and not self.round_to_storage:
            return Tensor(np.asarray(array, dtype=np.float64), dtype, is_constant)
        return Tensor(array.astype(dtype, copy=False), dtype, is_constant)

    def body_of(self, name: str) -> tuple[Signature, tuple[Statement, ...]]:
        """Return signature and statements of a fragment. Raises InputError if there is none, or it cannot be parsed."""
        if name not in self.fragments:
            raise InputError(f"there is no fragment `{name}`")
        if name not in self._bodies:
            text = self.fragments[name].text
            self._bodies[name] = (fragment_signature(name, text), parse_body(text))
        return self._bodies[name]

    def run_fragment(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the result of a fragment, several as a tuple. Its body sees its parameters only."""
        signature, statements = self.body_of(name)
        names = [result.name for result in signature.results]
        self._runs += 1
        if self._runs > _MOST_RUNS or self._depth == _DEEPEST:
            is_deep = self._depth == _DEEPEST
            problem = f"nested more than {_DEEPEST} deep" if is_deep else f"run more than {_MOST_RUNS:,} times"
            raise BudgetError(f"fragments are {problem}, of which `{name}` is the next")
        self._depth += 1
        try:
            results = self.run(statements, dict(arguments), names)
        finally:
            self._depth -= 1
        return results[names[0]] if len(names) == 1 else tuple(results[result_name] for result_name in names)


def last_uses(statements: Sequence[Statement], names: Iterable[str], results: Iterable[str]) -> dict[int, list[str]]:
    """Return the names that no later statement reads, by the index of a statement; `results` are left out."""
    places = dict.fromkeys(names, 0)
    for index, statement in enumerate(statements):
        places.update(dict.fromkeys((*statement.results, *names_in(statement.value)), index))
    for name in results:
        places.pop(name, None)
    names_by_index: dict[int, list[str]] = {}
    for name, index in places.items():
        names_by_index.setdefault(index, []).append(name)
    return names_by_index


def _at(statement: Statement, wrong: Exception) -> T2NError:
    text = statement.text if len(statement.text) <= _LONGEST else f"{statement.text[:_LONGEST]}…"
    reason = wrong.message if isinstance(wrong, T2NError) else str(wrong) or type(wrong).__name__
    if isinstance(wrong, MeaningError) and wrong.statement:
        return wrong
    kind = type(wrong) if isinstance(wrong, MeaningError) else MeaningError
    if isinstance(wrong, MemoryError | RecursionError):
        kind, reason = BudgetError, str(wrong) or "it takes more memory than there is"
    operator = statement.value.operator if isinstance(statement.value, Call) else None
    cause: BaseException = wrong
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return kind(
        f"{reason}, in `{text}`",
        op=getattr(wrong, "op", None) or operator,
        statement=text,
        is_outside_of_domain=isinstance(cause, ValueError | IndexError | SpecError),
    )
