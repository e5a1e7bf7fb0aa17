"""Every error this package raises on purpose, with the stage of a cell in which it occurs.

T2NError
├── InputError                 input     a bad argument, file name or option, or a call that PyTorch itself refuses
├── RegistryError              setup     two rules for one operator, or a rule without an operator
├── TorchVersionError          setup     the installed PyTorch lacks a name that the converter needs
├── RewriteError               capture   a rewriter that names nothing, clashes with another, or never applied
├── CaptureError               capture   PyTorch could not capture a graph of the model
├── LowerError                 lower     a rule could not lower an operator
│   ├── RefusedError           lower     another exporter refused the model, or failed on it
│   └── UnsupportedOpsError    lower     all operators that the target does not support, listed at once
├── SpecError                  spec      the graph uses what the target version does not have
├── WriteError                 write     the archive could not be written
├── InterfaceError             load      the archive has other inputs or outputs than the export declared
├── MeaningError               run       the definitions of the operators cannot compute an archive
│   ├── BudgetError            run       a statement takes more memory, time or nesting than it may
│   ├── MalformedArchiveError  run       a statement reads what the archive does not define
│   └── UndefinedOperatorError run       it has an operator without a definition
├── EngineError                          anything about a foreign engine
│   ├── EngineResolveError     setup     no such version, or no index and no cache
│   ├── EngineProvisionError   setup     download, hash or unpacking failed
│   ├── EngineLoadError        load      the engine refused the archive
│   ├── EngineOptimiseError    optimise  the engine failed while optimising the graph
│   ├── EngineRunError         run       the engine refused the inputs or failed while running
│   ├── EngineCrash                      the engine's process died (signal or panic); the current stage
│   ├── EngineTimeout                    it did not answer in time; the current stage
│   └── EngineOutOfMemory                it exceeded its memory limit; the current stage
└── ParityError                compare   the engine's results differ from PyTorch's
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Origin:
    """The place in the user's model that a node comes from."""

    op: str
    """The torch operator, with overload: `aten::add.Tensor`."""
    module_path: str = ""
    """Dotted path of the module that called it; empty for the root."""
    source: str = ""
    """`file:line in function`, followed by the code of that line if known."""

    def __str__(self) -> str:
        parts = [self.op]
        if self.module_path:
            parts.append(f"in module `{self.module_path}`")
        if self.source:
            parts.append(f"at {self.source}")
        return " ".join(parts)


