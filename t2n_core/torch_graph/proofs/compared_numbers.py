"""Find the integers that the Python code of a model compares with: `if x.shape[1] % 61 == 7` has 61 and 7.

They are read from the code of all functions that the model reaches, so that sizes next to a decision are tried even if
the capture missed it. The code of PyTorch, numpy and the standard library is left out.
"""

from __future__ import annotations

import dis
import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any, TypeAlias, TypeGuard

import torch

from t2n_core.torch_graph.reachable import Reachable, contents_of, is_foreign

Numbers: TypeAlias = tuple[int, ...]
"""The integers that one decision compares."""
_NAMED = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_ATTR", "LOAD_METHOD")
_DECIDES = ("COMPARE_OP", "CONTAINS_OP", "FOR_ITER")
_READS = frozenset({"shape", "size", "numel", "nelement", "len", "stride", "is_contiguous"})
"""Names by which Python code reads sizes."""
_LARGEST = 1 << 20
_DECISIONS = 64
"""Most decisions that are read, from the nearest code on."""
_SAME_NAME = 4
"""Most integers under one name, which objects of several classes may share."""


def compared_numbers(model: Any) -> list[Numbers]:
    """Return the integers from 2 on in each decision of the code that a model reaches, the nearest code first."""
    reached = Reachable()
    reached.follow(model)
    reached.follow_code()
    attributes = _integers(reached)
    compared: dict[Numbers, None] = {}
    for function in reached.functions():
        if is_foreign(function.__module__):
            continue
        for decision in _decisions(function.__code__):
            options = [
                [item] if isinstance(item, int) else sorted({*_variable(function, item), *attributes.get(item, ())})
                for item in decision
            ]
            for numbers in itertools.islice(itertools.product(*filter(None, options)), _SAME_NAME):
                if numbers:
                    compared.setdefault(numbers)
        if len(compared) >= _DECISIONS:
            break
    return list(compared)[:_DECISIONS]


def reads_sizes(model: Any) -> bool:
    """Return whether code that a model reaches, other than PyTorch's own, reads sizes of tensors.

    A class created by `exec` outside any Python module, which then counts as a built-in one, may read anything.
    """
    if isinstance(model, torch.nn.Module) and any(map(_class_reads_sizes, set(map(type, model.modules())))):
        return True  # most models, without searching all code that they reach
    reached = Reachable()
    reached.follow(model)
    reached.follow_code()
    return any(_class_reads_sizes(type(module)) for module in reached.modules()) or any(
        map(_reads_sizes, reached.functions())
    )


def _class_reads_sizes(kind: type[torch.nn.Module]) -> bool:
    return kind.__module__ == "builtins" or _reads_sizes(getattr(kind, "forward", None))


def _reads_sizes(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and not is_foreign(function.__module__) and bool(_READS & _names(code))


def sizes_near(decisions: Sequence[Numbers], symbols: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yield sizes next to decisions: one for each decision in turn, until all are used.

    First the same size for all symbols, then pairs of symbols whose product, sum or difference is one of the integers,
    then one symbol with the others at their traced sizes.
    """
    each = [_sizes_around(numbers, symbols) for numbers in decisions]
    if len(symbols) > 1:
        each.append(iter([dict.fromkeys(symbols, max(symbols.values()) + 2)]))
    for turn in itertools.zip_longest(*each):
        yield from (sizes for sizes in turn if sizes is not None)


def _sizes_around(numbers: Numbers, symbols: Mapping[str, int]) -> Iterator[dict[str, int]]:
    sums = [a + b for a, b in itertools.combinations(numbers, 2)]  # `T % 61 == 7` holds for 68
    roots = [root for n in numbers if (root := math.isqrt(n)) > 1 and root * root == n]
    sizes = list(dict.fromkeys([*sums, *roots, *(n + shift for n in numbers for shift in (0, 1, -1))]))
    yield from (dict.fromkeys(symbols, size) for size in sizes)
    for n, (a, b) in itertools.product(numbers, itertools.combinations(symbols, 2)):
        low = next((d for d in range(math.isqrt(n), 1, -1) if n % d == 0), 1)
        yield {**symbols, a: low, b: n // low}
        yield {**symbols, a: n - symbols[b]}
        yield {**symbols, a: n + symbols[b]}
        yield {**symbols, b: n + symbols[a]}
    if len(symbols) > 1:
        yield from ({**symbols, name: size} for size in sizes for name in symbols)


def _integers(reached: Reachable) -> dict[str, list[int]]:
    """Return the integer attributes of a model's objects, by name."""
    integers: dict[str, list[int]] = {}
    for attributes in reached.contents:
        for name, value in contents_of(attributes) if isinstance(attributes, dict) else ():
            numbers = integers.setdefault(name, []) if isinstance(name, str) and _is_number(value) else None
            if numbers is not None and value not in numbers and len(numbers) < _SAME_NAME:
                numbers.append(value)
    return integers


def _variable(function: FunctionType, name: str) -> list[int]:
    """Return the integer of this name in a function's globals or closure, if there is one."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    try:
        value = cells[name].cell_contents if name in cells else function.__globals__.get(name)
    except ValueError:  # not assigned yet
        return []
    return [value] if _is_number(value) else []


def _is_number(value: Any) -> TypeGuard[int]:
    return type(value) is int and 2 <= value <= _LARGEST


@functools.lru_cache(1 << 12)
def _names(code: CodeType) -> frozenset[str]:
    """Return the names that a function uses, also in the functions inside it."""
    inner = (_names(const) for const in code.co_consts if isinstance(const, CodeType))
    return frozenset(code.co_names).union(*inner)


@functools.lru_cache(1 << 12)
def _decisions(code: CodeType) -> tuple[tuple[int | str, ...], ...]:
    """Return the integers and names before each comparison, loop and branch of a function, on the same line."""
    decided: list[tuple[int | str, ...]] = []
    line, pending = None, list[int | str]()
    for instruction in dis.get_instructions(code):
        if instruction.positions is not None and instruction.positions.lineno != line:
            line, pending = instruction.positions.lineno, []
        if instruction.opname in _NAMED:
            pending.append(str(instruction.argval))
        elif instruction.opname.startswith("LOAD_"):
            constant = instruction.argval
            pending += filter(_is_number, constant if isinstance(constant, tuple | frozenset) else [constant])
        elif instruction.opname in _DECIDES or "JUMP_IF" in instruction.opname or "_IF_" in instruction.opname:
            if pending:
                decided.append(tuple(dict.fromkeys(pending)))
            pending = []
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return (*decided, *(decision for inner_code in inner for decision in _decisions(inner_code)))
