"""Rules: the lowering of one torch operator to NNEF.

    @op("aten::hardshrink")
    def hardshrink(g: Emitter, self: Value, lambd: float = 0.5) -> Value:
        \"\"\"Zero where |x| <= lambd.\"\"\"

A rule takes the arguments of the torch schema by name: tensors as values, sizes as ints or expressions, the rest as
is. An argument that a rule does not take may only have its default. A key without overload stands for all overloads;
one with overload (`aten::sum.dim_IntList`) takes precedence. A rule for one target takes precedence over the common
one, and the newest applicable `since` wins. `before` ends a range: a rule for the few releases that compute the usual
lowering wrongly. A rule with an `option` applies only to exports whose target has that option on, and takes precedence
there; `needs` are operators that the target must have, and calls for which `when` is false are decomposed.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from t2n_core.entry_points import load_entry_points
from t2n_core.errors import RegistryError
from t2n_core.nnef.options.writing_options import PLAIN, WritingOptions
from t2n_core.nnef.releases import ALL_RELEASES, Releases
from t2n_core.nnef.spec import Spec
from t2n_core.torch_graph.compat.operators import find_overloads, may_be_absent
from t2n_core.torch_graph.graph.ir import TorchOp

Function = TypeVar("Function", bound=Callable[..., Any])

IGNORED = frozenset(
    {"layout", "device", "pin_memory", "memory_format", "non_blocking", "generator", "out", "requires_grad"}
)
"""Arguments of factories and copies that do not change a value."""
OF_THE_CALL = frozenset({"node", "name_to_tensor", "torch_graph", "inference_target"})
"""Parameters of a rule besides its schema's: the TorchOp, the values of its tensors by name, its graph, and the
target of the export."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to write one operator."""

    key: str
    function: Callable[..., Any]
    target: str | None = None
    releases: Releases = ALL_RELEASES
    parameters: frozenset[str] = field(default_factory=frozenset)
    implied: frozenset[str] = field(default_factory=frozenset)
    """Arguments that the captured shape and dtype of the result imply (`size` of a view)."""
    option: str = ""
    """The field of WritingOptions that must be on; empty for a rule that every export may use."""
    needs: tuple[str, ...] = ()
    """Operators that the target must have."""
    when: Callable[[TorchOp], bool] = lambda _: True
    """Returns whether the rule writes a call; PyTorch's decomposition is written for the others."""

    @property
    def place(self) -> str:
        code = inspect.unwrap(self.function).__code__
        return f"{code.co_filename}:{code.co_firstlineno}"

    def fits(self, spec: Spec, options: WritingOptions = PLAIN) -> bool:
        return (
            (not self.option or bool(getattr(options, self.option)))
            and all(spec.has(name) for name in self.needs)
            and (self.target is None or self.target == spec.target)
            and spec.version in self.releases
        )

    def takes(self, op: TorchOp) -> str:
        """Return an empty text if the rule supports this call, otherwise a message with the unsupported argument."""
        if "node" in self.parameters:  # it has all arguments
            return ""
        for argument in op.op_ref._schema.arguments:
            name = argument.name
            if name in self.parameters or name in self.implied or name in IGNORED:
                continue
            value = op.arguments[name]
            if value is not None and value != argument.default_value:
                return f"the argument {name}={value} of {op.kind} is not supported yet"
        return ""


class Registry:
    """A set of rules. The default one is filled by importing `t2n_core.op.aten`; exports may use a copy."""

    def __init__(self, rules: Mapping[str, Iterable[Rule]] | None = None) -> None:
        self._rules: dict[str, list[Rule]] = {k: list(v) for k, v in (rules or {}).items()}

    def copy(self) -> Registry:
        return Registry(self._rules)

    def add(self, rule: Rule) -> None:
        """Add a rule. Raises RegistryError, with both places, if one has its key, target, first release and option."""
        for other in self._rules.setdefault(rule.key, []):
            if (other.target, other.releases.since, other.option) == (rule.target, rule.releases.since, rule.option):
                raise RegistryError(f"two rules for {rule.key}: {other.place} and {rule.place}")
        self._rules[rule.key].append(rule)

    def remove(self, key: str, target: str | None = None) -> None:
        """Remove the rules of a key, or those for one target. Raises KeyError if there are none."""
        remaining = [r for r in self._rules[key] if target is not None and r.target != target]
        if remaining:
            self._rules[key] = remaining
        else:
            del self._rules[key]

    def __iter__(self) -> Iterator[Rule]:
        return (rule for rules in self._rules.values() for rule in rules)

    def find(self, kind: str, spec: Spec, options: WritingOptions = PLAIN) -> Rule | None:
        """Return the rule for an operator on that target version: overload before packet, target before common."""
        for key in dict.fromkeys((kind, kind.split(".")[0])):
            fitting = [r for r in self._rules.get(key, ()) if r.fits(spec, options)]
            if fitting:
                return max(fitting, key=lambda r: (bool(r.option), r.target is not None, r.releases.rank))
        return None


DEFAULT = Registry()


def op(
    *keys: str,
    target: str | None = None,
    since: str | None = None,
    before: str | None = None,
    implied: Iterable[str] = (),
    option: str = "",
    needs: Iterable[str] = (),
    when: Callable[[TorchOp], bool] = lambda _: True,
    registry: Registry = DEFAULT,
) -> Callable[[Function], Function]:
    """Register a rule under one or more keys (`aten::add`, `aten::sum.dim_IntList`).

    `since` and `before` bound the versions of the target: `since` is included, `before` is not. A key that the
    installed PyTorch lacks is ignored. Raises RegistryError for a key that no supported PyTorch has, for an argument
    that no overload of the operator has, and for a second rule of equal rank.
    """
    releases = Releases.of(since, before)
    if option and not hasattr(PLAIN, option):
        raise RegistryError(f"no target has an option {option!r}")

    def register(function: Function) -> Function:
        arguments = list(inspect.signature(function).parameters.values())[1:]
        parameters = frozenset(p.name for p in arguments if p.kind is not p.VAR_KEYWORD)
        present = [key for key in keys if not _is_absent(key)]
        if present:
            _check(present, parameters - OF_THE_CALL | set(implied), function)
        for key in present:
            rule = Rule(key, function, target, releases, parameters, frozenset(implied), option, tuple(needs), when)
            registry.add(rule)
        return function

    return register


def _check(keys: Iterable[str], parameters: frozenset[str], function: Callable[..., Any]) -> None:
    argument_names = {a.name for key in keys for s in schemas_of(key) for a in s.arguments}
    unknown = sorted(parameters - argument_names)
    if unknown:
        code = function.__code__
        raise RegistryError(
            f"{code.co_filename}:{code.co_firstlineno}: {' and '.join(keys)} has no argument {', '.join(unknown)}; "
            f"it has {', '.join(sorted(argument_names))}"
        )


def _is_absent(key: str) -> bool:
    """Return whether the installed PyTorch lacks an operator that other releases have, so that no model uses it."""
    return may_be_absent(key) and not find_overloads(key)


def schemas_of(key: str) -> list[Any]:
    """Return the torch schemas that a key stands for. Raises RegistryError for an unknown operator."""
    overloads = find_overloads(key)
    if not overloads:
        raise RegistryError(f"PyTorch has no operator {key}")
    return [overload._schema for overload in overloads]


@cache
def load_default() -> Registry:
    """Return the default registry with the rules of this package and of its extensions. Raises InputError."""
    package = importlib.import_module("t2n_core.op.aten")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    load_entry_points("t2n.operators")
    return DEFAULT
