"""The mutants of a function: its source with one sign, axis, bound, rounding, comparison or constant changed."""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final

SIGN, AXIS, OFF_BY_ONE, ROUNDING = "sign", "axis", "off by one", "rounding"
COMPARISON, CONSTANT, FUNCTION = "comparison", "constant", "function"
KINDS: Final = (SIGN, AXIS, OFF_BY_ONE, ROUNDING, COMPARISON, CONSTANT, FUNCTION)

_OPERATORS: Final[dict[type[ast.operator], tuple[str, type[ast.operator]]]] = {
    ast.Add: (SIGN, ast.Sub),
    ast.Sub: (SIGN, ast.Add),
    ast.Mult: (SIGN, ast.Div),
    ast.Div: (SIGN, ast.Mult),
    ast.Mod: (ROUNDING, ast.FloorDiv),
    ast.LShift: (SIGN, ast.RShift),
    ast.RShift: (SIGN, ast.LShift),
    ast.BitAnd: (FUNCTION, ast.BitOr),
    ast.BitOr: (FUNCTION, ast.BitAnd),
}
_COMPARISONS: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_PAIRS: Final = {
    ROUNDING: "floor ceil|rint floor|trunc floor|round floor",
    FUNCTION: "min max|fmin fmax|minimum maximum|argmin argmax|any all|less greater|less_equal greater_equal|"
    "equal not_equal|logical_and logical_or|sin cos|sinh cosh|arcsin arccos|arcsinh arctanh|exp expm1|log log1p|"
    "sum prod|add subtract|multiply true_divide|cumsum cumprod|ones zeros|ones_like zeros_like|lowest highest|fft ifft",
}
_NAMES: Final[dict[str, tuple[str, str]]] = {
    name: (kind, other)
    for kind, text in _PAIRS.items()
    for pair in text.split("|")
    for name, other in (pair.split(), pair.split()[::-1])
    if kind == FUNCTION or name != "floor" or other == "ceil"
}
_UNCHANGED: Final = frozenset({"strict", "dtype", "copy", "otypes", "kind"})
"""Keywords whose values are no mathematics."""

Path = tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A function with one change."""

    module: str
    function: str
    """Its qualified name."""
    kind: str
    line: int
    before: str
    """The expression before the change, and after it."""
    after: str
    tree: ast.FunctionDef

    @property
    def name(self) -> str:
        """Return what identifies the mutant, except among equal changes of equal expressions."""
        return f"{self.module}.{self.function}: {self.before} -> {self.after}"

    def plant(self, function: FunctionType) -> None:
        """Give a function, wherever it is referred to, the code and the defaults of the mutant."""
        module = ast.fix_missing_locations(ast.Module([self.tree], []))
        names: dict[str, Any] = dict(function.__globals__)
        exec(compile(module, f"mutant of {self.function}", "exec", dont_inherit=True), names)
        compiled_function = names[self.tree.name]
        function.__code__, function.__defaults__, function.__kwdefaults__ = (
            compiled_function.__code__,
            compiled_function.__defaults__,
            compiled_function.__kwdefaults__,
        )


def mutants_of(module: str, function: FunctionType) -> Iterator[Mutant]:
    """Yield all mutants of a function of a module."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    tree.decorator_list, tree.returns = [], None
    for argument in (*tree.args.args, *tree.args.kwonlyargs, *tree.args.posonlyargs, tree.args.vararg):
        if argument is not None:
            argument.annotation = None
    first = function.__code__.co_firstlineno - 1
    unknown = {id(extent) for extent in _unknown_extents(tree)}
    for path, parent, node in _nodes(tree, (), tree):
        if id(node) in unknown:
            continue
        for kind, changed in _changes(node, parent):
            mutated = copy.deepcopy(tree)
            _put(mutated, path, changed)
            shown = path[:-1] if isinstance(node, ast.Constant) and isinstance(parent, ast.expr) else path
            before, after = (_text(_get(root, shown)) for root in (tree, mutated))
            line = first + getattr(node, "lineno", 1)
            yield Mutant(module, function.__qualname__, kind, line, before, after, mutated)


def _unknown_extents(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the 1 of each -1 in the shape of a reshape: NumPy takes every negative extent for the unknown one."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "reshape":
            for expression in (node for argument in call.args for node in ast.walk(argument)):
                if isinstance(expression, ast.UnaryOp) and ast.unparse(expression) == "-1":
                    yield expression.operand


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


def _nodes(node: ast.AST, path: Path, parent: ast.AST) -> Iterator[tuple[Path, ast.AST, ast.AST]]:
    """Yield the expressions of a function with their places, without its docstring, annotations and errors."""
    yield path, parent, node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "decorator_list", "returns", "type_params"):
            continue
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or _is_unchanged(child):
                continue
            yield from _nodes(child, (*path, (name, index if isinstance(value, list) else None)), node)


