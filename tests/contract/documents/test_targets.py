"""The items of the document on targets, in its order; a name with `_differs` is an item that has its reason here."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import t2n_core.inference_target
from t2n_core import (
    ExportResult,
    InferenceTarget,
    KhronosNNEF,
    TractNNEF,
    export_model_to_nnef,
)
from t2n_core.errors import EngineProvisionError, InputError, ParityError
from t2n_core.inference_target import SemanticVersion
from t2n_core.nnef.graph import Graph
from tests.contract.options.exports import text_of

DIFFERS = {
    "base_check_io_is_off": "True, as for all targets: an archive that nothing has checked proves nothing",
    "the_graph_is_of_nnef_tools": "a `t2n_core.nnef.graph.Graph`: exports do not need nnef_tools",
    "pre_trace_is_after_the_wrapper": "inputs of any structure need no wrapper, so the hook gets the user's model",
    "khronos_version_is_required": "1.0.5 by default, the one version that has all operators",
    "khronos_interpreter": "30 operators of it are computed by own code, since they are wrong in nnef_tools; and the "
    "C++ interpreter runs beside it",
}
"""Item -> why it does not hold as written; the page on moving from torch-to-nnef shows these."""

VERSION = "0.23.9"
HOOK = ["model", "nnef_graph", "args", "exported_filepath", "debug_bundle_path"]


def tract(*given: Any, **options: Any) -> TractNNEF:
    return TractNNEF(VERSION, *given, offline=True, **options)


def parameters(function: Any) -> dict[str, inspect.Parameter]:
    found = dict(inspect.signature(function).parameters)
    found.pop("self", None)
    return found


def exported(target: InferenceTarget, path: Path, model: nn.Module | None = None, **options: Any) -> ExportResult:
    net = nn.Tanh() if model is None else model
    return export_model_to_nnef(net.eval(), torch.randn(2, 4), path / "m.tgz", target, **options)


class Recording(TractNNEF):
    """A target that records the calls of its hooks."""

    calls: list[tuple[str, tuple[Any, ...]]]

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, offline=True, **options)
        self.calls = []

    def pre_trace(self, *given: Any) -> None:
        self.calls.append(("pre_trace", given))

    def post_capture(self, *given: Any) -> None:
        self.calls.append(("post_capture", given))

    def specific_fragments(self, *given: Any) -> dict[str, str]:
        self.calls.append(("specific_fragments", given))
        return {}

    def post_trace(self, *given: Any) -> None:
        super().post_trace(*given)
        self.calls.append(("post_trace", given))

    def post_export(self, *given: Any) -> None:
        assert given[3].exists()
        super().post_export(*given)
        self.calls.append(("post_export", given))


def test_module_has_the_three_targets() -> None:
    """`inference_target` has InferenceTarget, KhronosNNEF and TractNNEF."""
    assert {"InferenceTarget", "KhronosNNEF", "TractNNEF"} <= set(t2n_core.inference_target.__all__)


def test_base_takes_version_and_check_io() -> None:
    """`InferenceTarget(version, check_io)`, by position."""
    assert list(parameters(InferenceTarget.__init__))[:2] == ["version", "check_io"]
    assert InferenceTarget("1.0", False).check_io is False


def test_version_is_a_text_or_a_semantic_version() -> None:
    """`version: Union[SemanticVersion, str]`."""
    for version in ("0.21.13", SemanticVersion.from_str("0.21.13")):
        assert TractNNEF(version).version == "0.21.13"
    for wrong in (None, 0.21, ["0.21"], ""):
        with pytest.raises(InputError, match=r'is not a version(?s:.)*write it as text, such as "0\.21\.13"'):
            TractNNEF(wrong)  # type: ignore[arg-type]


def test_versions_compare_as_versions() -> None:
    """A `SemanticVersion` compares as a version: 0.21.13 is later than 0.21.5."""
    version = TractNNEF("0.21.13").version
    assert version > "0.21.5"
    assert version >= "0.21.13"
    assert version > "0.21.5"
    assert not version < "0.21.5"
    assert not version <= "0.21.5"
    assert sorted([version, SemanticVersion("0.9")])[0] == "0.9"
    assert (version == "0.21.13", hash(version), f"{version}") == (True, hash("0.21.13"), "0.21.13")
    for wrong in ("new", 3):
        with pytest.raises(InputError, match="cannot be compared"):
            assert version > wrong


def test_base_check_io_is_off_differs() -> None:
    """`check_io: bool = False` of the base class."""
    assert InferenceTarget("1.0").check_io is True


def test_base_implements_a_new_target_by_version_and_check(tmp_path: Path) -> None:
    """A new target is a subclass with a version and a way to check output, and nothing else."""
    checked: list[Path] = []

    class Mine(InferenceTarget):
        def post_export(self, model: Any, nnef_graph: Any, args: Any, exported_filepath: Path, *_: Any) -> None:
            checked.append(exported_filepath)

    result = exported(Mine("3.1"), tmp_path)
    assert checked == [result.archive]
    assert str(result.target) == "mine 3.1"
    assert "extension" not in text_of(result.archive)


def test_base_needs_a_way_to_check(tmp_path: Path) -> None:
    """A target without an engine and without a check of its own is refused, unless `check_io=False`."""
    with pytest.raises(EngineProvisionError, match=r"(?s)has no engine.*override engine\(\), or check in post_export"):
        exported(InferenceTarget("3.1"), tmp_path)
    assert not (tmp_path / "m.tgz").exists()
    assert exported(InferenceTarget("3.1", check_io=False), tmp_path).archive.exists()


def test_has_dynamic_axes() -> None:
    """`has_dynamic_axes` is a property, whether the user requests dynamic axes."""
    assert isinstance(inspect.getattr_static(InferenceTarget, "has_dynamic_axes"), property)
    assert tract(dynamic_axes={"input": {0: "N"}}).has_dynamic_axes


def test_has_dynamic_axes_is_false_by_default() -> None:
    """`has_dynamic_axes` is False by default."""
    assert not any(one.has_dynamic_axes for one in (InferenceTarget("1"), KhronosNNEF(), tract()))


@pytest.mark.parametrize("target", [InferenceTarget, KhronosNNEF, TractNNEF])
def test_post_export_arguments(target: type[InferenceTarget]) -> None:
    """`post_export(model, nnef_graph, args, exported_filepath, debug_bundle_path=None)`."""
    found = parameters(target.post_export)
    assert list(found) == HOOK
    assert found["debug_bundle_path"].default is None


def test_post_export_is_called_after_the_asset_is_generated(tmp_path: Path) -> None:
    """`post_export` is called after the NNEF model asset is generated."""
    target, model = Recording(VERSION), nn.Tanh()
    result = exported(target, tmp_path, model, debug_bundle_path=tmp_path / "debug")
    name, given = target.calls[-1]
    assert (name, given[0], given[1], given[3:]) == (
        "post_export", model, result.graph, (result.archive, tmp_path / "debug"),
    )  # fmt: skip
    assert [type(one) for one in given[2]] == [torch.Tensor]


def test_post_export_is_where_check_io_is_applied(tmp_path: Path) -> None:
    """`post_export` of the base class checks: after `super()` the archive is proven."""
    seen: list[str] = []

    class Wrong(Recording):
        def post_trace(self, nnef_graph: Graph, active_custom_extensions: list[str]) -> None:
            super().post_trace(nnef_graph, active_custom_extensions)
            nnef_graph.operations[-1].name = "exp"

        def post_write(self, *given: Any) -> None:
            seen.append("unproven")

    target = Wrong(VERSION)
    with pytest.raises(ParityError):
        exported(target, tmp_path)
    assert [name for name, _ in target.calls][-1] == "post_trace"
    assert seen == ["unproven"]
    exported(Wrong(VERSION, check_io=False), tmp_path)


@pytest.mark.parametrize("target", [InferenceTarget, KhronosNNEF, TractNNEF])
def test_post_trace_arguments(target: type[InferenceTarget]) -> None:
    """`post_trace(nnef_graph, active_custom_extensions)`."""
    assert list(parameters(target.post_trace)) == ["nnef_graph", "active_custom_extensions"]


def test_post_trace_is_called_after_the_graph_is_parsed(tmp_path: Path) -> None:
    """`post_trace` is called with the parsed graph and the active extensions, which it may edit."""

    class Adding(TractNNEF):
        def post_trace(self, nnef_graph: Graph, active_custom_extensions: list[str]) -> None:
            super().post_trace(nnef_graph, active_custom_extensions)
            assert [operation.name for operation in nnef_graph.operations] == ["external", "tanh"]
            active_custom_extensions.append("tract_registry tract_extra")

    assert "extension tract_registry tract_extra;" in text_of(exported(Adding(VERSION), tmp_path).archive)


def test_the_graph_is_of_nnef_tools_differs(tmp_path: Path) -> None:
    """`nnef_graph: NGraph` of nnef_tools."""
    target = Recording(VERSION, check_io=False)
    exported(target, tmp_path)
    assert isinstance(dict(target.calls)["post_trace"][0], Graph)


def test_pre_trace_arguments() -> None:
    """`pre_trace(model, input_names, output_names)`."""
    assert list(parameters(InferenceTarget.pre_trace)) == ["model", "input_names", "output_names"]


def test_pre_trace_is_called_before_the_model_is_traced(tmp_path: Path) -> None:
    """`pre_trace` is called just before the PyTorch graph is traced."""

    class Refusing(TractNNEF):
        def pre_trace(self, *given: Any) -> None:
            raise InputError("refused")

    class Untraceable(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise AssertionError("traced")

    with pytest.raises(InputError, match="refused"):
        exported(Refusing(VERSION), tmp_path, Untraceable())
    target = Recording(VERSION, check_io=False)
    exported(target, tmp_path)
    names = [name for name, _ in target.calls]
    assert names == ["pre_trace", "post_capture", "specific_fragments", "post_trace", "post_export"]


@pytest.mark.parametrize(("given", "found"), [({}, None), ({"output_names": ["y"]}, ["y"])])
def test_names_may_be_none(given: dict[str, Any], found: list[str] | None, tmp_path: Path) -> None:
    """`input_names: Optional[List[str]]`, `output_names: Optional[List[str]]`."""
    target = Recording(VERSION, check_io=False)
    exported(target, tmp_path, **given)
    assert dict(target.calls)["pre_trace"][1:] == (None, found)


def test_pre_trace_is_after_the_wrapper_differs(tmp_path: Path) -> None:
    """`pre_trace` is called after the auto wrapper."""
    target, model = Recording(VERSION, check_io=False), nn.Tanh()
    exported(target, tmp_path, model)
    assert dict(target.calls)["pre_trace"][0] is model


TWICE = "fragment twice(x: tensor<scalar>) -> (y: tensor<scalar>)\n{\n    y = x * 2.0;\n}\n"


TWICE_BY_NAME = {"twice": TWICE}


class WithFragments(TractNNEF):
    """A target whose fragments are given, and which calls `twice` on the last operation."""

    fragments: Any = TWICE_BY_NAME

    def specific_fragments(self, model: nn.Module) -> Any:
        return self.fragments

    def post_trace(self, nnef_graph: Graph, active_custom_extensions: list[str]) -> None:
        super().post_trace(nnef_graph, active_custom_extensions)
        nnef_graph.operations[-1].name = "twice"


def test_specific_fragments_are_texts_by_name(tmp_path: Path) -> None:
    """`specific_fragments(model) -> Dict[str, str]`."""
    target = WithFragments(VERSION, check_io=False)
    written = text_of(exported(target, tmp_path, nn.ReLU()).archive)
    assert "fragment twice(" in written
    assert "output = twice(input)" in written


@pytest.mark.parametrize(
    ("fragments", "words"),
    [
        ({"once": TWICE}, "the text of `once` declares the fragment `twice`"),
        ({"twice": "y = x * 2.0;"}, "no fragment is declared"),
        ({"twice": 3}, "3 is neither NNEF text nor a Fragment"),
        (TWICE, "neither texts by name nor a list"),
        (None, "None is neither texts by name nor a list"),
    ],
)
def test_wrong_specific_fragments_are_refused(fragments: Any, words: str, tmp_path: Path) -> None:
    """A wrong value of `specific_fragments` is a T2NError that says what to write."""
    target = WithFragments(VERSION, check_io=False)
    target.fragments = fragments
    with pytest.raises(InputError, match=f"specific_fragments: (?s:.)*{words}"):
        exported(target, tmp_path, nn.ReLU())


def test_khronos_arguments() -> None:
    """`KhronosNNEF(version, check_io=True)`, by position."""
    found = parameters(KhronosNNEF.__init__)
    assert list(found)[:2] == ["version", "check_io"]
    assert found["check_io"].default is True
    assert KhronosNNEF("1.0.5", False).check_io is False


def test_khronos_version_is_required_differs() -> None:
    """`KhronosNNEF(version)` has no default."""
    assert KhronosNNEF().version == "1.0.5"


def test_khronos_is_a_target() -> None:
    """`KhronosNNEF` bases InferenceTarget."""
    assert KhronosNNEF.__mro__[1] is InferenceTarget


def test_khronos_assets_follow_the_specification(tmp_path: Path) -> None:
    """A `KhronosNNEF` asset complies with the Khronos specification."""
    written = text_of(exported(KhronosNNEF(check_io=False), tmp_path, nn.Linear(4, 3)).archive)
    assert "extension" not in written
    assert "tract" not in written
    assert written.startswith("version 1.0;")


def test_khronos_compares_the_original_and_the_reloaded_model(tmp_path: Path) -> None:
    """With `check_io=True` the original and the reloaded model have the same outputs."""

    class Wrong(KhronosNNEF):
        def post_trace(self, nnef_graph: Graph, active_custom_extensions: list[str]) -> None:
            nnef_graph.operations[-1].name = "exp"

    with pytest.raises(ParityError):
        exported(Wrong(), tmp_path)
    exported(KhronosNNEF(), tmp_path)


def test_khronos_interpreter_differs(tmp_path: Path) -> None:
    """The check is an evaluation by the Torch interpreter of NNEF-Tools."""
    assert exported(KhronosNNEF(), tmp_path).check_parity().engine.startswith("khronos")


def test_khronos_post_export_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`KhronosNNEF.post_export` checks io."""
    runs: list[Any] = []
    monkeypatch.setattr(ExportResult, "assert_parity", lambda *given: runs.append(given))
    exported(KhronosNNEF(), tmp_path)
    exported(KhronosNNEF(check_io=False), tmp_path)
    assert len(runs) == 1


def test_every_difference_has_a_test() -> None:
    """Each reason is that of one test of this file."""
    names = {name.removeprefix("test_").removesuffix("_differs") for name in globals() if name.endswith("_differs")}
    assert names == set(DIFFERS)
