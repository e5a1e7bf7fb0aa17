"""Legality check, run before an archive is written: whether the target version reads and computes a graph correctly.

All problems are returned, each with the origin of its operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import sympy

from t2n_core.errors import SpecError
from t2n_core.nnef.graph import Graph, Operation, Value, values_in
from t2n_core.nnef.khronos import lint as khronos_lint
from t2n_core.nnef.lexical import identifier_problem
from t2n_core.nnef.releases import Releases
from t2n_core.nnef.signatures import Signature, fragment_signature
from t2n_core.nnef.sizes.dims import same, shape_text
from t2n_core.nnef.spec import Spec
from t2n_core.nnef.tract.graph_facts import GraphFacts
from t2n_core.nnef.tract.quirks.hazards import hazards_of
from t2n_core.nnef.tract.quirks.quirk import Erratum, OperationView
from t2n_core.nnef.tract.quirks.table import quirks_of
from t2n_core.nnef.tract.traits import first_release, traits_of

EXTERNALS: Final = ("external", "tract_core_external")
GENERIC: Final = {"": "f", "scalar": "f", "integer": "iu", "logical": "b"}
"""Kinds of dtype that the type in angle brackets stands for."""
_TRACT_DTYPES: Final = frozenset(
    ["bool", "float16", "float32", "float64", *(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64))]
)
_TRACT_EXTERNAL: Final = {"": "float32", "scalar": "float32", "integer": "int64", "logical": "bool"}


def check_graph(graph: Graph, spec: Spec) -> list[SpecError]:
    """Return all that makes `graph` illegal, or dangerous, for this target version; empty if it may be written."""
    problems = [*_check_interface(graph, spec), *_check_fragments(graph, spec), *_check_extensions(graph, spec)]
    defined: set[int] = set()
    names: dict[str, Value] = {}
    signatures: dict[str, Signature | None] = {}
    hazards, quirks = (hazards_of(spec.version), quirks_of(spec.version)) if spec.target == "tract" else ({}, {})
    facts = GraphFacts()
    for operation in graph.operations:
        if operation.name not in signatures:
            try:
                signatures[operation.name] = signature_of(graph, spec, operation.name)
            except SpecError:
                signatures[operation.name] = None
        signature = signatures[operation.name]
        of_operation: list[SpecError | str] = [*_check_order(operation, defined, names)]
        if signature is None:
            of_operation.append(_absent(spec, operation.name))
        else:
            of_operation += _check_operation(graph, spec, operation, signature)
            if not of_operation:  # predicates rely on arguments that are present and valid
                view = OperationView.of(operation, facts)
                if operation.name in hazards:
                    of_operation += _check_errata(hazards[operation.name], view.with_defaults(signature), spec)
                of_operation += _check_errata(quirks.get(operation.name, ()), view, spec)
        problems += [_with_origin(problem, operation, spec) for problem in of_operation]
    problems += [_with_origin(problem, None, spec) for problem in _check_outputs(graph, defined)]
    if spec.target == "khronos":
        problems += [_with_origin(problem, operation, spec) for operation, problem in khronos_lint.check(graph)]
    return problems


def signature_of(graph: Graph, spec: Spec, name: str) -> Signature:
    """Return the signature of an operator or of one of the graph's fragments. Raises SpecError if there is neither."""
    fragment = graph.fragments.get(name)
    return spec.operator(name) if fragment is None else fragment_signature(name, fragment.text)


def required_extensions(graph: Graph, spec: Spec) -> list[str]:
    """Return the registries of the operators of the graph and its fragments, as `tract_registry tract_core`.

    Operators that the target does not have are skipped; `check_graph` reports them.
    """
    if spec.target != "tract":
        return []
    used = {operation.name for operation in graph.operations}
    used.update(*(fragment.uses for fragment in graph.fragments.values()))
    registries = {spec.operator(name).registry for name in used if name not in graph.fragments and spec.has(name)} - {
        "tract_nnef"
    }
    return [f"tract_registry {registry}" for registry in sorted(registries)]


def _with_origin(problem: SpecError | str, operation: Operation | None, spec: Spec) -> SpecError:
    message, hint = (problem, None) if isinstance(problem, str) else (problem.message, problem.hint)
    if operation is None:
        return SpecError(message, target=str(spec), hint=hint)
    return SpecError(message, op=operation.name, origin=operation.origin, target=str(spec), hint=hint)


def _absent(spec: Spec, name: str) -> SpecError:
    try:
        spec.operator(name)
    except SpecError as wrong:
        return wrong
    raise AssertionError(f"{spec} has {name}")


# ------------------------------------------------------------------------------------------------------ the whole graph
def _check_interface(graph: Graph, spec: Spec) -> Iterator[SpecError]:
    """Yield the problems of names, of inputs without `external` and of `external` without an input."""
    problems = [identifier_problem(graph.name)]
    externals = [op.outputs[0] for op in graph.operations if op.name in EXTERNALS]
    problems += [f"the input `{v.name}` has no `external` operation" for v in graph.inputs if not _among(v, externals)]
    problems += [f"`{v.name}` is external and not an input" for v in externals if not _among(v, graph.inputs)]
    yield from (_with_origin(problem, None, spec) for problem in problems if problem)


