"""The training flags of a model: a model in training mode runs and is captured in evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType

import torch


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Put all parts of a module in evaluation mode in the block, and each flag back as it was."""
    parts = [part for part in module.modules() if getattr(part, "training", False)]  # frozen scripts have no flag
    try:
        for part in parts:
            part.training = False  # not `eval`, which a class may override
        yield
    finally:
        for part in parts:
            part.training = True


def training_note(module: torch.nn.Module, name: str) -> str | None:
    """Return a note on a model that is in training mode, if a part of it may compute something else then."""
    names = {type(part).__name__: None for part in module.modules() if _differs(part)}
    if not names:
        return None
    return f"{name} is in training mode ({', '.join(names)}): exported and checked in evaluation mode, and put back"


def reads_training(kind: type, *, of_torch: bool = False) -> bool:
    """Return whether a function of a class, or of a base class, reads `training`.

    Those of PyTorch's own classes count with `of_torch` only.
    """
    classes = [base for base in kind.__mro__ if of_torch or not base.__module__.startswith("torch.")]
    classes = [base for base in classes if base is not torch.nn.Module]
    functions = [value for base in classes for value in vars(base).values() if isinstance(value, FunctionType)]
    return any("training" in code.co_names for function in functions for code in _codes(function.__code__))


def _differs(part: torch.nn.Module) -> bool:
    """Return whether a part is in training mode and reads its flag; dropout with probability 0 does not count."""
    if not getattr(part, "training", False):
        return False
    if isinstance(part, torch.jit.ScriptModule):
        return True
    if type(part).__module__.startswith("torch.nn."):
        probability = vars(part).get("p", vars(part).get("dropout"))
        return probability != 0 and reads_training(type(part), of_torch=True)
    return reads_training(type(part), of_torch=True)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
