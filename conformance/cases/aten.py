"""PyTorch's own databases of operators and modules as cases: their sample inputs become models with tensor inputs.

A sample is usable when at least one argument is a tensor, every tensor argument is strided, real, not quantized and
not empty, PyTorch computes it, at least one result is a tensor, every tensor result is strided and real, and two runs
with different random states and differently filled fresh memory give the same results; the seeds that PyTorch's
entries of random operators set for themselves have no effect here. What is left out is counted with its reason.
"""

from __future__ import annotations

import copy
import hashlib
import math
import random
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from conformance.cases.free_axes import dynamic_axes_of, free_axes

DTYPES = {"float32": torch.float32, "float16": torch.float16, "int64": torch.int64, "bool": torch.bool}
OTHER_DTYPES = {
    "float64": torch.float64, "bfloat16": torch.bfloat16, "int8": torch.int8, "int16": torch.int16,
    "int32": torch.int32, "uint8": torch.uint8,
}  # fmt: skip
"""Measured on demand only. Complex tensors are neither inputs nor results of an archive."""
ELEMENTS = 64
"""Least number of elements that all sets of a call have together, in the inputs and in each result, where they can."""
OTHERS = 7
"""Sets besides the first."""
UNWRITTEN = frozenset("empty empty_like empty_permuted empty_strided new_empty new_empty_strided".split())
"""Their results are memory as it was found, which two runs may find alike."""

UNCHECKED = frozenset(["_segment_reduce.lengths", "_segment_reduce.offsets"])
"""Operators that read the memory beyond an input if it has another size."""


@dataclass(frozen=True, slots=True)
class AtenCase:
    """One entry of a database in one dtype; its samples are made when it runs."""

    kind: str
    """`operator`, `inplace` or `module`."""
    operator: str
    """`add`, `std.unbiased`, `nn.functional.conv2d`, `nn.LSTM`."""
    dtype: str

    @property
    def name(self) -> str:
        """As in the tables: the kind stands in front where it is not a plain call."""
        return f"inplace.{self.operator}" if self.kind == "inplace" else self.operator

    @property
    def id(self) -> str:
        return f"{self.name}-{self.dtype}"


@dataclass(frozen=True, slots=True, eq=False)
class AtenSample:
    """One call: a model, whose constants are what is no tensor, and its inputs."""

    id: str
    model: nn.Module
    inputs: tuple[Tensor, ...]
    extra_inputs: tuple[tuple[Tensor, ...], ...] = ()
    """Other inputs of the same shapes for the same call, as PyTorch makes them; none where it makes others."""
    is_checked: bool = True
    """False if the operator does not look whether the sizes of its inputs fit."""

    @property
    def input_names(self) -> list[str]:
        return [f"x{i}" for i in range(len(self.inputs))]

    @property
    def dynamic_axes(self) -> dict[str, dict[int, str]]:
        """The axes that PyTorch accepts in other sizes; axes that must be equal share a name."""
        if not self.is_checked:
            return {}
        return dynamic_axes_of(free_axes(self.model, self.inputs), self.input_names)


@dataclass(slots=True)
class SampleSource:
    """The usable samples of one case, made one by one."""

    case: AtenCase
    left_out: dict[str, int] = field(default_factory=dict)
    """Reason -> samples that are not usable."""

    def usable(self, most: int | None = None) -> Iterator[AtenSample]:
        """Yield the first `most` usable samples; ids count all samples, so that they stay when others become usable."""
        count = 0
        # PyTorch's generators switch gradients off and on when they end: not in the middle of some later capture
        with closing(self._calls(self.case.id)) as calls, closing(_Others(self.case)) as others:
            for index, (model, inputs) in enumerate(calls):
                unwritten = self.case.operator in UNWRITTEN
                reason = "the results are not deterministic" if unwritten else why_unusable(model, inputs)
                if reason:
                    self.left_out[reason] = self.left_out.get(reason, 0) + 1
                    continue
                extra = others.inputs_of(index, model)
                checked = self.case.operator not in UNCHECKED
                yield AtenSample(f"{self.case.id}-{index}", model, inputs, extra, checked)
                count += 1
                if count == most:
                    return

    def _calls(self, name: str) -> Generator[tuple[Call, tuple[Tensor, ...]], None, None]:
        """Yield the calls of all samples; their random numbers depend on `name`."""
        make = _module_calls if self.case.kind == "module" else _operator_calls
        states = _RandomStates(name)
        with states:
            samples = make(self.case, name == self.case.id)
        with closing(samples):
            yield from self._sample_calls(samples, states)

    def _sample_calls(
        self, samples: Iterator[Any], states: _RandomStates
    ) -> Generator[tuple[Call, tuple[Tensor, ...]], None, None]:
        while True:
            with states, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    function, args, kwargs = next(samples)
                except StopIteration:
                    return
                except Exception as cause:  # a generator of PyTorch that cannot make this dtype
                    reason = f"PyTorch cannot make the sample: {type(cause).__name__}"
                    self.left_out[reason] = self.left_out.get(reason, 0) + 1
                    return
            call = Call(function, args, kwargs).eval()
            yield call, call.examples