def _check_fragments(graph: Graph, spec: Spec) -> Iterator[SpecError]:
    for fragment in graph.fragments.values():
        of_fragment: list[SpecError | str | None] = [identifier_problem(fragment.name)]
        if spec.target == "khronos":
            of_fragment.append(f"the fragment `{fragment.name}`: strict NNEF is flat, without fragments")
        if spec.has(fragment.name):
            of_fragment.append(f"the fragment `{fragment.name}` redefines an operator of {spec}")
        try:
            fragment_signature(fragment.name, fragment.text)
        except SpecError as wrong:
            of_fragment.append(wrong)
        for name in sorted(fragment.uses - graph.fragments.keys()):
            if not spec.has(name):
                hint = f"it is used by the fragment `{fragment.name}`"
                of_fragment.append(SpecError(_unusable(spec, name), hint=hint))
        yield from (_with_origin(problem, None, spec) for problem in of_fragment if problem)


def _unusable(spec: Spec, name: str) -> str:
    try:
        return f"`{name}` must not be written for {spec}: {spec.operator(name).broken}"
    except SpecError as wrong:
        return wrong.message


def _check_extensions(graph: Graph, spec: Spec) -> Iterator[SpecError]:
    for extension in graph.extensions:
        word, _, rest = extension.partition(" ")
        problem = None
        if spec.target == "khronos":
            problem = f"the extension `{extension}`: strict NNEF has none"
        elif word == "tract_registry":
            since = spec.registry_since(rest.strip())
            if spec.registries is not None and rest.strip() not in spec.registries:
                problem = f"the registry `{rest}` is one that the target's `registries` exclude"
            elif since is None or spec.version not in Releases(since):
                problem = f"{spec} has no registry `{rest}`" + (f"; available since {since}" if since else "")
        elif word == "tract_assert":
            trait = "checks_scenarios" if ":" in rest else "reads_equalities" if "==" in rest else "reads_size_bounds"
            if not getattr(traits_of(spec.version), trait):
                problem = f"{spec} cannot parse `{extension}`; available since {first_release(trait)}"
        if problem:
            yield _with_origin(problem, None, spec)


def _check_order(operation: Operation, defined: set[int], names: dict[str, Value]) -> Iterator[str]:
    """Yield the problems of values that are not assigned exactly once, before they are used."""
    for value in operation.inputs():
        if id(value) not in defined:
            yield f"`{operation.name}` uses `{value.name}` before it is assigned"
    for value in operation.outputs:
        problem = identifier_problem(value.name)
        if problem:
            yield problem
        if id(value) in defined:
            yield f"`{value.name}` is assigned twice"
        elif names.setdefault(value.name, value) is not value:
            yield f"two values have the name `{value.name}`"
        defined.add(id(value))


def _check_outputs(graph: Graph, defined: set[int]) -> Iterator[str]:
    if not graph.outputs:
        yield "the graph has no outputs"
    for position, value in enumerate(graph.outputs):
        if id(value) not in defined:
            yield f"the output `{value.name}` is never assigned"
        if _among(value, graph.inputs):
            yield f"the output `{value.name}` is an input of the graph"
        if _among(value, graph.outputs[:position]):
            yield f"the output `{value.name}` is listed twice"


def _among(value: Value, values: Iterable[Value]) -> bool:
    return any(value is other for other in values)


# -------------------------------------------------------------------------------------------------------- one operation
def _check_operation(graph: Graph, spec: Spec, operation: Operation, signature: Signature) -> Iterator[SpecError | str]:
    arguments = operation.arguments
    if signature.broken:
        yield f"`{operation.name}` must not be written for {spec}: {signature.broken}"
    for name in arguments:
        if signature.parameter(name) is None:
            yield signature.unknown_argument(name)
    missing = signature.missing({name: value for name, value in arguments.items() if value is not None})
    if missing:
        yield f"`{operation.name}` needs the argument `{'`, `'.join(missing)}`"
    for parameter in signature.parameters:
        argument = arguments.get(parameter.name)
        if argument is not None and not _fits(argument, parameter.type, spec.target == "khronos"):
            problem = f"the argument `{parameter.name}` must be {parameter.type}, not {_describe(argument)}"
            yield f"`{operation.name}`: {problem}"
    yield from _check_results(spec, operation, signature)
    yield from _check_source(spec, operation)
    if operation.name == "tract_core_scan" and arguments.get("body") not in graph.fragments:
        yield f"the body of `tract_core_scan`, `{arguments.get('body')}`, is not a fragment of the graph"


def _check_errata(errata: Iterable[Erratum], operation: OperationView, spec: Spec) -> Iterator[SpecError]:
    for erratum in errata:
        if erratum.applies(operation):
            yield SpecError(
                f"this `{operation.operator}` must not be written for {spec}: {erratum.reason}", hint=erratum.safe
            )


