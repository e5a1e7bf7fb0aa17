"""Linear attention of transformers in the engine: as the library computes it, token by token and in chunks of 64."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.rewriter.builtin.delta_rule import MODULES, OPERATOR
from tests.releases import NEWEST

if importlib.util.find_spec("transformers") is None:
    pytest.skip("transformers is not installed; `tox -e models` has it", allow_module_level=True)
importlib.import_module("conformance.cases.models.libraries")

TARGET = TractNNEF(NEWEST)
LENGTHS = (1, 2, 3, 7, 64, 65, 130)
KEYS, GROUPS, WIDTH, KERNEL = 2, 2, 8, 4
HEADS = KEYS * GROUPS


class Rule(nn.Module):
    """The library's functions, called as its layers do."""

    def __init__(self, module: str, has_state: bool, **options: Any) -> None:
        super().__init__()
        self.module, self.has_state = importlib.import_module(module), has_state
        self.options = {"use_qk_l2norm_in_kernel": True, **options}

    def forward(self, q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor) -> Any:
        if self.has_state and q.shape[1] == 1:
            return self.one_by_one(q, k, v, g, beta, state)
        return self.call(self.module.torch_chunk_gated_delta_rule, q, k, v, g, beta, state)

    def one_by_one(self, *given: Tensor) -> Any:
        """Return what the library's function for single tokens gives for a sequence."""
        return self.call(self.module.torch_recurrent_gated_delta_rule, *given)

    def call(self, rule: Any, q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor) -> Any:
        before = state if self.has_state else None
        return rule(q, k, v, g=g, beta=beta, initial_state=before, output_final_state=True, **self.options)


class Convolution(nn.Module):
    """The convolution of a sequence after others, called as the layers do."""

    def __init__(self, module: str, **options: Any) -> None:
        super().__init__()
        self.module, self.options = importlib.import_module(module), options
        self.weight = nn.Parameter(numbers(6, KERNEL))

    def forward(self, x: Tensor, state: Tensor) -> Any:
        last = state.clone()
        if x.shape[-1] == 1:
            return self.module.causal_conv1d_update(x, last, self.weight, **self.options), last
        joined = torch.cat([last, x], dim=-1)
        last.copy_(joined[..., -KERNEL:])
        output = self.module.causal_conv1d_fn(joined, self.weight, **self.options)
        return output[:, :, -x.shape[-1] :], last


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def sequence(batch: int, length: int, width: int = WIDTH) -> tuple[Tensor, ...]:
    """Arguments of the rule: the decay is that of a layer, from nearly none to all."""
    query, key = (numbers(batch, length, KEYS, width, seed=seed) for seed in (1, 2))
    decay = -(numbers(batch, length, HEADS, seed=3) * 2).exp()
    beta, state = numbers(batch, length, HEADS, seed=4).sigmoid(), numbers(batch, HEADS, width, WIDTH, seed=5)
    return query, key, numbers(batch, length, HEADS, WIDTH), decay, beta, state


def has_operator(result: Any) -> bool:
    return OPERATOR in {operation.name for operation in result.graph.operations}


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("has_state", [True, False])
def test_the_rule_is_that_of_the_library(module: str, has_state: bool, tmp_path: Path) -> None:
    model = Rule(module, has_state)
    names = [*"qkvgb", "s"][: 5 + has_state]
    axes = {name: {0: "B", 1: "S"} for name in names[:5]} | ({"s": {0: "B"}} if has_state else {})
    example = sequence(2, 5)
    call = model if has_state else _WithoutState(model)
    export = ModelExport(call, example[: len(names)], input_names=names, dynamic_axes=axes)
    result = export.to(TARGET, tmp_path / "rule.nnef.tgz")
    assert has_operator(result)
    assert str(result.range) == "B >= 1, S >= 1"
    for batch in (1, 2):
        for length in LENGTHS:
            inputs = sequence(batch, length)
            reply = TARGET.engine().run(result.archive, [[x.numpy() for x in inputs[: len(names)]]])
            for got, one_by_one, in_chunks in zip(
                reply.outputs[0], model.one_by_one(*inputs), model(*inputs), strict=True
            ):
                np.testing.assert_allclose(got, one_by_one.numpy(), atol=3e-6, rtol=1e-5)
                np.testing.assert_allclose(got, in_chunks.numpy(), atol=1e-4, rtol=1e-4)  # the chunks round more


