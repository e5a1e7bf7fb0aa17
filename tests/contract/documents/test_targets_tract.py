"""The items of the document on targets that are about TractNNEF, in its order; see `test_targets.py`."""

from __future__ import annotations

import getpass
import inspect
import platform
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import (
    ExportResult,
    InferenceTarget,
    ModelExport,
    TractCheckTolerance,
    TractFeatureFlag,
    TractNNEF,
    export_model_to_nnef,
)
from t2n_core.errors import InputError, ParityError
from t2n_core.inference_target import SemanticVersion
from t2n_core.nnef.graph import Graph
from tests.contract.options.exports import Attention, text_of
from tests.tract_cli import make_cli

DIFFERS = {
    "tract_version_is_required": "the newest release by default",
    "complex_can_be_added": "refused: this exporter writes no complex tensors, and no release since 0.20 has them",
    "the_check_runs_the_command_line": "the library of the wheel runs, which every release has on PyPI; a command line "
    "by specific_tract_binary_path",
    "identity_is_written_by_default": "off by default: the same model gives the same bytes, without a user's name",
    "bundle_only_if_the_check_fails": "written whenever requested by debug_bundle_path: a pass is a test case too",
    "post_trace_adds_dynamic_axes": "the captured graph has them from the beginning; post_trace adds extensions",
    "specific_fragments_write_properties": "properties are part of the graph; the writer makes the fragment of them",
}
"""Item -> why it does not hold as written; the page on moving from torch-to-nnef shows these."""

VERSION = "0.23.9"
ORDER = [
    "version", "feature_flags", "check_io", "dynamic_axes", "specific_tract_binary_path", "check_io_tolerance",
    "specific_properties", "dump_identity_properties", "force_attention_inner_in_f32",
    "force_linear_accumulation_in_f32", "force_norm_in_f32", "reify_sdpa_operator", "upsample_with_debox",
]  # fmt: skip


def tract(**options: Any) -> TractNNEF:
    return TractNNEF(VERSION, offline=True, **options)


def exported(target: InferenceTarget, path: Path, model: nn.Module | None = None, **options: Any) -> ExportResult:
    net = nn.Tanh() if model is None else model
    return export_model_to_nnef(net.eval(), torch.randn(2, 4), path / "m.tgz", target, **options)


def lowered(target: TractNNEF, model: nn.Module, *args: torch.Tensor) -> Graph:
    return ModelExport(model.eval(), args).lower(target)


def names_in(graph: Graph) -> list[str]:
    return [operation.name for operation in graph.operations]


def default_of(option: str) -> Any:
    return inspect.signature(TractNNEF).parameters[option].default


class WrongTract(TractNNEF):
    """A target that writes another operator than the model has."""

    def post_trace(self, nnef_graph: Graph, active_custom_extensions: list[str]) -> None:
        super().post_trace(nnef_graph, active_custom_extensions)
        nnef_graph.operations[-1].name = "exp"


def test_arguments_are_in_the_order_of_the_document() -> None:
    """`TractNNEF(version, feature_flags, check_io, dynamic_axes, ...)`, all of them by position."""
    found = inspect.signature(TractNNEF).parameters
    assert [name for name, one in found.items() if one.kind is one.POSITIONAL_OR_KEYWORD] == ORDER
    target = TractNNEF(VERSION, None, False, {"input": {0: "N"}}, None, TractCheckTolerance.CLOSE, {"a": "b"})
    assert (target.check_io, target.check_io_tolerance, target.specific_properties) == (False, "close", {"a": "b"})


def test_tract_is_a_target() -> None:
    """`TractNNEF` bases InferenceTarget."""
    assert TractNNEF.__mro__[1] is InferenceTarget


def test_tract_version_is_required_differs() -> None:
    """`version` is required."""
    assert default_of("version") == "latest"