def _check_results(spec: Spec, operation: Operation, signature: Signature) -> Iterator[str]:
    if not signature.results[0].is_array and len(operation.outputs) != len(signature.results):
        yield f"`{operation.name}` has {len(signature.results)} results, {len(operation.outputs)} are assigned"
    for value in operation.outputs:
        if spec.target == "khronos":
            legal = value.dtype == np.float32 or value.dtype.kind in "iub"
        else:
            legal = value.dtype.name in _TRACT_DTYPES
        if not legal:
            yield f"`{value.name}` has dtype {value.dtype}, which {spec.target} does not have"
    for value, result in zip(operation.outputs, signature.results, strict=False):
        if spec.target == "khronos" and (kinds := _kinds(result.type)) and value.dtype.kind not in kinds:
            yield f"`{operation.name}` returns {result.type}, `{value.name}` is {value.dtype}"


def _check_source(spec: Spec, operation: Operation) -> Iterator[str]:
    """Yield the problems of an `external`, `variable` or `constant` with another dtype or shape than its value."""
    if operation.name not in (*EXTERNALS, "variable", "constant"):
        return
    value, generic = operation.outputs[0], operation.dtype
    if generic not in GENERIC:
        yield f"`{operation.name}<{generic}>`: scalar, integer or logical"
    elif operation.name == "external" and spec.target == "tract":
        if _TRACT_EXTERNAL[generic] != value.dtype.name:
            written = f"external<{generic}>" if generic else "external"
            yield f"`{written}` is {_TRACT_EXTERNAL[generic]} in tract, not {value.dtype}"
    elif operation.name == "tract_core_external":
        expected = value.dtype.name.replace("float", "f").replace("uint", "u").replace("int", "i")
        if operation.arguments.get("datum_type") != expected:
            yield f"`{value.name}` is {value.dtype}: its datum_type must be {expected!r}"
    elif value.dtype.kind not in GENERIC[generic]:
        yield f"`{operation.name}<{generic or 'scalar'}>` is assigned to `{value.name}` of {value.dtype}"
    shape = operation.arguments.get("shape", ())
    if len(shape) != value.rank or not all(same(a, b) for a, b in zip(shape, value.shape, strict=True)):
        yield f"`{operation.name}` declares shape {shape_text(shape)}, `{value.name}` has {shape_text(value.shape)}"
    weight = value.weight
    if operation.name == "variable" and weight is None:
        yield f"the variable `{value.name}` has no weight"
    elif weight is not None and (weight.dtype != value.dtype or tuple(weight.shape) != tuple(value.shape)):
        stored, expected = f"{weight.dtype}{list(weight.shape)}", f"{value.dtype}{shape_text(value.shape)}"
        yield f"the weight of `{value.name}` is {stored}, the value {expected}"


def _kinds(text: str) -> str:
    """Return the kinds of dtype of a tensor type; empty for any."""
    inner = text.partition("<")[2].rstrip("[]>")
    return GENERIC.get(inner, "") if inner else ""


def _fits(argument: Any, kind: str, strict: bool) -> bool:
    """Return whether `argument` is of the declared kind; `strict` follows the standard, tract is more lenient."""
    if kind.endswith("[]"):
        items = argument if isinstance(argument, list | tuple) else None
        return items is not None and all(_fits(item, kind[:-2], strict) for item in items)
    if kind.startswith("("):
        parts = kind[1:-1].split(",")
        return (
            isinstance(argument, list | tuple)
            and len(argument) == len(parts)
            and all(_fits(item, part, strict) for item, part in zip(argument, parts, strict=True))
        )
    if isinstance(argument, Value):
        if not strict:
            return kind.startswith("tensor<") or kind in ("integer", "scalar", "?")
        kinds = _kinds(kind)
        return kind.startswith("tensor<") and (not kinds or argument.dtype.kind in kinds)
    return _literal_fits(argument, kind.removeprefix("tensor<").removesuffix(">"), strict)


def _literal_fits(argument: Any, kind: str, strict: bool) -> bool:
    is_bool = isinstance(argument, bool | np.bool_)
    is_int = isinstance(argument, int | np.integer) and not is_bool
    is_float = isinstance(argument, float | np.floating)
    is_size = isinstance(argument, sympy.Expr) and not strict
    match kind:
        case "string":
            return isinstance(argument, str)
        case "logical":
            return is_bool
        case "integer":
            return is_int or is_size
        case "scalar":
            return is_float or (not strict and (is_int or is_size or is_bool))
    return is_bool or is_int or is_float or is_size


def _describe(argument: Any) -> str:
    if isinstance(argument, Value):
        return f"the tensor `{argument.name}` of {argument.dtype}"
    inside: Sequence[Value] = list(values_in(argument))
    if inside:
        return f"a list with `{inside[0].name}` of {inside[0].dtype}"
    return repr(argument)