class _WithoutState(nn.Module):
    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self.rule = rule

    def forward(self, q: Tensor, k: Tensor, v: Tensor, g: Tensor, b: Tensor) -> Any:
        return self.rule(q, k, v, g, b, q)


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("options", [{"activation": "silu"}, {"bias": numbers(6)}], ids=["silu", "bias"])
def test_the_convolution_is_that_of_the_library(module: str, options: Any, tmp_path: Path) -> None:
    model = Convolution(module, **options).eval()
    example = (numbers(2, 6, 5), numbers(2, 6, KERNEL))
    axes = {"x": {0: "B", 2: "S"}, "s": {0: "B"}}
    result = ModelExport(model, example, input_names=["x", "s"], dynamic_axes=axes).to(TARGET, tmp_path / "c.nnef.tgz")
    assert str(result.range) == "B >= 1, S >= 1"
    for batch in (1, 2):
        for length in LENGTHS:
            inputs = (numbers(batch, 6, length), numbers(batch, 6, KERNEL, seed=7))
            reply = TARGET.engine().run(result.archive, [[x.numpy() for x in inputs]])
            with torch.no_grad():
                expected = model(*inputs)
            for got, reference in zip(reply.outputs[0], expected, strict=True):
                np.testing.assert_allclose(got, reference.numpy(), atol=3e-6, rtol=1e-5)


class Activated(nn.Module):
    """Activations in front of the rule, as in a layer; the keys are of one tensor with the queries."""

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self.rule = rule

    def forward(self, qk: Tensor, v: Tensor, g: Tensor, b: Tensor, s: Tensor) -> Any:
        q, k = F.silu(qk).chunk(2, 2)
        return *self.rule(q, k, F.silu(v), g, b.sigmoid(), s), v.sigmoid()


def test_activations_in_front_of_the_rule_are_no_kernels_that_slow_it(tmp_path: Path) -> None:
    q, k, v, g, b, s = sequence(2, 5)
    extremes = torch.tensor([200.0, -200.0, float("inf"), -float("inf")])
    b.reshape(-1)[:4] = extremes
    axes = {name: {0: "B", 1: "S"} for name in ("qk", "v", "g", "b")} | {"s": {0: "B"}}
    example = (torch.cat([q, k], 2), v, g, b, s)
    export = ModelExport(
        Activated(Rule(MODULES[0], True)), example, input_names=["qk", "v", "g", "b", "s"], dynamic_axes=axes
    )
    result = export.to(TARGET, tmp_path / "rule.nnef.tgz")
    assert [operation.name for operation in result.graph.operations].count("sigmoid") == 1  # what no rule computes from
    assert has_operator(result)
    result.assert_parity("approximate")


def test_the_same_operations_may_come_after_the_sigmoid(tmp_path: Path) -> None:
    class Both(Rule):
        def forward(self, *inputs: Tensor) -> Any:  # type: ignore[override]
            q, k, v, g, b, s = inputs
            beta, powers = b.sigmoid(), torch.exp(-b)
            return *super().forward(q, k, v, -g.abs(), beta, s), powers, 1 / (1 + powers)  # a decay is at most 0

    result = ModelExport(Both(MODULES[0], True), sequence(2, 5)).to(TARGET, tmp_path / "rule.nnef.tgz")
    assert has_operator(result)
    result.assert_parity("approximate")


def test_what_the_operator_does_not_compute_stays(tmp_path: Path) -> None:
    """Vectors of their own length, keys of another width than the values, and older releases."""
    module, example = MODULES[0], sequence(1, 5)
    cases: list[tuple[nn.Module, tuple[Tensor, ...], TractNNEF]] = [
        (Rule(module, True, use_qk_l2norm_in_kernel=False), example, TARGET),
        (Rule(module, True), sequence(1, 5, width=4), TARGET),
        (Rule(module, True), example, TractNNEF("0.22.4")),
        (Rule(module, True), example, TractNNEF("0.23.3")),
    ]
    for model, inputs, target in cases:
        result = ModelExport(model.eval(), inputs).to(target, tmp_path / "plain.nnef.tgz")
        assert not has_operator(result)
        result.assert_parity("approximate")