@pytest.mark.parametrize("version", [VERSION, SemanticVersion(VERSION)])
def test_version_is_the_one_targeted_for_export(version: str) -> None:
    """`version: Union[str, SemanticVersion]` is the tract version that is targeted."""
    target = TractNNEF(version, offline=True)
    assert (target.version, str(target.spec.version)) == (VERSION, VERSION)


def test_feature_flags_are_an_optional_set() -> None:
    """`feature_flags: Optional[Set[TractFeatureFlag]] = None`."""
    assert default_of("feature_flags") is None
    for given in (None, set(), {TractFeatureFlag.PULSE}):
        assert tract(feature_flags=given).feature_flags == (given or set())


def test_feature_flags_are_added() -> None:
    """They are added: an empty set is tract as it is."""
    args = tuple(torch.randn(2, 3, 5, 4) for _ in range(3))
    for flags in (None, set(), {TractFeatureFlag.PULSE}):
        found = names_in(lowered(tract(feature_flags=flags, reify_sdpa_operator=True), Attention(), *args))
        assert "tract_transformers_sdpa" in found
    with pytest.raises(InputError, match=r"feature_flags: (?s:.)*one or more of default, onnx"):
        tract(feature_flags={"complexes"})


def test_complex_can_be_added_differs() -> None:
    """For example complex numbers."""
    with pytest.raises(InputError, match=r"feature_flags: (?s:.)*no release on PyPI since 0\.20(?s:.)*view_as_real"):
        tract(feature_flags={TractFeatureFlag.COMPLEX})


def test_check_io_compares_the_engine_with_pytorch(tmp_path: Path) -> None:
    """`check_io: bool = True` checks that the outputs are similar."""
    assert default_of("check_io") is True
    with pytest.raises(ParityError):
        exported(WrongTract(VERSION, offline=True), tmp_path)
    exported(WrongTract(VERSION, check_io=False, offline=True), tmp_path)


def test_the_check_runs_the_command_line_differs() -> None:
    """The check is one of the tract command line."""
    assert tract().resolved.kind == "wheel"


def test_sizes_are_those_of_the_arguments_without_dynamic_axes() -> None:
    """`dynamic_axes: Optional[Dict[str, Dict[int, str]]] = None`: shapes exactly match those given in args."""
    assert default_of("dynamic_axes") is None
    assert lowered(tract(), nn.Tanh(), torch.randn(2, 4)).inputs[0].shape == (2, 4)


@pytest.mark.parametrize(("axes", "symbol"), [({0: "N"}, "N"), ([0], "input_dim0")])
def test_dynamic_axes_are_a_dict_or_a_list(axes: Any, symbol: str, tmp_path: Path) -> None:
    """A value is a dict from axis to name, or a list of axes."""
    result = exported(tract(dynamic_axes={"input": axes}, check_io=False), tmp_path)
    assert f"external(shape = [{symbol}, 4])" in text_of(result.archive)


def test_dynamic_axes_name_inputs_or_outputs(tmp_path: Path) -> None:
    """Each key is the name of an input or output, as in input_names or output_names."""
    names = {"input_names": ["x"], "output_names": ["y"]}
    exported(tract(dynamic_axes={"x": {0: "N"}, "y": {0: "N"}}, check_io=False), tmp_path, **names)
    with pytest.raises(InputError, match="z"):
        exported(tract(dynamic_axes={"z": {0: "N"}}), tmp_path, **names)


def test_specific_tract_binary_path_is_a_command_line(tmp_path: Path) -> None:
    """`specific_tract_binary_path: Optional[Path] = None` is the tract command line of a custom release."""
    target = TractNNEF(VERSION, specific_tract_binary_path=make_cli(tmp_path, tract().resolved))
    exported(target, tmp_path)
    assert target.resolved.kind == "cli"


