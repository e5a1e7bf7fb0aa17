"""Operators with a user's rule or body."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any

from t2n_core.errors import LowerError, T2NError
from t2n_core.nnef.options.writing_options import PLAIN, WritingOptions
from t2n_core.nnef.spec import Spec
from t2n_core.op.registry import Registry, Rule, op
from t2n_core.rewriter.context import Session, running
from t2n_core.rewriter.selection import Selection
from t2n_core.rewriter.specs import Rewriter
from t2n_core.torch_graph.custom_ops.module_calls import is_module_call
from t2n_core.torch_graph.graph.ir import TorchOp


class RulesOfAnExport(Registry):
    """The rules of another registry, preceded by an export's."""

    def __init__(self, base: Registry, selection: Selection, session: Session) -> None:
        super().__init__()
        self.base, self.session, self.hits = base, session, session.hits
        self.own = {key: (rewriter, self._rule(key, rewriter)) for key, rewriter in selection.rules.items()}

    def find(self, kind: str, spec: Spec, options: WritingOptions = PLAIN) -> Rule | None:
        for key in (kind, kind.split(".")[0]):
            if key in self.own:
                rewriter, rule = self.own[key]
                if rule is None:
                    self.hits[rewriter] += 1
                return rule
        base_rule = self.base.find(kind, spec, options)
        return self._in_session(base_rule) if base_rule is not None and is_module_call(kind) else base_rule

    def _in_session(self, rule: Rule) -> Rule:
        """Return the rule of autograd functions that are one node, whose own rules then have a context."""

        @wraps(rule.function)
        def in_session(g: Any, *args: Any, **kwargs: Any) -> Any:
            with running(self.session.context(rule.function, _path_of(g))):
                return rule.function(g, *args, **kwargs)

        return replace(rule, function=in_session)

    def _original(self, g: Any, key: str) -> Callable[..., Any]:
        """Return the rule that is replaced, as a function of `g` and the arguments of the operator."""

        def original(_: Any, *args: Any, **kwargs: Any) -> Any:
            kind = g.node.origin.op if g.node.origin is not None else key
            rule = self.base.find(kind, g.spec, g.options)
            if rule is None:
                raise g.fail(f"{kind} has no other rule that `origin_func` could call")
            return rule.function(g, *args, **kwargs)

        return original

    def _rule(self, key: str, rewriter: Rewriter) -> Rule | None:
        """Return a rewriter as a rule that counts its calls. Raises RegistryError for an unknown argument."""
        if rewriter.replacement is None:
            return None
        registry = Registry()
        op(key, registry=registry)(rewriter.replacement)
        (rule,) = registry

        @wraps(rule.function)  # errors name its line
        def counting_rule(g: Any, *args: Any, **kwargs: Any) -> Any:
            self.hits[rewriter] += 1
            with running(self.session.context(self._original(g, key), _path_of(g))):
                return rule.function(g, *args, **kwargs)

        return replace(rule, function=counting_rule)


def _path_of(g: Any) -> str:
    return "" if g.node.origin is None else str(g.node.origin.module_path)


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
                with running(session.context(op.op_ref, op.module_path)) as context:
                    return rewriter.replacement(context, *args, **kwargs)
            except T2NError:
                raise
            except Exception as cause:
                raise LowerError(
                    f"the rewrite of {op.kind} ({rewriter.place}) failed: {type(cause).__name__}: {cause}",
                    origin=op.origin,
                ) from cause

        return rewriter, body

    return find