class _Others:
    """The samples of one case, drawn several times with other random numbers."""

    def __init__(self, case: AtenCase) -> None:
        self._case = case
        self._times: list[Generator[tuple[Call, tuple[Tensor, ...]], None, None]] = []
        self._taken: list[int] = []

    def inputs_of(self, index: int, model: Call) -> tuple[tuple[Tensor, ...], ...]:
        """Return other inputs of the sample at this place, which comes after those asked for before.

        There are as many sets as make ELEMENTS, since a branch or a clamp may go one way for each of a few elements.
        """
        times = math.ceil(ELEMENTS / max(model.elements, 1)) - 1
        calls = [self._call(time, index) for time in range(min(max(times, 1), OTHERS))]
        return tuple(call.examples for call in calls if call is not None and _same_call(model, call))

    def _call(self, time: int, index: int) -> Call | None:
        """Return the call of one time; None if it has no such call."""
        if time == len(self._times):
            self._times.append(SampleSource(self._case)._calls(f"{self._case.id} again{time or ''}"))
            self._taken.append(0)
        skipped = index - self._taken[time]
        self._taken[time] = index + 1
        made = next(islice(self._times[time], skipped, None), None)
        return made[0] if made is not None else None

    def close(self) -> None:
        for calls in self._times:
            calls.close()


