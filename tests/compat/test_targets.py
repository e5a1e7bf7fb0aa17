"""Targets by torch-to-nnef's names: arguments by position, versions, hooks, and a target of another engine."""

from __future__ import annotations

import copy
import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import ExportResult, InferenceTarget, KhronosNNEF, TractCheckTolerance, TractNNEF, export_model_to_nnef
from t2n_core.errors import EngineProvisionError, InputError
from t2n_core.inference_target import SemanticVersion
from tests.contract.options.exports import text_of
from tests.releases import NEWEST

TWICE = "fragment twice(x: tensor<scalar>) -> (y: tensor<scalar>)\n{\n    y = x * 2.0;\n}\n"


def exported(target: InferenceTarget, folder: Path, **options: Any) -> ExportResult:
    return export_model_to_nnef(nn.Tanh(), torch.randn(2, 4), folder / "m.tgz", target, **options)


def test_arguments_by_position() -> None:
    order = [
        "version", "feature_flags", "check_io", "dynamic_axes", "specific_tract_binary_path", "check_io_tolerance",
        "specific_properties", "dump_identity_properties", "force_attention_inner_in_f32",
        "force_linear_accumulation_in_f32", "force_norm_in_f32", "reify_sdpa_operator", "upsample_with_debox",
    ]  # fmt: skip
    parameters = inspect.signature(TractNNEF).parameters
    assert [
        name for name, parameter in parameters.items() if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ] == order
    off = [name for name in order[7:] if parameters[name].default is False]
    assert off == order[7:]
    target = TractNNEF(NEWEST, None, False, {"input": {0: "N"}}, None, TractCheckTolerance.CLOSE, {"a": "b"})
    assert (target.check_io, target.check_io_tolerance, target.specific_properties) == (False, "close", {"a": "b"})
    assert (InferenceTarget("1.0", False).check_io, KhronosNNEF("1.0.5", False).check_io) == (False, False)
    assert [level.name for level in TractCheckTolerance] == ["EXACT", "CLOSE", "APPROXIMATE", "VERY", "SUPER", "ULTRA"]


@pytest.mark.parametrize("target", [InferenceTarget, KhronosNNEF, TractNNEF])
def test_arguments_of_hooks(target: type[InferenceTarget]) -> None:
    hooks = {
        "pre_trace": ["model", "input_names", "output_names"],
        "post_trace": ["nnef_graph", "active_custom_extensions"],
        "post_export": ["model", "nnef_graph", "args", "exported_filepath", "debug_bundle_path"],
    }
    signatures = {name: list(inspect.signature(getattr(target, name)).parameters)[1:] for name in hooks}
    assert signatures == hooks
    assert inspect.signature(target.post_export).parameters["debug_bundle_path"].default is None


def test_versions_compare_as_versions() -> None:
    version = TractNNEF(SemanticVersion.from_str("0.21.13")).version
    assert version > "0.21.5"
    assert version >= "0.21.13"
    assert not version < "0.21.5"
    assert not version <= "0.21.5"
    assert sorted([version, SemanticVersion("0.9")])[0] == "0.9"
    assert (version == "0.21.13", hash(version), f"{version}") == (True, hash("0.21.13"), "0.21.13")
    for other in ("new", 3):
        with pytest.raises(InputError, match="cannot be compared"):
            assert version > other
    for wrong in (None, 0.21, ["0.21"], ""):
        with pytest.raises(InputError, match=r'is not a version(?s:.)*write it as text, such as "0\.21\.13"'):
            TractNNEF(wrong)


def test_latest() -> None:
    version = TractNNEF.latest_version(offline=True)
    assert isinstance(version, SemanticVersion)
    assert version == TractNNEF.latest(offline=True).version >= NEWEST
    assert KhronosNNEF.latest().version == KhronosNNEF().version == "1.0.5"


def test_target_of_another_engine(tmp_path: Path) -> None:
    """It has a version and a check in `post_export`, and nothing else."""
    checked: list[Path] = []

    class Mine(InferenceTarget):
        def post_export(self, model: Any, nnef_graph: Any, args: Any, exported_filepath: Path, *_: Any) -> None:
            checked.append(exported_filepath)

    result = exported(Mine("3.1"), tmp_path)
    assert checked == [result.archive]
    assert str(result.target) == "mine 3.1"
    result.archive.unlink()
    with pytest.raises(EngineProvisionError, match=r"(?s)has no engine.*override engine\(\), or check in post_export"):
        exported(InferenceTarget("3.1"), tmp_path)
    assert not result.archive.exists()
    assert exported(InferenceTarget("3.1", check_io=False), tmp_path).archive.exists()