def _is_unchanged(node: ast.AST) -> bool:
    """Return whether a node computes no value: an error, a text, the state of NumPy's warnings."""
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.FormattedValue, ast.Assert)):
        return True
    if isinstance(node, ast.keyword):
        return node.arg in _UNCHANGED
    if isinstance(node, ast.withitem):
        return "errstate" in ast.unparse(node)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _get(tree: ast.AST, path: Path) -> ast.AST:
    node: Any = tree
    for name, index in path:
        node = getattr(node, name)
        node = node if index is None else node[index]
    result: ast.AST = node
    return result


def _put(tree: ast.AST, path: Path, changed: ast.AST) -> None:
    *before, (name, index) = path
    parent = _get(tree, tuple(before))
    if index is None:
        setattr(parent, name, changed)
    else:
        getattr(parent, name)[index] = changed


def _changes(node: ast.AST, parent: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the replacements of a node."""
    change = _CHANGES.get(type(node))
    if change is not None:
        yield from change(node, parent)


def _mutants_of_operation(node: Any, parent: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    kind, other = _OPERATORS.get(type(node.op), ("", None))
    if isinstance(node.op, ast.FloorDiv):  # rounded up
        negated = ast.UnaryOp(ast.USub(), ast.BinOp(ast.UnaryOp(ast.USub(), node.left), ast.FloorDiv(), node.right))
        yield ROUNDING, negated
    elif isinstance(node.op, ast.Pow):
        yield CONSTANT, ast.BinOp(node.left, ast.Mult(), node.right)
    elif other is not None and not _is_text(node.left):
        yield kind, ast.BinOp(node.left, other(), node.right)


def _mutants_of_augmented(node: Any, parent: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    kind, other = _OPERATORS.get(type(node.op), ("", None))
    if other is not None and not isinstance(node.value, (ast.List, ast.ListComp)):
        yield kind, ast.AugAssign(node.target, other(), node.value)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, (ast.Tuple, ast.List, ast.ListComp)) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _mutants_of_unary(node: Any, parent: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node.op, ast.USub):
        yield SIGN, node.operand
    elif isinstance(node.op, ast.Not):
        yield COMPARISON, node.operand


def _mutants_of_comparison(node: Any, parent: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for index, operator in enumerate(node.ops):
        for other in _COMPARISONS.get(type(operator), ()):
            ops = [other() if at == index else original for at, original in enumerate(node.ops)]
            yield COMPARISON, ast.Compare(node.left, ops, node.comparators)


def _mutants_of_boolean(node: Any, parent: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    yield COMPARISON, ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)


def _mutants_of_condition(node: Any, parent: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if not isinstance(node.test, (ast.Compare, ast.UnaryOp)):  # those are negated by themselves
        changed = copy.copy(node)
        changed.test = ast.UnaryOp(ast.Not(), node.test)
        yield COMPARISON, changed


def _mutants_of_constant(node: Any, parent: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    value = node.value
    if isinstance(value, bool):
        yield CONSTANT, ast.Constant(not value)
    elif isinstance(value, int):
        yield OFF_BY_ONE, ast.Constant(value + 1)
        if value:
            yield OFF_BY_ONE, ast.Constant(value - 1)
    elif isinstance(value, float):
        yield CONSTANT, ast.Constant(value * 1.25 + 0.125)


def _mutants_of_keyword(node: Any, parent: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if node.arg != "axis" or isinstance(node.value, (ast.Constant, ast.UnaryOp)):
        return
    if isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "tuple":
        yield AXIS, ast.keyword(node.arg, ast.Subscript(node.value, ast.Slice(ast.Constant(1)), ast.Load()))
    elif not isinstance(node.value, (ast.Tuple, ast.List)):
        yield AXIS, ast.keyword(node.arg, ast.BinOp(node.value, ast.Sub(), ast.Constant(1)))


def _mutants_of_attribute(node: Any, parent: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    replacement = _NAMES.get(node.attr)
    if replacement is not None and isinstance(node.ctx, ast.Load):
        yield replacement[0], ast.Attribute(node.value, replacement[1], node.ctx)


def _mutants_of_name(node: Any, parent: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    replacement = _NAMES.get(node.id)
    if replacement is not None and isinstance(parent, ast.Call) and parent.func is node and node.id in _BUILTINS:
        yield replacement[0], ast.Name(replacement[1], node.ctx)


_BUILTINS: Final = frozenset({"min", "max", "any", "all", "lowest", "highest"})
_CHANGES: Final[dict[type[ast.AST], Callable[[Any, ast.AST], Iterator[tuple[str, ast.AST]]]]] = {
    ast.BinOp: _mutants_of_operation,
    ast.AugAssign: _mutants_of_augmented,
    ast.UnaryOp: _mutants_of_unary,
    ast.Compare: _mutants_of_comparison,
    ast.BoolOp: _mutants_of_boolean,
    ast.If: _mutants_of_condition,
    ast.IfExp: _mutants_of_condition,
    ast.While: _mutants_of_condition,
    ast.Constant: _mutants_of_constant,
    ast.keyword: _mutants_of_keyword,
    ast.Attribute: _mutants_of_attribute,
    ast.Name: _mutants_of_name,
}
