"""capture="trace": torch.jit.trace runs the model once and records its operators; Python control flow is frozen."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from t2n_core.errors import FrozenDecisionWarning
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.torch_graph.compat.private import TracerWarning
from t2n_core.torch_graph.frontend.calls import FlatCall


def trace_call(
    call: FlatCall, tensors: Sequence[torch.Tensor], modes: Sequence[TorchFunctionMode]
) -> tuple[torch.jit.ScriptModule, list[FrozenDecisionWarning]]:
    """Return the call as TorchScript, and a warning for each line where Python reads a value of a tensor."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", TracerWarning)
        with ExitStack() as stack:
            for mode in modes:
                stack.enter_context(mode)
            trace: Any = torch.jit.trace
            script = trace(call, tuple(t.detach().clone() for t in tensors), check_trace=False, strict=False)
    return script, _decisions(seen)


def frozen_size(
    line: str, sizes: Mapping[str, int], limits: Mapping[str, tuple[int, int | None]]
) -> FrozenDecisionWarning:
    """Return the warning for a line that a trace at other sizes records differently, with the limits of the trace."""
    names = " and ".join(f"`{name}`" for name in sizes)
    valid_range = SizeRange({name: limits.get(name, (size, size)) for name, size in sizes.items()})
    return FrozenDecisionWarning(
        f"{line or 'the model'} depends on the size{'s' * (len(sizes) > 1)} {names} in a way that a trace cannot "
        f"follow; the archive computes it as for {', '.join(f'{name} = {size}' for name, size in sizes.items())}, and "
        f"holds only for {valid_range}"
    )


def _decisions(seen: Iterable[warnings.WarningMessage]) -> list[FrozenDecisionWarning]:
    lines = ((w.filename, w.lineno) for w in seen if issubclass(w.category, TracerWarning) and _is_own(w.filename))
    return [
        FrozenDecisionWarning(
            f"{file}:{line}: `{linecache.getline(file, line).strip()}` reads a value of a tensor; the archive "
            "always uses that of the example inputs"
        )
        for file, line in dict.fromkeys(lines)
    ]


def _is_own(file: str) -> bool:
    """Return whether a file is not PyTorch's; PyTorch's layers only check their arguments."""
    return not file.startswith(_TORCH)


_TORCH = torch.__file__.removesuffix("__init__.py")
