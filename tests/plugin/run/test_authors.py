"""The author of a mismatch in a session, with its first wrong statement by the definitions of the operators."""

from __future__ import annotations

from typing import Any

from t2n_core.engine.provision.store import default_cache_dir
from tests.releases import RECENT
from tests.starter import FOR_EXPORTS

CACHE = f"--t2n-cache-dir={default_cache_dir()}"
"""Looked up now: pytester gives each test a home without engines."""
OWN_SOFTPLUS = """
import pytest, torch
from t2n_core import ModelExport
from t2n_core.lowering import target_lowering
from t2n_core.op.registry import Rule, load_default


class Net(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(torch.nn.functional.softplus(torch.abs(x)) / 64)


@pytest.mark.nnef_export
def test_net(nnef_export, monkeypatch):
    monkeypatch.setattr(target_lowering, "check_graph", lambda *_: [])  # the release has an erratum
    rules = load_default().copy()
    rules.remove("aten::softplus")
    names = frozenset({"self", "beta", "threshold"})
    rules.add(Rule("aten::softplus", lambda g, self, beta=1, threshold=20: g.softplus(self), parameters=names))
    nnef_export(ModelExport(Net(), torch.tensor([95.0, -3.0, 2.0]), rules=rules)).assert_parity()
"""


def test_bisect_names_the_statement_that_an_engine_computes_wrongly(suite: Any) -> None:
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(test_wrong=OWN_SOFTPLUS)
    result = suite.run("--t2n-bisect", CACHE, engines=RECENT, alone=True, modules=FOR_EXPORTS)
    result.stdout.fnmatch_lines(
        [
            "*who is wrong: the engine*",
            "*first statement that the engine computes otherwise than it is defined: `* = softplus(*)`*",
            "*first wrong node: aten::softplus*",
            "*who is wrong: the engine*",
            "*to blame: the engine; this version cannot run a graph before its optimiser*",
            "by the definitions of the operators: 0 exporter errors, 1 engine error",
        ]
    )
