"""Tell wrong results from choices that PyTorch leaves open: the order of equal elements, the sign of a phase of pi.

PyTorch promises no order of equal elements in `topk`, `sort`, `kthvalue` and `median`, and the phase of a
negative number whose imaginary part is rounding noise is pi or -pi by chance. The model runs again with another choice,
as valid as PyTorch's own, and the archive is judged by that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from t2n_core.check.reference import Reference
from t2n_core.engine.protocol import Engine
from t2n_core.errors import ParityError
from t2n_core.op.stored.source import StoredWeights
from t2n_core.parity.check import check_parity
from t2n_core.parity.outcome import ErrorInfo, Outcome, Stage, Status
from t2n_core.parity.outcomes import WEAK_CHECK
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Array, Sample
from t2n_core.torch_graph.compat.private import TorchDispatchMode
from t2n_core.torch_graph.precision.units import name_of

UNSPECIFIED: Final = "unspecified"
"""Fact of a weak pass: what PyTorch leaves open, and the archive computes otherwise."""
_NOISE: Final = 1e-6
"""Imaginary parts that are rounding noise, as a share of the largest magnitude."""
_SMALL: Final = 1e-5
"""Relative difference of two choices up to which an element does not depend on them."""
_MOST_OPEN: Final = 0.25
"""Share of the elements of an output that may depend on a choice in the sample where it is smallest."""
_HINT: Final = "a program must not depend on it: compare what it does with the results instead"


class _FirstOfEquals(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Order equal elements by their index, as archives do."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        form = _ORDERED.get(func.name())
        return func(*args, **(kwargs or {})) if form is None else form(*args, **(kwargs or {}))


class _SignOfCut(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Give all phases at the branch cut one sign."""

    def __init__(self, sign: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._sign = sign

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.name() not in _PHASES:
            return result
        imag, real = args if len(args) == 2 else (args[0].imag, args[0].real) if args[0].is_complex() else (None, None)
        if imag is None or real is None or not result.numel():
            return result
        noise = _NOISE * torch.maximum(imag.abs().max(), real.abs().max())
        is_open = (imag.abs() <= noise) & (real <= noise) & ~_always_zero(imag)
        return torch.where(is_open, torch.full_like(result, self._sign * torch.pi), result)


def _always_zero(x: Tensor) -> Tensor:
    """Return the elements that are 0 at an index of an axis where all are, as the first bin of a spectrum."""
    zero, mask = x == 0, torch.zeros_like(x, dtype=torch.bool)
    for axis in range(x.dim()):
        rest = [other for other in range(x.dim()) if other != axis]
        mask |= zero.all(dim=rest, keepdim=True) if rest else zero
    return mask


def _topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    values, indices = torch.sort(x, dim=dim, descending=largest, stable=True)
    return (values, indices) if not x.dim() else (values.narrow(dim, 0, k), indices.narrow(dim, 0, k))


def _sort(x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    return tuple(torch.sort(x, dim=dim, descending=descending, stable=True))  # type: ignore[return-value]


def _kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    values, indices = torch.sort(x, dim=dim, stable=True)
    result = (values, indices) if not x.dim() else (values.narrow(dim, k - 1, 1), indices.narrow(dim, k - 1, 1))
    return result if keepdim or not x.dim() else (result[0].squeeze(dim), result[1].squeeze(dim))


def _median(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return _kthvalue(x, (x.shape[dim] + 1) // 2 if x.dim() else 1, dim, keepdim)


_ORDERED: Final[Mapping[str, Callable[..., Any]]] = {
    "aten::topk": _topk,
    "aten::sort": _sort,
    "aten::kthvalue": _kthvalue,
    "aten::median.dim": _median,
}
_PHASES: Final = ("aten::angle", "aten::atan2")
_CUT: Final = "the sign of a phase of pi"
_OPEN: Final[Mapping[str, tuple[frozenset[str], Callable[[], list[TorchDispatchMode]]]]] = {
    "the order of equal elements": (
        frozenset("argsort kthvalue median msort sort topk".split()),
        lambda: [_FirstOfEquals()],  # type: ignore[no-untyped-call]
    ),
    _CUT: (frozenset({"angle", "atan2"}), lambda: [_SignOfCut(1.0), _SignOfCut(-1.0)]),
}
"""Name of a choice that PyTorch leaves open -> the operators that make it, and the modes of other choices."""


def judge_unspecified(
    mismatch: Outcome, engine: Engine, request: CheckRequest, reference: Reference, stored: StoredWeights
) -> Outcome:
    """Return a mismatch, or a weak pass if all outputs are right by a choice that PyTorch leaves open."""
    kinds = {name_of(op.kind) for op in reference.captured.graph.op_nodes}
    failed = [sample for sample in request.samples if sample.sizes in mismatch.failed_sizes]
    for choice, (operators, modes) in _OPEN.items():
        if not kinds & operators or mismatch.error is None or mismatch.error.error_class != ParityError.__name__:
            continue
        reply = engine.run(request.archive, [sample.inputs for sample in failed], timeout=request.timeout)
        if reply.status != "ok":
            continue
        pairs = zip(failed, reply.outputs, strict=True)
        chosen = {id(sample): _with_choice(sample, outputs, modes(), reference, stored) for sample, outputs in pairs}
        samples = [chosen.get(id(sample), sample) for sample in request.samples]
        if choice == _CUT and _share_of_changes(request.samples, samples) > _MOST_OPEN:
            continue
        outcome = check_parity(engine, replace(request, samples=samples))
        if outcome.passed:
            words = f"{choice} is not that of PyTorch, which leaves it open; with the archive's all outputs agree"
            error = ErrorInfo.of(Stage.COMPARE, WEAK_CHECK, words, hint=_HINT)
            return replace(outcome, status=Status.WEAK, error=error, facts={**outcome.facts, UNSPECIFIED: choice})
    return mismatch


def _with_choice(
    sample: Sample,
    outputs: Sequence[Array],
    modes: Sequence[TorchDispatchMode],
    reference: Reference,
    stored: StoredWeights,
) -> Sample:
    """Return a sample that expects PyTorch's outputs with another choice.

    With several choices, each element may follow a different one: elements that differ between choices are not judged.
    """
    runs = []
    for mode in modes:
        with mode:
            runs.append(reference.answer(sample.inputs, stored))
    if len(runs) == 1:
        return replace(sample, expected=runs[0])
    left = (_without_open(*arrays) for arrays in zip(sample.expected, outputs, *runs, strict=True))
    return replace(sample, expected=tuple(left))


def _without_open(expected: Array, answer: Array, choice: Array, other: Array) -> Array:
    """Return an expected output with the answer of the engine where two choices differ."""
    is_open = np.abs(choice - other) > _SMALL * np.abs(choice) if choice.dtype.kind == "f" else choice != other
    if answer.shape != expected.shape or answer.dtype != expected.dtype:
        return expected
    return np.where(is_open & np.isfinite(answer), answer, expected)


def _share_of_changes(samples: Sequence[Sample], others: Sequence[Sample]) -> float:
    """Return the largest share of an output's elements that changed, each in the sample where the fewest did."""
    shares = [
        [float((a != b).mean()) if a.size else 1.0 for a, b in zip(sample.expected, other.expected, strict=True)]
        for sample, other in zip(samples, others, strict=True)
    ]
    return max((min(of_output) for of_output in zip(*shares, strict=True)), default=0.0)
