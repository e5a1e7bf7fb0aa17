"""The first wrong node of decoders whose archive, or whose export, is wrong on purpose."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from t2n_core.check.generation.first_wrong import find_first_wrong_step
from t2n_core.errors import InputError
from t2n_core.export.model import ModelExport
from t2n_core.export.result import ExportResult
from t2n_core.inference_target import TractNNEF
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Value
from t2n_core.nnef.sizes.dims import maximum
from t2n_core.op.registry import Registry, Rule, load_default
from tests.nets import TinyDecoder
from tests.releases import NEWEST


class Squashed(TinyDecoder):
    """Squashes the values that it hands on, and so no number of the step itself."""

    def forward(self, tokens: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> Any:
        logits, keys, values = super().forward(tokens, keys, values)
        return logits, keys, torch.tanh(values)


def wrong_from_ten(g: Emitter, self: Value) -> Value:
    """Write a tanh that grows with the tokens that have come, from the tenth one on."""
    size = g.cast(g.size(maximum(self.shape[2], 9), np.dtype(np.int64)), np.dtype(np.float32))
    return g.mul(g.tanh(self), g.div(size, 9.0))


def bent(function: Any) -> Registry:
    rules = load_default().copy()
    rules.remove("aten::tanh")
    rules.add(Rule("aten::tanh", function, parameters=frozenset({"self"})))
    return rules


def exported(folder: Path, version: str, rules: Registry | None = None) -> ExportResult:
    torch.manual_seed(4)
    net = Squashed().eval()
    for weight in net.parameters():
        nn.init.normal_(weight, std=0.7)
    call = {"tokens": torch.randint(0, 23, (1, 3)), **{name: torch.randn(1, 1, 5, 8) for name in ("keys", "values")}}
    export = ModelExport(net, call, state={"keys": 1, "values": 2}, dynamic_axes={"tokens": {1: "S"}}, rules=rules)
    return export.to(TractNNEF(version, check_io=False), folder / "model.nnef.tar")


@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
def test_a_wrong_state_is_found_in_the_step_that_makes_it(version: str, tmp_path: Path) -> None:
    """With a prompt of seven tokens the state behind step 3 is the first one of ten; step 4 is the first to read it."""
    wrong_step = find_first_wrong_step(exported(tmp_path, version, bent(wrong_from_ten)), [[3, 5, 1, 4, 8, 0, 2]], 8)
    assert wrong_step.shown.step == 4
    assert wrong_step.step == 3
    assert wrong_step.node is not None
    assert wrong_step.node.kind == "aten::tanh"
    assert wrong_step.node.sizes == {"P": 9, "S": 1}
    assert "wrong although its inputs are right: step 3" in wrong_step.describe()
    assert "first wrong node" in wrong_step.describe()


def test_a_reference_of_another_model_is_no_wrong_node(tmp_path: Path) -> None:
    result = exported(tmp_path, NEWEST)

    class Other(nn.Module):
        """Generates the same token for ever, in the words of transformers."""

        generation_config = SimpleNamespace()

        def generate(self, prompt: torch.Tensor, max_new_tokens: int, **_: Any) -> Any:
            logits = [torch.eye(23)[:1]] * max_new_tokens
            tokens = torch.zeros(1, max_new_tokens, dtype=torch.int64)
            return SimpleNamespace(sequences=torch.cat([prompt, tokens], 1), logits=logits)

    wrong_step = find_first_wrong_step(result, [[3, 5]], 4, model=Other())
    assert (wrong_step.shown.step, wrong_step.step, wrong_step.node) == (0, None, None)
    assert "generates other tokens than the reference model" in wrong_step.describe()


def test_a_generation_that_passes_has_no_wrong_step(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="every step passes"):
        find_first_wrong_step(exported(tmp_path, NEWEST), [[3, 5, 1]], 4)
