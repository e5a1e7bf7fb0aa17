"""Autograd functions and operators: kept whole with a rule of the user's, or written by other operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from t2n_core.errors import LowerError, T2NError
from t2n_core.nnef.spec import Spec
from t2n_core.nnef.writing_options import PLAIN, WritingOptions
from t2n_core.op.registry import Registry, Rule, op
from t2n_core.rewriter.context import Session
from t2n_core.rewriter.selection import Selection
from t2n_core.rewriter.specs import Rewriter
from t2n_core.torch_graph.capture.module_calls import WholeCall, write_node
from t2n_core.torch_graph.graph.ir import TorchOp


@dataclass(frozen=True, slots=True, eq=False)
class FunctionNode:
    """One call of an autograd function that stays one node."""

    cls: type
    rewriter: Rewriter
    apply: Callable[..., Any]
    """torch's own `apply`, which takes the class first."""

    def as_one_node(self, *args: Any, **kwargs: Any) -> Any:
        return write_node(self, [], self._outputs, args, kwargs)

    def _outputs(self, *args: Any, **kwargs: Any) -> Any:
        if self.rewriter.outputs is not None:
            return self.rewriter.outputs(*args, **kwargs)
        with torch.no_grad():
            return self.apply(self.cls, *args, **kwargs)

    def compute(self, *args: Any, **kwargs: Any) -> Any:
        return self.apply(self.cls, *args, **kwargs)

    def write(self, g: Any, call: WholeCall, inputs: list[Any], params: list[Any]) -> Any:
        """Call the rule with what `apply` got, values in place of tensors."""
        args, kwargs = call.filled(inputs)
        try:
            return self.rewriter.replacement(g, *args, **kwargs)
        except TypeError as wrong:
            raise g.fail(f"the rule for {self.rewriter.subject_name} ({self.rewriter.place}): {wrong}") from wrong


class RulesOfAnExport(Registry):
    """The rules of another registry with those of an export before them."""

    def __init__(self, base: Registry, selection: Selection, hits: Counter[Rewriter]) -> None:
        super().__init__()
        self.base, self.hits = base, hits
        self.own = {key: (rewriter, self._rule(key, rewriter)) for key, rewriter in selection.rules.items()}

    def find(self, kind: str, spec: Spec, options: WritingOptions = PLAIN) -> Rule | None:
        for key in (kind, kind.split(".")[0]):
            if key in self.own:
                rewriter, rule = self.own[key]
                if rule is None:
                    self.hits[rewriter] += 1
                return rule
        return self.base.find(kind, spec, options)

    def _rule(self, key: str, rewriter: Rewriter) -> Rule | None:
        """Return a rewriter as a rule that counts its calls. Raises RegistryError for an unknown argument."""
        if rewriter.replacement is None:
            return None
        made = Registry()
        op(key, registry=made)(rewriter.replacement)
        (rule,) = made

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.hits[rewriter] += 1
            return rule.function(*args, **kwargs)

        return replace(rule, function=counted)


def operator_bodies(
    selection: Selection, session: Session
) -> Callable[[TorchOp], tuple[Rewriter, Callable[..., Any]] | None]:
    """Return a function that finds an operator's rewriter, and its body as a function of the schema's arguments."""
    table: Mapping[str, Rewriter] = selection.operators

    def find(op: TorchOp) -> tuple[Rewriter, Callable[..., Any]] | None:
        rewriter = table.get(op.kind) or table.get(op.kind.split(".")[0])
        if rewriter is None:
            return None

        def body(*args: Any, **kwargs: Any) -> Any:
            session.hits[rewriter] += 1
            try:
                return rewriter.replacement(session.context(op.op_ref, op.module_path), *args, **kwargs)
            except T2NError:
                raise
            except Exception as cause:
                raise LowerError(
                    f"the rewrite of {op.kind} ({rewriter.place}) failed: {type(cause).__name__}: {cause}",
                    origin=op.origin,
                ) from cause

        return rewriter, body

    return find