def test_pre_trace_is_called_before_the_model(tmp_path: Path) -> None:
    class Refusing(TractNNEF):
        def pre_trace(self, *_: Any) -> None:
            raise InputError("refused")

    class Untraceable(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise AssertionError("traced")

    with pytest.raises(InputError, match="refused"):
        export_model_to_nnef(Untraceable(), torch.randn(2, 4), tmp_path / "m.tgz", Refusing(NEWEST))


@pytest.mark.parametrize("axes", [{0: 3}, {"first": "N"}, {0: "2 N"}, "N", 3])
def test_pre_trace_checks_dynamic_axes(axes: Any, tmp_path: Path) -> None:
    target = TractNNEF(NEWEST, dynamic_axes={"input": axes}, check_io=False)
    with pytest.raises(InputError, match="dynamic_axes"):
        target.pre_trace(nn.Tanh(), ["input"], None)
    with pytest.raises(InputError):
        exported(target, tmp_path)
    TractNNEF(NEWEST, dynamic_axes={"input": {0: "N"}, "output": [0]}).pre_trace(nn.Tanh(), None, None)


def test_dynamic_axes_may_name_outputs(tmp_path: Path) -> None:
    names = {"input_names": ["x"], "output_names": ["y"]}
    exported(TractNNEF(NEWEST, dynamic_axes={"x": {0: "N"}, "y": {0: "N"}}, check_io=False), tmp_path, **names)
    with pytest.raises(InputError, match="z"):
        exported(TractNNEF(NEWEST, dynamic_axes={"z": {0: "N"}}), tmp_path, **names)


def test_copies_and_attributes(tmp_path: Path) -> None:
    first = TractNNEF(NEWEST, check_io=False)
    target = first.with_dynamic_axes({"input": {0: "B"}}).with_check_io_tolerance("exact")
    target = target.with_specific_properties({"origin": "a test"})
    result = exported(target, tmp_path)
    assert (str(result.range), result.graph.properties["origin"]) == ("B >= 1", "a test")
    assert (target.check_io_tolerance, first.check_io_tolerance) == ("exact", "approximate")
    assert not first.dynamic_axes
    changed = copy.deepcopy(first)
    changed.dynamic_axes, changed.custom_extensions = {"input": {0: "B"}}, ["tract_assert B <= 16"]
    assert str(exported(changed, tmp_path).range) == "1 <= B <= 16"


class Editing(TractNNEF):
    """A target that calls a fragment, and adds an extension without the base class's ones."""

    fragments: Any

    def specific_fragments(self, model: nn.Module) -> Any:
        if isinstance(self.fragments, dict):
            return {**super().specific_fragments(model), **self.fragments}
        return self.fragments

    def post_trace(self, nnef_graph: Any, active_custom_extensions: list[str]) -> None:
        assert [operation.name for operation in nnef_graph.operations] == ["external", "tanh"]
        active_custom_extensions.append("tract_registry tract_extra")
        nnef_graph.operations[-1].name = "twice"


def test_hooks_edit_the_archive(tmp_path: Path) -> None:
    target = Editing(NEWEST, check_io=False, dynamic_axes={"input": {0: "N"}})
    target.fragments = {"twice": TWICE}
    text = text_of(exported(target, tmp_path).archive)
    extensions = ("extension tract_registry tract_extra;", "extension tract_symbol N;")
    for part in ("fragment twice(", "output = twice(input)", *extensions):
        assert part in text


@pytest.mark.parametrize(
    ("fragments", "message"),
    [
        ({"once": TWICE}, "the text of `once` declares the fragment `twice`"),
        ({"twice": "y = x * 2.0;"}, "no fragment is declared"),
        ({"twice": 3}, "3 is neither NNEF text nor a Fragment"),
        (TWICE, "neither texts by name nor a list"),
        (None, "None is neither texts by name nor a list"),
    ],
)
def test_wrong_fragments_are_refused(fragments: Any, message: str, tmp_path: Path) -> None:
    target = Editing(NEWEST, check_io=False)
    target.fragments = fragments
    with pytest.raises(InputError, match=f"specific_fragments: (?s:.)*{message}"):
        exported(target, tmp_path)
