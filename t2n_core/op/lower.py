"""Lowering of the torch graph to the NNEF graph: each operator by its rule, with all problems collected."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import sympy
import torch

from t2n_core.errors import LowerError, SpecError, T2NError, UnsupportedOpsError
from t2n_core.nnef.arguments import symbols_in
from t2n_core.nnef.dialects import emitter_for
from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import Fragment, Graph, Operation, Value
from t2n_core.nnef.options.writing_options import PLAIN, WritingOptions
from t2n_core.nnef.shapes import check_shape
from t2n_core.nnef.sizes.dims import shape_text
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.spec import Spec
from t2n_core.op.authors import line_of_user
from t2n_core.op.dtypes import numpy_dtype
from t2n_core.op.registry import OF_THE_CALL, Registry, Rule
from t2n_core.op.stored.choice import storage_note
from t2n_core.op.stored.float16 import is_exact
from t2n_core.op.stored.writing import cast_in_bodies, half_value, is_computed_matrix, stored_value
from t2n_core.op.symbolic_scalars import float_of_sizes
from t2n_core.op.weights import TensorWeight, with_values
from t2n_core.torch_graph import naming
from t2n_core.torch_graph.choices import NamingScheme
from t2n_core.torch_graph.graph.data import FixedTensorList
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchModuleIRGraph, TorchOp
from t2n_core.torch_graph.simplify.exact_ops import exact_ops

_ADD_ONE = "write a rule in your own package (docs, `Your own operator`), or replace the call with a rewriter"
_BUG = "this is a bug of the exporter, please report it with the model"
_RANDOM = "make them an input, or replace the call with a rewriter while exporting"


def lower(
    graph: TorchModuleIRGraph,
    spec: Spec,
    registry: Registry,
    output_names: list[str],
    options: WritingOptions = PLAIN,
    fragments: Sequence[Fragment] = (),
    scheme: NamingScheme = "natural",
    sizes: SizeRange | None = None,
    target: Any = None,
) -> Graph:
    """Return the NNEF graph of a simplified torch graph. Raises UnsupportedOpsError with all problems at once.

    `fragments` are in the graph from the beginning, so that rules can call them by name. `scheme` names the tensors.
    `sizes` are the sizes that the graph is valid for: all from 1 on by default. `target` is what rules with the
    parameter `inference_target` get.
    """
    return _Lowering(graph, spec, registry, options, fragments, scheme, target).run(output_names, sizes)


class _Lowering:
    def __init__(
        self,
        graph: TorchModuleIRGraph,
        spec: Spec,
        registry: Registry,
        options: WritingOptions,
        fragments: Sequence[Fragment],
        scheme: NamingScheme,
        target: Any,
    ) -> None:
        self.scheme, self.target = scheme, target
        self.graph, self.spec, self.registry = graph, spec, registry
        self.g: Emitter = emitter_for(spec, options=options)
        for fragment in fragments:
            self.g.fragment(fragment)
        self.values: dict[int, Value] = {}
        self.problems: list[T2NError] = []
        self.poisoned: set[int] = set()
        self._stored = {v.label: v.stored for v in graph.weights if v.stored is not None}
        self._computed: dict[str, str] = {}
        self._exact = exact_ops(graph)
        self._has_float16 = any(stored.format == "float16" for stored in self._stored.values())

    def run(self, output_names: list[str], sizes: SizeRange | None) -> Graph:
        symbols = self.graph.table.names
        self.g.reserve([*symbols, *(v.name for v in self.graph.inputs), *output_names])
        self.g.declare_symbols(SizeRange.of(symbols) if sizes is None else sizes)
        for variable in self.graph.inputs:
            self.values[id(variable)] = self.g.external(variable.name, variable.shape, numpy_dtype(variable.dtype))
        for op in self.graph.op_nodes:
            self._op(op)
        if self.problems:
            raise UnsupportedOpsError(self.problems, target=str(self.spec)) from self.problems[0].__cause__
        self._outputs(output_names)
        cast_in_bodies(self.g)
        _prune(self.g.graph)
        labels = _labels(self.g.graph)
        self.g.rewrite_graph()
        _prune(self.g.graph)
        self._note_stored(labels - _labels(self.g.graph))
        if self.scheme == "numeric":
            _number(self.g.graph, {*symbols, *output_names})
        self.g.guard_sizes()
        return self.g.graph

    def _op(self, op: TorchOp) -> None:
        if any(id(v) in self.poisoned for v in op.inputs):
            self._poison(op)  # an operator that depends on a failed one has no problem of its own
            return
        rule = self.registry.find(op.kind, self.spec, self.g.options)
        try:
            if rule is None or op.refusal:
                raise self._no_rule(op)
            expected = [None if o is None else Expected(o.shape, numpy_dtype(o.dtype)) for o in op.outputs]
            stem = op.scope if self.scheme == "raw" else naming.scope_name(op.kind, op.module_path)
            self.g.begin(stem, op.origin, [e for e in expected if e is not None], exact=id(op) in self._exact)
            first = len(self.g.graph.operations)
            refusal = rule.takes(op)
            if refusal:
                raise LowerError(refusal, origin=op.origin)
            self._accept(op, self._results(rule, op), expected)
            if self.scheme == "raw":
                self._name_as_torch(op, self.g.graph.operations[first:])
        except (LowerError, SpecError) as problem:
            if problem.origin is None:
                problem.origin, problem.op = op.origin, op.kind
            self._add(op, rule, problem, problem)
        except T2NError:
            raise
        except Exception as cause:
            self._add(op, rule, _error_of_rule(op, cause), cause)

    def _add(self, op: TorchOp, rule: Rule | None, problem: LowerError | SpecError, cause: Exception) -> None:
        """Note the problem of an operator, with the line of its rule if that is a user's."""
        problem.rule = line_of_user(rule.function, op, cause) if rule is not None else ""
        if problem.rule and problem.hint == _BUG:
            problem.hint = None
        self.problems.append(problem)
        self._poison(op)

    def _results(self, rule: Rule, op: TorchOp) -> list[Any]:
        """Return the results of a rule for an operator, as a list."""
        arguments = {n: self._argument(v) for n, v in op.arguments.items() if n in rule.parameters}
        if rule.parameters & OF_THE_CALL:
            by_name = {v.name: self._value(v) for v in op.inputs}
            context = {
                "node": op,
                "name_to_tensor": by_name,
                "torch_graph": self.graph,
                "inference_target": self.target,
            }
            arguments |= {name: value for name, value in context.items() if name in rule.parameters}
        results = rule.function(self.g, **arguments)
        return list(results) if isinstance(results, list | tuple) else [results]

    def _no_rule(self, op: TorchOp) -> LowerError:
        kind = op.origin.op if op.origin else op.kind
        if op.refusal:
            return LowerError(op.refusal, origin=op.origin)
        reason = f"no rule for {kind}"
        if op.kind != kind:
            reason += f", and PyTorch's decomposition of it ends in {op.kind}, which has none either"
        if torch.Tag.nondeterministic_seeded in getattr(op.op_ref, "tags", ()):
            return LowerError(f"{kind} draws random numbers, and a graph has none", origin=op.origin, hint=_RANDOM)
        return LowerError(reason, origin=op.origin, hint=_ADD_ONE)

    def _poison(self, op: TorchOp) -> None:
        self.poisoned.update(id(o) for o in op.outputs if o is not None)

    def _accept(self, op: TorchOp, results: list[Any], expected: list[Expected | None]) -> None:
        if len(results) != len(op.outputs):
            raise self.g.fail(f"the rule returns {len(results)} results, {op.kind} has {len(op.outputs)}")
        for index, (variable, value, spec) in enumerate(zip(op.outputs, results, expected, strict=True)):
            if variable is None or spec is None:
                continue
            if value is None:
                self.poisoned.add(id(variable))  # unsupported result; an error only if it is used
                continue
            self._check(value, spec, f"result {index}" if len(results) > 1 else "result")
            self.values[id(variable)] = value
            if id(variable) in self.graph.open_masks:
                self.g.open_masks[value] = self.graph.open_masks[id(variable)]

    def _check(self, value: Value, expected: Expected, label: str) -> None:
        """Raise LowerError if the shape or dtype of a rule's result is not the captured one."""
        if value.dtype != expected.dtype or not check_shape(value.shape, expected.shape):
            raise self.g.fail(
                f"the rule returns {value.dtype}{shape_text(value.shape)} as {label}, "
                f"PyTorch returns {expected.dtype}{shape_text(expected.shape)}",
                hint=_BUG,
            )

    def _name_as_torch(self, op: TorchOp, operations: Sequence[Operation]) -> None:
        """Give the results of the last operations the names of the torch graph."""
        new = {id(value) for operation in operations for value in operation.outputs if value.weight is None}
        for variable in op.outputs:
            value = self.values.get(id(variable)) if variable is not None else None
            if variable is not None and value is not None and id(value) in new:
                new.discard(id(value))
                self.g.rename(value, variable.name)

    def _argument(self, argument: Any) -> Any:
        if isinstance(argument, TensorVariable):
            return self._value(argument)
        if isinstance(argument, FixedTensorList | list | tuple):
            return [self._argument(a) for a in argument]
        if isinstance(argument, torch.SymFloat):
            return float_of_sizes(self.g, argument, self.graph.table)
        if isinstance(argument, torch.SymBool):
            raise self.g.fail("a condition on dynamic sizes cannot be exported as a number")
        return argument

    def _value(self, variable: TensorVariable) -> Value:
        value = self.values.get(id(variable))
        if value is None:
            if variable.data is None:
                raise self.g.fail(
                    f"the result {variable.name} is one that its decomposition does not give",
                    hint="such as vectors whose sign is arbitrary, or factors in an order that is LAPACK's own",
                )
            value = self.values[id(variable)] = self._weight(variable)
        return value

    def _weight(self, variable: TensorVariable) -> Value:
        assert variable.data is not None
        if variable.moved is not None and self._move(variable.moved):
            return self.values[id(variable)]
        weight = TensorWeight(variable.data)
        if variable.stored is not None:
            return stored_value(self.g, variable.label, variable.stored)
        if variable.folded_norm is not None:
            scale = self.g.constant(TensorWeight(variable.folded_norm.scale).array())
            return with_values(self.g.mul(self._value(variable.folded_norm.filter), scale), weight.array)
        if variable.label:
            return self.g.variable(variable.label, weight)
        constant = self.g.constant(weight.array())
        if not self._stored or not is_computed_matrix(constant):
            return constant
        if not is_exact(variable.data):
            module = self.g.node.origin.module_path if self.g.node.origin is not None else ""
            location = f"`{module}`" if module else "the model"
            self._computed[constant.name] = f"`{constant.name}` (`{variable.name}` in {location})"
        elif self._has_float16:
            return half_value(self.g, f"{constant.name}.float16", variable.data)
        return constant

    def _move(self, op: TorchOp) -> bool:
        """Write an operator that rearranges a weight, while another is written. Return whether it has a rule."""
        rule, node = self.registry.find(op.kind, self.spec, self.g.options), self.g.node
        if rule is None or rule.takes(op):
            return False
        outputs = [(o, o.data) for o in op.outputs if o is not None and o.data is not None]
        self.g.begin(node.name, node.origin, [Expected(o.shape, numpy_dtype(o.dtype)) for o, _ in outputs])
        values = self._results(rule, op)
        self.g.node = node
        for (variable, data), value in zip(outputs, values, strict=True):
            self.values[id(variable)] = with_values(value, TensorWeight(data).array)
        return True

    def _note_stored(self, dropped: set[str]) -> None:
        """Record which weights have another storage format, and which keep theirs or are `dropped` for their slices."""
        graph, notes = self.g.graph, list(self.graph.storage_notes)
        graph.stored = self._stored
        if self._stored:
            graph.effects.add("weights")
            computed = [self._computed[v.name] for _, v in graph.variables() if v.name in self._computed]
            notes += [storage_note(computed, "float32: computed at export")] if computed else []
            in_parts = [f"`{label}`" for label in self._stored if label in dropped]
            notes += [storage_note(in_parts, "float32: the archive holds slices of it")] if in_parts else []
        if notes:
            graph.declined["weights"] = notes
        if self.graph.assertions:
            graph.declined["assertions"] = list(self.graph.assertions)
        if self.graph.operator_notes:
            graph.declined["operators"] = list(self.graph.operator_notes)

    def _outputs(self, names: list[str]) -> None:
        """Make every output a separate value: not an input, a weight or another output."""
        used_ids: set[int] = {id(v) for v in self.g.graph.inputs}
        for name, variable in zip(names, self.graph.outputs, strict=True):
            if id(variable) in self.poisoned:
                raise LowerError(f"the output `{name}` is a result that {self.spec} cannot give")
            self.g.begin(name, None, ())
            value = self._value(variable)
            if id(value) in used_ids or value.weight is not None:
                value = self.g.copy_of(value)
            used_ids.add(id(value))
            value.name = name
            self.g.graph.outputs.append(value)


