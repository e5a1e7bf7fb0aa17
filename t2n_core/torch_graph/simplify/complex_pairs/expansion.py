"""The pass that turns operators on complex numbers into operators on their real and imaginary parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from torch import Tensor

from t2n_core.torch_graph.constraints.dynamic_axes import SymbolTable
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchOp
from t2n_core.torch_graph.simplify.complex_pairs import Pair, find
from t2n_core.torch_graph.simplify.complex_pairs.fourier import fft_of_real
from t2n_core.torch_graph.simplify.decompose import Expansion, decompose, expand

Parts = tuple[TensorVariable, TensorVariable]
_CASTS = frozenset({"aten::to.dtype", "aten::_to_copy"})
_INSIDE = frozenset({"aten::stft", "aten::stft.center"})
"""Operators that compute with complex numbers internally, although their arguments and results may all be real."""


class ComplexPairs:
    """Rewrites one graph; keeps the two real tensors that stand for each complex tensor."""

    def __init__(self, table: SymbolTable) -> None:
        self._table = table
        self._parts: dict[int, tuple[TensorVariable, Parts]] = {}
        """Identity of a variable -> the variable, kept alive so that its identity stays unique, and its parts."""

    def concerns(self, op: TorchOp) -> bool:
        is_complex = any(v is not None and v.dtype.is_complex for v in (*op.inputs, *op.outputs))
        return is_complex or op.kind in _INSIDE or _squared_length(op) is not None

    def expand(self, op: TorchOp) -> Expansion | None:
        """Decompose an operator like `decompose`; complex results are None, and their parts are kept here."""
        length = _squared_length(op)
        if length is not None:
            parts = length.arguments["self"], length.arguments["other"]
            return expand(op, self._table, _square_of_length, parts, lambda tensors: [Pair(*tensors)] * len(op.inputs))
        signal = _real_signal(op)
        if signal is not None:
            return self._expand_parts(op, fft_of_real, [signal], list)
        body = find(op.op_ref)
        if body is None:
            expansion = decompose(op, self._table)
            if expansion is None and not op.refusal:
                name = op.origin.op if op.origin else op.kind
                op.refusal = f"{name} of complex numbers cannot be expressed in real arithmetic"
            return expansion
        inputs = [self._parts_of(v) if v.dtype.is_complex else (v,) for v in op.inputs]
        if any(components is None for components in inputs):
            return None  # the operator that should have computed them failed, and reports why
        real = [part for components in inputs if components is not None for part in components]

        def join(tensors: Iterable[Tensor]) -> Iterator[Any]:
            supply = iter(tensors)
            for variable in op.inputs:
                yield Pair(next(supply), next(supply)) if variable.dtype.is_complex else next(supply)

        return self._expand_parts(op, body, real, join)

    def _expand_parts(
        self, op: TorchOp, body: Callable[..., Any], real: Sequence[TensorVariable], join: Callable[..., Iterable[Any]]
    ) -> Expansion | None:
        """Decompose an operator by a body that takes real tensors, or the pairs that `join` makes of them."""

        def flat(*positional: Any, **keywords: Any) -> list[Tensor | None]:
            returned = body(*positional, **keywords)
            results = returned if isinstance(returned, list | tuple) else [returned]
            return [p for r, o in zip(results, op.outputs, strict=True) for p in _flatten(r, o)]

        expansion = expand(op, self._table, flat, real, join)
        if expansion is None:
            return None
        steps, returned = expansion
        supply = iter(returned)
        results: list[TensorVariable | None] = []
        for variable in op.outputs:
            if variable is not None and variable.dtype.is_complex:
                re, im = next(supply), next(supply)
                assert re is not None
                assert im is not None
                self._parts[id(variable)] = variable, (re, im)
                results.append(None)
            else:
                results.append(next(supply))
        return steps, results

    def _parts_of(self, variable: TensorVariable) -> Parts | None:
        entry = self._parts.get(id(variable))
        if entry is not None:
            return entry[1]
        if variable.data is None:
            return None
        data = variable.data.resolve_conj().resolve_neg()
        parts = _constant(variable, "real", data.real), _constant(variable, "imag", data.imag)
        self._parts[id(variable)] = variable, parts
        return parts


def _real_signal(op: TorchOp) -> TensorVariable | None:
    """Return the real tensor from which the input of a Fourier transform is cast, in the same precision, or None."""
    cast = op.arguments["self"].producer if op.kind == "aten::_fft_c2c" else None
    if cast is None or cast.kind not in _CASTS:
        return None
    signal = cast.arguments["self"]
    return signal if signal.dtype == op.inputs[0].dtype.to_real() else None


def _squared_length(op: TorchOp) -> TorchOp | None:
    """Return the `hypot` whose result an operator squares; None for other operators."""
    name = op.kind.partition(".")[0]
    squares = name == "aten::square" or (name == "aten::pow" and op.arguments.get("exponent") == 2)
    if not squares and not (name == "aten::mul" and op.arguments["self"] is op.arguments["other"]):
        return None
    length = op.arguments["self"].producer if isinstance(op.arguments["self"], TensorVariable) else None
    return length if length is not None and length.kind == "aten::hypot" else None


def _square_of_length(length: Pair, *_: Any) -> list[Tensor]:
    return [length.re * length.re + length.im * length.im]


def _constant(variable: TensorVariable, part: str, data: Tensor) -> TensorVariable:
    label = f"{variable.label}.{part}" if variable.label else ""
    data = data.contiguous()
    return TensorVariable(f"{variable.name}_{part}", data, variable.shape, data.dtype, label=label)


def _flatten(result: Any, variable: TensorVariable | None) -> list[Tensor | None]:
    if variable is None or not variable.dtype.is_complex:
        return [result]
    real = variable.dtype.to_real()
    return [part.to(real) for part in (result.re, result.im)]
