"""Statements of a program as JSON: how they are written in Python, and the check that they fit together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from t2n_core.errors import InputError
from t2n_core.program.driver import OPERATIONS

Expression: TypeAlias = Any
"""A variable as text, a number, a boolean, or a list of an operation and its operands; see `driver.evaluate`."""
Statement: TypeAlias = Mapping[str, Any]


def run(part: str, inputs: Mapping[str, Expression], outputs: Mapping[str, str]) -> Statement:
    """Return a statement that runs an archive.

    `inputs` are expressions by the names of the archive's inputs, `outputs` the variables to set by the names of its
    outputs.
    """
    return {"run": part, "inputs": dict(inputs), "outputs": dict(outputs)}


def let(**variables: Expression) -> Statement:
    """Return a statement that sets variables, one after the other."""
    return {"let": variables}


def while_(condition: Expression, *statements: Statement) -> Statement:
    """Return a loop that runs statements as long as a condition holds."""
    return {"while": condition, "do": list(statements)}


def if_(condition: Expression, then: Sequence[Statement], otherwise: Sequence[Statement] = ()) -> Statement:
    """Return a branch."""
    return {"if": condition, "then": list(then), "else": list(otherwise)}


def text(value: str) -> Expression:
    """Return a text as an expression, such as the data type of `cast`."""
    return {"text": value}


def items(*values: Expression) -> Expression:
    """Return a list as an expression, such as the shape of `full`."""
    return {"list": list(values)}


@dataclass(frozen=True, slots=True)
class Signature:
    """The names of the inputs and outputs of an archive."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def check_statements(
    statements: Sequence[Statement], inputs: Sequence[str], outputs: Sequence[str], parts: Mapping[str, Signature]
) -> None:
    """Raise InputError for the first statement that cannot run, or an archive that no statement runs.

    Checked are the names of parts, inputs, outputs and operations, the number of operands, and that each variable is
    set before it is read, in each branch and before each loop.
    """
    after = _check_block(statements, frozenset(inputs), parts, "")
    if missing := [name for name in outputs if name not in after]:
        raise InputError(f"no statement of the program always sets its output {', '.join(missing)}")
    if unused := sorted(set(parts) - set(parts_of(statements))):
        raise InputError(f"no statement of the program runs {', '.join(unused)}")


def parts_of(statements: Sequence[Statement]) -> Iterator[str]:
    """Yield the names of the archives that statements run, at any depth."""
    for statement in statements:
        if "run" in statement:
            yield statement["run"]
        for block in ("do", "then", "else"):
            yield from parts_of(statement.get(block, ()))


def _check_block(
    statements: Sequence[Statement], variables: frozenset[str], parts: Mapping[str, Signature], outer: str
) -> frozenset[str]:
    """Return the variables that are set after some statements."""
    for index, statement in enumerate(statements):
        where = f"{outer}statement {index}"
        if "run" in statement:
            variables = _check_run(statement, variables, parts, where)
        elif "let" in statement:
            for name, expression in statement["let"].items():
                _check_expression(expression, variables, f"{where}, {name}")
                variables |= {name}
        elif "if" in statement:
            _check_expression(statement["if"], variables, where)
            branches = [
                _check_block(statement.get(branch, ()), variables, parts, f"{where}, {branch}, ")
                for branch in ("then", "else")
            ]
            variables = branches[0] & branches[1]
        elif "while" in statement:
            _check_expression(statement["while"], variables, where)
            _check_block(statement["do"], variables, parts, f"{where}, do, ")
        else:
            raise InputError(f"{where} of the program is {statement!r}: it is none of run, let, if, while")
    return variables


def _check_run(
    statement: Statement, variables: frozenset[str], parts: Mapping[str, Signature], where: str
) -> frozenset[str]:
    name = statement["run"]
    if name not in parts:
        raise InputError(f"{where} of the program runs {name}; its archives are {', '.join(parts)}")
    signature = parts[name]
    for label, stated, declared in (
        ("inputs", statement["inputs"], signature.inputs),
        ("outputs", statement["outputs"], signature.outputs),
    ):
        if unknown := [port for port in stated if port not in declared]:
            raise InputError(f"{where}: {name} has no {label} {', '.join(unknown)}; it has {', '.join(declared)}")
    if missing := [input_name for input_name in signature.inputs if input_name not in statement["inputs"]]:
        raise InputError(f"{where}: {name} also needs {', '.join(missing)}")
    for input_name, expression in statement["inputs"].items():
        _check_expression(expression, variables, f"{where}, {input_name}")
    return variables | frozenset(statement["outputs"].values())


def _check_expression(expression: Expression, variables: frozenset[str], where: str) -> None:
    if isinstance(expression, str):
        if expression not in variables:
            hint = f"write text({expression!r}) for a text" if not expression.isidentifier() else None
            raise InputError(f"{where} of the program reads `{expression}`, which may not be set there", hint=hint)
    elif isinstance(expression, Mapping):
        if set(expression) == {"list"}:
            for child in expression["list"]:
                _check_expression(child, variables, where)
        elif set(expression) != {"text"}:
            raise InputError(f"{where} of the program: {expression!r} is no expression")
    elif isinstance(expression, list | tuple):
        name, *operands = expression or ("",)
        if name not in OPERATIONS:
            raise InputError(
                f"{where} of the program: there is no operation {name!r}; there are {', '.join(OPERATIONS)}"
            )
        if len(operands) != OPERATIONS[name][0]:
            raise InputError(
                f"{where} of the program: {name} takes {OPERATIONS[name][0]} operands, not {len(operands)}"
            )
        for child in operands:
            _check_expression(child, variables, where)
    elif not isinstance(expression, bool | int | float):
        raise InputError(f"{where} of the program: {expression!r} is no expression")