def test_check_io_tolerance_is_approximate() -> None:
    """`check_io_tolerance: TractCheckTolerance = APPROXIMATE` is the level of difference that is tolerated."""
    assert default_of("check_io_tolerance") == TractCheckTolerance.APPROXIMATE
    assert tract(check_io_tolerance=TractCheckTolerance.EXACT).check_io_tolerance == "exact"


def test_levels_are_those_of_tract() -> None:
    """The levels are those that tract defines."""
    assert [level.name for level in TractCheckTolerance] == ["EXACT", "CLOSE", "APPROXIMATE", "VERY", "SUPER", "ULTRA"]


def test_specific_properties_are_written(tmp_path: Path) -> None:
    """`specific_properties: Optional[Dict[str, str]] = None` are tract properties inside the asset."""
    assert default_of("specific_properties") is None
    written = text_of(exported(tract(specific_properties={"team": "speech"}), tmp_path).archive)
    assert "fragment tract_core_properties" in written
    assert '("team", "speech")' in written


def test_identity_is_written_by_default_differs(tmp_path: Path) -> None:
    """`dump_identity_properties: bool = True`."""
    assert "properties" not in text_of(exported(tract(check_io=False), tmp_path).archive)


def test_identity_is_host_user_and_system(tmp_path: Path) -> None:
    """`dump_identity_properties` adds host, username, OS and versions."""
    written = text_of(exported(tract(dump_identity_properties=True), tmp_path).archive)
    for name, value in (
        ("host", platform.node()), ("user", getpass.getuser()), ("os", platform.platform()),
        ("python", platform.python_version()), ("torch", torch.__version__.partition("+")[0]),
    ):  # fmt: skip
        assert f'("export_{name}", "{value}' in written


def casts_to_f32(graph: Graph) -> int:
    return sum(one.name == "tract_core_cast" and str(one.outputs[0].dtype) == "float32" for one in graph.operations)


def test_force_attention_inner_in_f32() -> None:
    """`force_attention_inner_in_f32: bool = False`: attention is float32 inside, even if inputs are float16."""
    assert default_of("force_attention_inner_in_f32") is False
    args = tuple(torch.randn(2, 3, 5, 4).half() for _ in range(3))
    found = {}
    for forced in (False, True):
        target = tract(reify_sdpa_operator=True, force_attention_inner_in_f32=forced)
        graph = lowered(target, Attention(), *args)
        (operation,) = [one for one in graph.operations if one.name == "tract_transformers_sdpa"]
        found[forced] = operation.arguments
    assert found[False] != found[True]
    assert "f32" in found[True].values()


def casts(option: str, model: nn.Module, x: torch.Tensor) -> tuple[int, int]:
    plain, forced = (casts_to_f32(lowered(tract(**{option: value}), model.half(), x.half())) for value in (False, True))
    return plain, forced


def test_force_linear_accumulation_in_f32() -> None:
    """`force_linear_accumulation_in_f32: bool = False`: float16 products have float32 accumulators."""
    assert default_of("force_linear_accumulation_in_f32") is False
    plain, forced = casts("force_linear_accumulation_in_f32", nn.Linear(4, 3), torch.randn(2, 4))
    assert plain == 0 < forced


def test_force_norm_in_f32() -> None:
    """`force_norm_in_f32: bool = False`: all norms are float32, the batch norm on its input too."""
    assert default_of("force_norm_in_f32") is False
    plain, forced = casts("force_norm_in_f32", nn.BatchNorm1d(4), torch.randn(2, 4, 5))
    assert forced == plain + 1
    assert casts_to_f32(lowered(tract(), nn.LayerNorm(5).half(), torch.randn(2, 5).half())) > 0


def test_reify_sdpa_operator() -> None:
    """`reify_sdpa_operator: bool = False`: scaled_dot_product_attention is a tract operator."""
    assert default_of("reify_sdpa_operator") is False
    args = tuple(torch.randn(2, 3, 5, 4) for _ in range(3))
    for reified in (False, True):
        graph = lowered(tract(reify_sdpa_operator=reified), Attention(), *args)
        assert ("tract_transformers_sdpa" in names_in(graph)) == reified


