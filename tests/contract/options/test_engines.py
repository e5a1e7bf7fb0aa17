"""Options that choose the engine, on real engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import KhronosNNEF, ModelExport, TractFeatureFlag, TractNNEF, export_model_to_nnef
from t2n_core.engine import ResolvedEngine
from t2n_core.errors import EngineRunError, InputError, LowerError, ParityError, SpecError, UnsupportedOpsError
from tests.contract.options.exports import Attention, Two, every_line, exported, operators, own_relu, text_of
from tests.releases import NEWEST, RECENT
from tests.tract_cli import make_cli


@pytest.mark.parametrize(
    ("expected", "found"),
    [("0.21.13", "0.21.13"), ("0.21", "0.21.19"), (">=0.20.4,<0.21", "0.20.22"), ("~=0.22.1", "0.22.4")],
)
def test_version(expected: str, found: str, tmp_path: Path) -> None:
    target = TractNNEF(expected)
    assert target.version == found
    outcome = exported(nn.Linear(4, 3), torch.randn(2, 4), target, tmp_path).assert_parity()
    assert outcome.engine == f"tract {found}"


def test_registries(tmp_path: Path) -> None:
    """Attention is its own operator where the product has `transformers`, and a formula of `tract_core` elsewhere."""
    args = tuple(torch.randn(2, 3, 5, 4) for _ in range(3))
    for registries, has_operator in (
        (["transformers"], True),
        ("default", True),
        (["extra", "pulse"], False),
        ([], False),
    ):
        target = TractNNEF("0.22.4", registries=registries, reify_sdpa_operator=True)
        result = exported(Attention(), args, target, tmp_path)
        assert ("tract_transformers_sdpa" in operators(result)) == has_operator
        assert ("tract_registry tract_transformers" in text_of(result.archive)) == has_operator
        note = "`tract_transformers_sdpa` belongs to tract_transformers, which the target's `registries` exclude"
        assert any(note in text for text in result.notes) != has_operator
        result.assert_parity()


@pytest.mark.parametrize(
    ("options", "own"),
    [
        ({"feature_flags": set()}, True),
        ({"feature_flags": {TractFeatureFlag.PULSE}}, True),
        ({"registries": ["pulse"], "feature_flags": {TractFeatureFlag.TRANSFORMERS}}, True),
        ({"registries": [], "feature_flags": "default"}, True),
        ({"registries": [], "feature_flags": {"pulse"}}, False),
    ],
)
def test_feature_flags(options: dict[str, Any], own: bool, tmp_path: Path) -> None:
    """They add to the registries, of which the releases on PyPI have all."""
    target = TractNNEF("0.22.4", reify_sdpa_operator=True, **options)
    result = exported(Attention(), tuple(torch.randn(2, 3, 5, 4) for _ in range(3)), target, tmp_path)
    assert ("tract_transformers_sdpa" in operators(result)) == own
    useless = options == {"feature_flags": {TractFeatureFlag.PULSE}}
    assert any("feature_flags had no effect" in note for note in result.notes) == useless


def test_registries_are_kept_by_own_rules_and_extensions(tmp_path: Path) -> None:
    rules = own_relu(lambda g, x: g.tract_transformers_silu(x))
    with pytest.raises(UnsupportedOpsError, match="add 'transformers' to feature_flags or registries"):
        exported(nn.ReLU(), torch.randn(2, 3), TractNNEF("0.21.19", registries=[]), tmp_path, rules=rules)
    target = TractNNEF("0.21.19", registries=[], custom_extensions=["tract_registry tract_onnx"])
    with pytest.raises(SpecError, match="`registries` exclude"):
        exported(nn.ReLU(), torch.randn(2, 3), target, tmp_path)
    for wrong, message in (("complex", "no complex tensors"), (["transformer"], "one or more of default, onnx")):
        for option in ("feature_flags", "registries"):
            with pytest.raises(InputError, match=f"(?s){option}: .*{message}"):
                TractNNEF("0.21.19", **{option: wrong})


@every_line
def test_specific_tract_binary_path(
    version: str, resolved_engine: Callable[[str], ResolvedEngine], tmp_path: Path
) -> None:
    """No wheel holds the command line: the program of `tests/tract_cli.py` stands for it, over the real library."""
    program = make_cli(tmp_path, resolved_engine(version))
    target = TractNNEF(specific_tract_binary_path=program, dynamic_axes={"x": {1: "T"}, "y": {1: "T"}})
    assert target.version == version
    args = (torch.randn(2, 5, 3), torch.randn(2, 5, 3))
    outcome = exported(Two(), args, target, tmp_path).assert_parity()
    assert len(outcome.sizes) >= 4
    float16 = nn.Linear(4, 3).half()
    target = TractNNEF(specific_tract_binary_path=program, check_io_tolerance="approximate")
    exported(float16, torch.randn(2, 4).half(), target, tmp_path).assert_parity()


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        ("outputs[0].reshape(-1)[3] += 1", ParityError, "1 of 1 outputs differ"),
        ("outputs[0] = outputs[0].astype('f8')", ParityError, "dtype float64, expected float32"),
        ("sys.exit(1)", EngineRunError, "status 1"),
    ],
)
def test_a_wrong_tract_binary_is_caught(
    spoil: str, error: type[Exception], message: str, resolved_engine: Any, tmp_path: Path
) -> None:
    """Its output is compared by us, and its exit status is read."""
    target = TractNNEF(specific_tract_binary_path=make_cli(tmp_path, resolved_engine(NEWEST), spoil=spoil))
    with pytest.raises(error, match=message):
        exported(nn.Tanh(), torch.randn(2, 4), target, tmp_path).assert_parity()


def test_a_tract_binary_of_another_version_is_refused(resolved_engine: Any, tmp_path: Path) -> None:
    program = make_cli(tmp_path, resolved_engine(RECENT))
    assert TractNNEF("0.23", specific_tract_binary_path=program).version == RECENT
    with pytest.raises(InputError, match=r"is tract 0\.23\.9, not the requested version 0\.21\.19"):
        _ = TractNNEF("0.21.19", specific_tract_binary_path=program).version


def test_engine_and_offline(resolved_engine: Callable[[str], ResolvedEngine], tmp_path: Path) -> None:
    model, x = nn.Linear(4, 3), torch.randn(2, 4)
    engine = resolved_engine("0.21.19")
    target = TractNNEF(engine=engine)
    assert exported(model, x, target, tmp_path).assert_parity().engine == f"tract {engine.version}"
    exported(model, x, TractNNEF("0.21.19", offline=True), tmp_path).assert_parity()
    with pytest.raises(InputError, match="either an engine or"):
        TractNNEF(engine=engine, specific_tract_binary_path="tract")


@pytest.mark.parametrize("several", ["0.21,0.23", "all-minors", "all", "0.21.19, >=0.23"])
def test_a_target_of_several_releases_is_refused(several: str) -> None:
    with pytest.raises(InputError, match="takes one version") as refused:
        assert TractNNEF(several, offline=True).version
    assert "--t2n-tract" in refused.value.hint


def test_version_of_khronos(tmp_path: Path) -> None:
    target = KhronosNNEF(version="1.0.5")
    outcome = ModelExport(nn.Softplus(), torch.randn(2, 4)).to(target, tmp_path / "m.tgz").assert_parity()
    assert outcome.engine == "khronos 1.0.5"
    for version in ("2.0", "0.9"):
        with pytest.raises(SpecError, match=r"khronos (2\.0|0\.9)"):
            ModelExport(nn.ReLU(), torch.randn(2, 4)).to(KhronosNNEF(version), tmp_path / "n.tgz")


def test_check_io_of_khronos(tmp_path: Path) -> None:
    model, args, path = nn.LayerNorm(300).eval(), torch.randn(3, 300) * 100, tmp_path / "model.nnef.tgz"
    with pytest.raises(ParityError, match="beyond `exact`"):
        export_model_to_nnef(model, args, path, KhronosNNEF(check_io_tolerance="exact"))
    assert not path.exists()
    export_model_to_nnef(model, args, path, KhronosNNEF(check_io=False, check_io_tolerance="exact"))
    export_model_to_nnef(model, args, path, KhronosNNEF())


def test_khronos_has_no_dynamic_axes(tmp_path: Path) -> None:
    target = KhronosNNEF(dynamic_axes={"input": {0: "B"}})
    with pytest.raises(LowerError, match=r"NNEF 1\.0 has fixed sizes only"):
        ModelExport(nn.ReLU(), torch.randn(2, 4)).to(target, tmp_path / "m.tgz")
