"""The first wrong node of models with a rule, an engine or a capture that is wrong on purpose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from t2n_core.check.bisect import find_first_wrong_node
from t2n_core.engine.protocol import EngineReply
from t2n_core.errors import InputError, MeaningError
from t2n_core.export.model import ModelExport
from t2n_core.export.result import ExportResult
from t2n_core.inference_target import TractNNEF
from t2n_core.lowering import target_lowering
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Value
from t2n_core.op.registry import Registry, Rule, load_default
from t2n_core.parity.evaluation.evaluator import Evaluator
from t2n_core.parity.samples import Sample
from t2n_core.parity.stage import Author
from tests.nets import net_of
from tests.releases import NEWEST


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(5, 7), nn.Linear(7, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.first(x))
        return torch.sigmoid(self.second(hidden)) + 1


def rules_with(key: str, function: Any) -> Registry:
    rules = load_default().copy()
    rules.remove(key)
    rules.add(Rule(key, function, parameters=frozenset({"self"})))
    return rules


def exported(tmp_path: Any, version: str, rules: Registry | None = None, **options: Any) -> ExportResult:
    torch.manual_seed(3)
    export = ModelExport(Block().eval(), torch.randn(4, 5), rules=rules, **options)
    return export.to(TractNNEF(version), tmp_path / "model.nnef.tar")


def bent_tanh(g: Emitter, self: Value) -> Value:
    return g.mul(g.tanh(self), 1.01)


@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
def test_a_wrong_rule_is_named_with_its_source(tmp_path, version):
    wrong_node = find_first_wrong_node(exported(tmp_path, version, rules_with("aten::tanh", bent_tanh)))
    assert wrong_node.kind == "aten::tanh"
    assert wrong_node.origin is not None
    assert "hidden = torch.tanh(self.first(x))" in wrong_node.origin.source
    assert wrong_node.comparison is not None
    assert wrong_node.comparison.max_rel == pytest.approx(0.01, rel=1e-2)
    assert (wrong_node.blame, wrong_node.author) == ("graph", Author.EXPORTER)
    assert wrong_node.stages == ({"raw": False, "declutter": False, "optimise": False} if wrong_node.stages else {})
    text = wrong_node.describe()
    assert "first wrong node: aten::tanh" in text
    assert "= mul(" in text
    assert "to blame: the graph as exported: wrong before the engine changes anything" in text
    assert "who is wrong: the exporter: the engine computes what the archive says, which is not the model" in text


def test_what_only_fails_at_another_size_is_looked_for_there(tmp_path):
    def bent_by_size(g: Emitter, self: Value) -> Value:
        return g.mul(g.tanh(self), g.cast(g.size(self.shape[0], np.dtype(np.int64)), np.dtype(np.float32)))

    rules = rules_with("aten::tanh", lambda g, self: g.div(bent_by_size(g, self), 4.0))
    wrong_node = find_first_wrong_node(exported(tmp_path, "0.21.19", rules, dynamic_axes={"x": {0: "B"}}))
    assert wrong_node.kind == "aten::tanh"
    assert wrong_node.sizes["B"] != 4, "at the traced size the rule is right"


def test_an_archive_that_passes_has_none(tmp_path):
    with pytest.raises(InputError, match="passes"):
        find_first_wrong_node(exported(tmp_path, NEWEST))


def replace_samples(result: Any, samples: list[Sample]) -> None:
    result.reference._samples = dict.fromkeys(result.reference._samples, samples)


def test_a_capture_that_computes_something_else_is_blamed(tmp_path):
    result = exported(tmp_path, NEWEST)
    replace_samples(result, [Sample(sample.inputs, tuple(y + 1 for y in sample.expected)) for sample in result.samples])
    wrong_node = find_first_wrong_node(result)
    assert wrong_node.blame == "capture"
    assert "captured graph" in wrong_node.describe()


def test_rounding_is_not_called_a_wrong_capture(tmp_path):
    result = exported(tmp_path, NEWEST)
    near = [
        Sample(sample.inputs, tuple(y * np.float32(1 + 2e-6) for y in sample.expected)) for sample in result.samples
    ]
    replace_samples(result, near)
    wrong_node = find_first_wrong_node(result, "exact")
    assert wrong_node.blame == "rounding"
    assert "rounding: PyTorch itself" in wrong_node.describe()


class Optimising:
    """An engine whose optimiser drops the factor of a `tanh` that is not shown: what is shown cannot be fused."""

    name, version, runs_stages, kept_states = "tract", "0.21.19", True, None

    def __init__(self, real: Any, dies: bool = False) -> None:
        self.real, self.dies = real, dies

    def run(self, archive: Any, batches: Any, *, timeout: float = 60.0, stage: str = "optimise") -> EngineReply:
        reply: EngineReply = self.real.run(archive, batches, timeout=timeout, stage=stage)
        text = (archive / "graph.nnef").read_text() if archive.is_dir() else "the whole"
        if stage != "optimise" or ("sigmoid" not in text and text != "the whole"):
            return reply
        if self.dies:
            return EngineReply("crash", "optimise", "panicked at fuse.rs: no such axis")
        if len(reply.outputs[0]) > 1:
            return reply
        return EngineReply("ok", "run", outputs=(tuple(y + 0.5 for y in reply.outputs[0]),))


@pytest.mark.parametrize("dies", [False, True])
def test_an_optimiser_that_errs_only_when_nothing_is_shown(tmp_path, monkeypatch, dies):
    result = exported(tmp_path, "0.21.19")
    engine = Optimising(result.target.engine(), dies)
    monkeypatch.setattr(type(result.target), "engine", lambda self: engine)
    wrong_node = find_first_wrong_node(result)
    assert wrong_node.kind == "aten::sigmoid"
    assert (wrong_node.blame, wrong_node.author) == ("optimise", None if dies else Author.ENGINE)
    assert dict(wrong_node.stages) == {"raw": True, "declutter": True, "optimise": False}
    assert ("panicked at fuse.rs" in wrong_node.describe()) == dies


@pytest.mark.parametrize(("version", "blame"), [("0.21.19", "operator"), (NEWEST, "engine")])
def test_an_operator_that_the_engine_computes_wrongly_is_the_engines(tmp_path, monkeypatch, version, blame):
    """`softplus` of tract is infinite for large inputs, and the exporter writes other operators in its place."""

    def own_softplus(g: Emitter, self: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
        return g.softplus(self)

    rules = load_default().copy()
    rules.remove("aten::softplus")
    rules.add(Rule("aten::softplus", own_softplus, parameters=frozenset({"self", "beta", "threshold"})))
    monkeypatch.setattr(target_lowering, "check_graph", lambda *_: [])
    net = net_of(lambda _, x: torch.tanh(nn.functional.softplus(torch.abs(x)) / 64))
    export = ModelExport(net, torch.tensor([95.0, -3.0, 2.0]), rules=rules)
    wrong_node = find_first_wrong_node(export.to(TractNNEF(version, check_io=False), tmp_path / "model"))
    assert (wrong_node.kind, wrong_node.blame, wrong_node.author) == ("aten::softplus", blame, Author.ENGINE)
    assert "who is wrong: the engine: by the definitions of its operators" in wrong_node.describe()


def test_an_archive_that_cannot_be_evaluated_has_no_author_of_a_node(tmp_path, monkeypatch):
    def refuse(*_: Any, **__: Any) -> Any:
        raise MeaningError("the evaluation took longer than 10 seconds")

    result = exported(tmp_path, NEWEST, rules_with("aten::tanh", bent_tanh))
    monkeypatch.setattr(Evaluator, "evaluate", refuse)
    wrong_node = find_first_wrong_node(result)
    assert (wrong_node.kind, wrong_node.blame) == ("aten::tanh", "")
    assert "who is wrong: not known, since the evaluation took longer than 10 seconds" in wrong_node.describe()