def test_upsample_with_debox() -> None:
    """`upsample_with_debox: bool = False`: upsampling is a debox and no deconvolution."""
    assert default_of("upsample_with_debox") is False
    for chosen in (False, True):
        graph = lowered(tract(upsample_with_debox=chosen), nn.Upsample(scale_factor=2), torch.randn(1, 3, 4, 5))
        assert ("debox" in names_in(graph)) == chosen


def test_post_export_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`TractNNEF.post_export` performs the check."""
    runs: list[Any] = []
    monkeypatch.setattr(ExportResult, "assert_parity", lambda *given: runs.append(given))

    class Seen(TractNNEF):
        def post_export(self, *given: Any) -> None:
            assert not runs
            super().post_export(*given)
            assert len(runs) == 1

    exported(Seen(VERSION, offline=True), tmp_path)
    assert len(runs) == 1


def test_bundle_only_if_the_check_fails_differs(tmp_path: Path) -> None:
    """`TractNNEF.post_export` builds a debug bundle if the check fails."""
    exported(tract(), tmp_path, debug_bundle_path=tmp_path / "passed")
    with pytest.raises(ParityError):
        exported(WrongTract(VERSION, offline=True), tmp_path, debug_bundle_path=tmp_path / "failed")
    assert all((tmp_path / name).is_dir() for name in ("passed", "failed"))


def test_post_trace_adds_dynamic_axes_differs(tmp_path: Path) -> None:
    """`TractNNEF.post_trace` adds dynamic axes to the NNEF graph."""

    class Without(TractNNEF):
        def post_trace(self, nnef_graph: Graph, active_custom_extensions: list[str]) -> None:
            """Leave out what the base class adds."""

    target = Without(VERSION, dynamic_axes={"input": {0: "N"}}, check_io=False)
    assert "extension tract_symbol N;" in text_of(exported(target, tmp_path).archive)


@pytest.mark.parametrize("axes", [{0: 3}, {"first": "N"}, {0: "2 N"}, "N", 3])
def test_pre_trace_checks_dynamic_axes(axes: Any, tmp_path: Path) -> None:
    """`TractNNEF.pre_trace` checks that dynamic axes are correctly formatted."""
    target = TractNNEF(VERSION, dynamic_axes={"input": axes}, check_io=False)
    with pytest.raises(InputError, match="dynamic_axes"):
        target.pre_trace(nn.Tanh(), ["input"], None)
    with pytest.raises(InputError):
        exported(target, tmp_path)
    TractNNEF(VERSION, dynamic_axes={"input": {0: "N"}, "output": [0]}).pre_trace(nn.Tanh(), None, None)


def test_specific_fragments_write_properties_differs() -> None:
    """`TractNNEF.specific_fragments` has the fragment of properties."""
    assert not tract(specific_properties={"team": "speech"}).specific_fragments(nn.Tanh())


def test_latest() -> None:
    """`TractNNEF.latest()` targets the newest release, `TractNNEF.latest_version()` is its version."""
    found = TractNNEF.latest_version(offline=True)
    assert isinstance(found, SemanticVersion)
    assert found == TractNNEF.latest(offline=True).version
    assert found >= VERSION


def test_own_targets_in_pytest() -> None:
    """A target of the user is named in the marker as tract and khronos are; `test_own_targets.py` runs such suites."""
    from pytest_t2n.collect.targets import read_targets

    names, own = read_targets(["tract", WrongTract])
    assert names == ("tract", "wrongtract")
    assert own["wrongtract"].runs_on == "tract"


def test_every_difference_has_a_test() -> None:
    """Each reason is that of one test of this file."""
    names = {name.removeprefix("test_").removesuffix("_differs") for name in globals() if name.endswith("_differs")}
    assert names == set(DIFFERS)