class T2NError(Exception):
    """Base of all errors; its `str()` is the message for users, including the hint."""

    stage: ClassVar[str] = "setup"

    def __init__(
        self,
        message: str,
        *,
        op: str | None = None,
        origin: Origin | None = None,
        target: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.op = op if op is not None else (origin.op if origin else None)
        self.origin = origin
        self.target = target
        self.hint = hint
        self.rule = ""
        """The line of the user's own rule or extractor that raised it; empty for one of this package."""

    def __str__(self) -> str:
        lines = [self.message]
        if self.origin:
            lines.append(f"  origin: {self.origin}")
        elif self.op:
            lines.append(f"  op: {self.op}")
        if self.rule:
            lines.append(f"  rule: {self.rule}")
        if self.target:
            lines.append(f"  target: {self.target}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class T2NWarning(UserWarning):
    """Base of all warnings of this package, for filters: `ignore::t2n_core.T2NWarning`."""


class DroppedResultWarning(T2NWarning):
    """A model returns a value that is neither a tensor nor a number, and the archive does not."""


class EngineIndexWarning(T2NWarning):
    """The package index did not answer, and a cached answer is used."""


class ExtractorWarning(T2NWarning):
    """An extractor replaces another."""


class FrozenDecisionWarning(T2NWarning):
    """The model has Python control flow that the archive always executes as for the example inputs."""


class OptionWarning(T2NWarning):
    """An option of an export had no effect, or only a partial one."""


class PrecisionWarning(T2NWarning):
    """Tensors of a type that NNEF does not have, bfloat16, are exported as float32."""


class RangeWarning(T2NWarning):
    """The archive is valid only for some sizes, because of a line of the model."""


class RewriteWarning(T2NWarning):
    """Rewriters had no effect, or take the place of others."""


class StateWarning(T2NWarning):
    """The first call of a model without a state is not equal to a step from a state of zeros."""


class UntestedTorchWarning(T2NWarning):
    """The installed PyTorch is newer than all releases that this version of the package was tested with."""


class InputError(T2NError):
    """A bad argument, file name or option, or a call that PyTorch itself refuses; nothing was written."""

    stage = "input"


class DrawError(InputError):
    """No inputs could be drawn for a file for which its reference computes outputs."""


class RegistryError(T2NError):
    """Two rules for one key, a rule whose arguments are not the torch schema's, or a rule without an operator."""


class TorchVersionError(T2NError):
    """The installed PyTorch lacks a name that the converter needs; the hint names the release to install."""


class RewriteError(T2NError):
    """A rewriter that names nothing, clashes with an equally specific one, or never applied where it must."""

    stage = "capture"


class CaptureError(T2NError):
    """PyTorch could not capture a graph of the model."""

    stage = "capture"


class DataDependentError(CaptureError):
    """A size, or Python control flow of the model, depends on elements of a tensor."""


class LowerError(T2NError):
    """A rule could not lower one operator for the target."""

    stage = "lower"


class RefusedError(LowerError):
    """Another exporter refused the model, or failed on it; the message is its own first cause."""


class UnsupportedOpsError(LowerError):
    """All operators of a model that the target does not support.

    `problems` has them all; the message has the first one of each operator and line of the model.
    """

    def __init__(self, problems: Sequence[T2NError], *, target: str | None = None) -> None:
        self.problems = tuple(problems)
        first_of: dict[Any, T2NError] = {}
        count: Counter[Any] = Counter()
        for problem in problems:
            key = problem.origin or problem
            first_of.setdefault(key, problem)
            count[key] += 1
        head = f"{len(first_of)} operator{'s' if len(first_of) != 1 else ''} of this model cannot be exported"
        body = "\n".join(
            f"- {problem}".replace("\n", "\n  ") + (f"\n  and {count[key] - 1} more" if count[key] > 1 else "")
            for key, problem in first_of.items()
        )
        first = self.problems[0] if self.problems else None
        super().__init__(f"{head}:\n{body}", target=target)
        self.op = first.op if first else None
        self.first_origin = first.origin if first else None


class SpecError(T2NError):
    """The graph uses an operator, attribute or dtype that the target version does not have."""

    stage = "spec"


class WriteError(T2NError):
    """The archive could not be written; nothing is left under its final name."""

    stage = "write"


class InterfaceError(T2NError):
    """The archive has other inputs or outputs, or another order of them, than the export declared."""

    stage = "load"


class MeaningError(T2NError):
    """The definitions of the dialect's operators cannot compute a statement, which is outside of their domain."""

    stage = "run"

    def __init__(
        self, message: str, *, op: str | None = None, statement: str = "", is_outside_of_domain: bool = False
    ) -> None:
        super().__init__(message, op=op)
        self.statement = statement
        """The line of the graph or fragment."""
        self.is_outside_of_domain = is_outside_of_domain
        """True if operands do not fit, so that no engine can compute the statement."""


class MalformedArchiveError(MeaningError):
    """A statement reads a name or a stored tensor that the archive, as it is read here, does not define."""


class BudgetError(MeaningError):
    """A statement takes more memory, time or nesting than the evaluation of an archive may."""


class UndefinedOperatorError(MeaningError):
    """An operator has no definition; the message names it with its line."""


class EngineError(T2NError):
    """A failure of a foreign engine."""


class EngineResolveError(EngineError):
    """No release matches, or there is neither an index nor a cache to ask."""


class EngineProvisionError(EngineError):
    """Download, hash check or unpacking of an engine failed."""


class EngineLoadError(EngineError):
    """The engine refused the archive; the message is its chain of causes."""

    stage = "load"


class EngineOptimiseError(EngineError):
    """The engine failed while optimising the graph."""

    stage = "optimise"


class EngineRunError(EngineError):
    """The engine refused the inputs or failed while running."""

    stage = "run"


class EngineCrash(EngineError):  # noqa: N818  named like the outcome
    """The engine's process died by a signal or a panic."""

    stage = "run"


class EngineTimeout(EngineError):  # noqa: N818
    """The engine did not answer in time and was killed."""

    stage = "run"


class EngineOutOfMemory(EngineError):  # noqa: N818
    """The engine exceeded its memory limit."""

    stage = "run"


class ParityError(T2NError):
    """The engine's results differ from PyTorch's."""

    stage = "compare"


class SecondCallError(ParityError):
    """The engine's results in a State that had run before differ from those in a fresh one."""


class RowsError(ParityError):
    """The engine's results for a row of a batch change with the other rows; the model's do not."""


class CallsError(ParityError):
    """The engine's results of calls in a row differ from the model's; the model takes the state it returned."""


class PiecesError(ParityError):
    """The engine's results change for a sequence in pieces, or a stream in pulses of another length."""


def engine_error(status: str, stage: str) -> type[EngineError]:
    """Return the class of an engine's failure, by the status and the stage of its reply."""
    by_status = {"crash": EngineCrash, "timeout": EngineTimeout, "oom": EngineOutOfMemory}
    by_stage = {"load": EngineLoadError, "optimise": EngineOptimiseError}
    return by_status.get(status) or by_stage.get(stage) or EngineRunError