class Call(nn.Module):
    """Calls a function or module; the tensors among its arguments are inputs, the rest are constants."""

    def __init__(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        super().__init__()
        self.function = function
        leaves, self.spec = pytree.tree_flatten((list(args), dict(kwargs)))
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        self.examples = tuple(t.detach() for t in tensors)
        places = iter(range(len(tensors)))
        self.leaves = [_Slot(next(places)) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        self.written: frozenset[int] = frozenset()
        """Inputs that the function writes into; the model gives it copies of them."""
        self.elements = 0
        """Return the number of elements of all inputs, or of the smallest result if that has fewer."""

    def forward(self, *inputs: Tensor) -> Any:
        tensors = [x.clone() if i in self.written else x for i, x in enumerate(inputs)]
        leaves = [tensors[leaf.index] if isinstance(leaf, _Slot) else leaf for leaf in self.leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return self.function(*args, **kwargs)


def _same_call(call: Call, other: Call) -> bool:
    """Return whether two calls differ in the elements of their tensors alone, or in floats, which are drawn too."""
    shapes, others = ([(x.shape, x.dtype) for x in side.examples] for side in (call, other))
    settings, others_of = ([float if type(leaf) is float else leaf for leaf in side.leaves] for side in (call, other))
    return shapes == others and repr(settings) == repr(others_of)


@dataclass(frozen=True, slots=True)
class _Slot:
    index: int


def why_unusable(model: Call, inputs: Sequence[Tensor]) -> str:
    """Empty for a usable sample. Notes in the model which inputs the call writes into, and its number of `elements`."""
    if not inputs:
        return "no tensor among the arguments"
    for tensor in inputs:
        reason = _unusable_tensor(tensor)
        if reason:
            return f"an input is {reason}"
        if not tensor.numel():
            return "an input is empty"
    try:
        first, written = _run(model, inputs, seed=1, fill=False)
        second, _ = _run(model, inputs, seed=2, fill=True)
    except Exception:
        return "PyTorch itself cannot compute it"
    if not first:
        return "no tensor among the results"
    for tensor in first:
        reason = _unusable_tensor(tensor)
        if reason:
            return f"a result is {reason}"
    if len(first) != len(second) or not all(map(_same, first, second)):
        return "the results are not deterministic"
    model.written = written
    model.elements = min(sum(x.numel() for x in inputs), *(x.numel() for x in first))
    return ""


def _unusable_tensor(tensor: Tensor) -> str:
    if tensor.layout is not torch.strided or tensor.is_nested or type(tensor) not in (Tensor, nn.Parameter):
        return "not dense"
    if tensor.is_complex():
        return "complex"
    return "quantized" if tensor.is_quantized else ""


def _run(model: Call, inputs: Sequence[Tensor], *, seed: int, fill: bool) -> tuple[list[Tensor], frozenset[int]]:
    """Results, and the inputs that were written into. `fill` gives fresh memory other contents than a plain run's."""
    copies = [x.clone() for x in inputs]
    with torch.random.fork_rng(devices=[]), torch.no_grad(), warnings.catch_warnings(), _filling_memory(fill):
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        with patch.object(torch, "manual_seed", lambda _: torch.default_generator):
            results = model(*copies)
    tensors = [leaf for leaf in pytree.tree_leaves(results) if isinstance(leaf, Tensor)]
    written = (i for i, (a, b) in enumerate(zip(inputs, copies, strict=True)) if not _same(a, b))
    return tensors, frozenset(written)


@contextmanager
def _filling_memory(active: bool) -> Iterator[None]:
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    if active:
        torch.use_deterministic_algorithms(True, warn_only=True)  # fills what `torch.empty` gives with NaN
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def _same(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.is_floating_point():
        # the deterministic algorithms may sum in another order
        return torch.allclose(a.double(), b.double(), rtol=1e-3, atol=1e-4, equal_nan=True)
    return torch.equal(a, b)


class _RandomStates:
    """Random numbers of torch, numpy and Python that depend on a name only, whatever runs between two uses."""

    def __init__(self, name: str) -> None:
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
        self._states = self._swap(lambda: (torch.manual_seed(seed), np.random.seed(seed), random.seed(seed)))

    @staticmethod
    def _swap(change: Callable[[], Any]) -> tuple[Any, ...]:
        """Return the states after `change`, and put back those before it."""
        before = torch.get_rng_state(), np.random.get_state(), random.getstate()
        change()
        after = torch.get_rng_state(), np.random.get_state(), random.getstate()
        _set_states(before)
        return after

    def __enter__(self) -> None:
        self._outside = torch.get_rng_state(), np.random.get_state(), random.getstate()
        _set_states(self._states)

    def __exit__(self, *_: object) -> None:
        self._states = torch.get_rng_state(), np.random.get_state(), random.getstate()
        _set_states(self._outside)


def _set_states(states: tuple[Any, ...]) -> None:
    torch.set_rng_state(states[0])
    np.random.set_state(states[1])
    random.setstate(states[2])


_ONE_CALL = tuple[Any, Sequence[Any], Mapping[str, Any]]


def _operator_calls(case: AtenCase, set_seed: bool) -> Generator[_ONE_CALL, None, None]:
    """Yield the calls of PyTorch's samples, seeded as in its own tests or from this process's state."""
    info = copy.deepcopy(_operators()[case.operator])
    function = _in_place(info.inplace_variant) if case.kind == "inplace" else info.op
    # PyTorch looks for its own test among the callers, and keeps them alive: generators would end at any later time
    internal = "torch.testing._internal"
    with (
        patch(f"{internal}.common_utils.extract_test_fn", lambda: None, create=True),
        patch(f"{internal}.opinfo.core.extract_test_fn", lambda: None, create=True),
    ):
        samples = info.sample_inputs("cpu", (DTYPES | OTHER_DTYPES)[case.dtype], requires_grad=False, set_seed=set_seed)
    for sample in samples:
        if case.kind != "inplace" or not sample.broadcasts_input:
            yield function, (sample.input, *sample.args), sample.kwargs


def _in_place(variant: Callable[..., Any]) -> Callable[..., Any]:
    return lambda first, *args, **kwargs: variant(first.clone(), *args, **kwargs)


def _module_calls(case: AtenCase, set_seed: bool) -> Generator[_ONE_CALL, None, None]:
    info, dtype = copy.deepcopy(_modules()[case.operator]), DTYPES[case.dtype]
    for sample in info.module_inputs_func(info, "cpu", dtype, requires_grad=False, training=False):
        made = sample.constructor_input
        module = info.module_cls(*made.args, **made.kwargs).to(dtype).eval()
        if sample.forward_input is not None:
            yield module, sample.forward_input.args, sample.forward_input.kwargs


@cache
def _operators() -> dict[str, Any]:
    """Name -> entry. Imported here: the internals of torch.testing are slow to import and move between releases."""
    try:
        from torch.testing._internal.common_methods_invocations import op_db
    except ImportError as cause:
        raise ImportError("the suite `aten` needs PyTorch's op_db, which needs the package expecttest") from cause
    entries: dict[str, Any] = {}
    for info in op_db:
        variant = getattr(info, "variant_test_name", "")
        entries.setdefault(f"{info.name}.{variant}" if variant else info.name, info)
    return entries


@cache
def _modules() -> dict[str, Any]:
    try:
        from torch.testing._internal.common_modules import module_db
    except ImportError:
        return {}
    return {info.name: info for info in module_db}


@cache
def all_aten_cases() -> tuple[AtenCase, ...]:
    """Return the cases of all operators and modules in each of DTYPES that they have; in place in float32."""
    cases = list[AtenCase]()
    for name, info in _operators().items():
        cases += _cases_of(name, DTYPES)
        if getattr(info, "inplace_variant", None) is not None and torch.float32 in info.dtypes:
            cases.append(AtenCase("inplace", name, "float32"))
    for name, info in _modules().items():
        dtypes = set(getattr(info, "dtypes", ()))
        cases += [AtenCase("module", name, text) for text in ("float32", "float16") if DTYPES[text] in dtypes]
    return tuple(cases)


def aten_cases_of(dtypes: Sequence[str]) -> list[AtenCase]:
    """Return the cases of all operators in these dtypes, of which others than DTYPES are not among all cases."""
    return [case for name in _operators() for case in _cases_of(name, {t: (DTYPES | OTHER_DTYPES)[t] for t in dtypes})]


def _cases_of(name: str, dtypes: Mapping[str, torch.dtype]) -> list[AtenCase]:
    operator_dtypes = set(getattr(_operators()[name], "dtypes", ()))
    return [AtenCase("operator", name, text) for text, dtype in dtypes.items() if dtype in operator_dtypes]