def _error_of_rule(op: TorchOp, cause: Exception) -> LowerError:
    """Return the error of an operator whose rule failed: it needed the value of a symbolic size, or it has a bug."""
    computed = [name for name, argument in op.arguments.items() if _is_computed(argument)]
    if computed and isinstance(cause, TypeError):
        names = ", ".join(f"`{name}`" for name in computed)
        error = LowerError(f"{op.kind} does not support {names} computed from a dynamic size", origin=op.origin)
    else:
        message = f"the rule of {op.kind} failed with {type(cause).__name__}: {cause}"
        error = LowerError(message, origin=op.origin, hint=_BUG)
    error.__cause__ = cause
    return error


def _is_computed(argument: Any) -> bool:
    if isinstance(argument, list | tuple):
        return any(map(_is_computed, argument))
    return isinstance(argument, sympy.Basic | torch.SymFloat)


def _prune(graph: Graph) -> None:
    """Remove operations that no output depends on: weights merged into others, results without a user."""
    live = {id(v) for v in (*graph.inputs, *graph.outputs)}
    sizes: set[str] = set()  # symbols in arguments are read from the value of their name
    live_operations = []
    for operation in reversed(graph.operations):
        if any(id(v) in live or v.name in sizes for v in operation.outputs):
            live_operations.append(operation)
            live.update(map(id, operation.inputs()))
            sizes |= symbols_in(operation.arguments.values())
    graph.operations = live_operations[::-1]


def _labels(graph: Graph) -> set[str]:
    return {operation.arguments["label"] for operation, _ in graph.variables()}


def _number(graph: Graph, reserved_names: set[str]) -> None:
    """Name the tensors v0, v1, … except for inputs, outputs and the sizes of dynamic axes."""
    reserved_names |= {v.name for v in graph.inputs}
    numbers = (f"v{i}" for i in itertools.count())
    names = (name for name in numbers if name not in reserved_names)
    for operation in graph.operations:
        for value in operation.outputs:
            if value.name not in reserved_names:
                value.name = next(names)


def has_rule(registry: Registry, spec: Spec, options: WritingOptions = PLAIN) -> Any:
    """Return the predicate for `simplify` that is true for operators that need no decomposition."""

    def is_written(op: TorchOp) -> bool:
        rule = registry.find(op.kind, spec, options)
        return rule is not None and rule.when(op)

    return is_written
