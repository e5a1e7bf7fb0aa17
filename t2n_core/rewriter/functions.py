"""Operators with a user's rule or body."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from t2n_core.errors import LowerError, T2NError
from t2n_core.nnef.options.writing_options import PLAIN, WritingOptions
from t2n_core.nnef.spec import Spec
from t2n_core.op.registry import Registry, Rule, op
from t2n_core.rewriter.context import Session
from t2n_core.rewriter.selection import Selection
from t2n_core.rewriter.specs import Rewriter
from t2n_core.torch_graph.graph.ir import TorchOp


class RulesOfAnExport(Registry):
    """The rules of another registry, preceded by those of an export."""

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

        def counting_rule(*args: Any, **kwargs: Any) -> Any:
            self.hits[rewriter] += 1
            return rule.function(*args, **kwargs)

        return replace(rule, function=counting_rule)


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
