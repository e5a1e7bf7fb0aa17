"""The snippets of torch-to-nnef's documentation that export a model, by their numbers: the import alone changes."""

from __future__ import annotations

import copy
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import KhronosNNEF, ModelExport, TractNNEF, export_model_to_nnef
from t2n_core.errors import CaptureError, InputError, WriteError
from t2n_core.export.notes import OptionWarning

DIFFERS = {
    "24 allow_same_io_names": "refused: an engine finds inputs and outputs by name",
}
"""Snippet that does not run by the import alone -> the reason."""
X = torch.randn(3, 4)


def tract(**options: object) -> TractNNEF:
    return TractNNEF("0.23.9", check_io=False, **options)  # type: ignore[arg-type]


def test_01_a_model_in_training_mode(tmp_path: Path) -> None:
    """1: a vision model as built, in training mode, is exported in evaluation mode."""
    model = nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.1))
    result = export_model_to_nnef(model, X, tmp_path / "vit.nnef.tgz", tract(), input_names=["input"])
    assert "is in training mode" in result.notes[0]
    assert model.training


def test_01_the_debug_bundle_is_a_gzipped_tar(tmp_path: Path) -> None:
    """1: `debug_bundle_path="debug.tgz"` writes a gzipped tar."""
    path = tmp_path / "debug.tgz"
    export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tgz", tract(), debug_bundle_path=path)
    with tarfile.open(path, "r:gz") as bundle:
        names = bundle.getnames()
        assert {(one.uname, one.uid) for one in bundle} == {("", 0)}
    assert names[0] == "debug"
    assert any(name.endswith("io.npz") for name in names)


def test_01_a_failed_check_leaves_the_debug_bundle(tmp_path: Path) -> None:
    """1: the bundle of an archive that fails its check is written too."""

    class Refusing(TractNNEF):
        def post_write(self, *given: Any) -> None:
            raise InputError("refused")

    with pytest.raises(InputError, match="refused"):
        export_model_to_nnef(
            nn.Tanh(), X, tmp_path / "m.tgz", Refusing("0.23.9"), debug_bundle_path=tmp_path / "debug.tgz"
        )
    assert [one.name for one in tmp_path.iterdir()] == ["debug.tgz"]
    assert tarfile.is_tarfile(tmp_path / "debug.tgz")


def test_02_the_newest_release() -> None:
    """2: `TractNNEF.latest_version()`."""
    assert TractNNEF(TractNNEF.latest_version(), offline=True).version >= "0.23.9"


def test_37_versions_compare_as_versions() -> None:
    """37: `target.version > "0.21.5"` is right for 0.21.13."""
    assert TractNNEF("0.21.13").version > "0.21.5"
    assert not TractNNEF("0.21.13").version < "0.21.5"


def test_05_axes_of_a_dict_of_inputs(tmp_path: Path) -> None:
    """5: a model that takes named inputs, with a dynamic batch and length."""

    class Albert(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(11, 6)

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            return self.table(input_ids) * attention_mask.unsqueeze(-1)  # type: ignore[no-any-return]

    given = {"input_ids": torch.tensor([[3, 1, 4, 1], [5, 9, 2, 6]]), "attention_mask": torch.ones(2, 4)}
    axes = {name: {0: "B", 1: "S"} for name in given}
    result = export_model_to_nnef(Albert().eval(), given, tmp_path / "m.nnef.tgz", tract(dynamic_axes=axes))
    assert list(result.input_names) == list(given)
    assert {"B", "S"} <= set(result.range.bounds)


def test_03_a_dynamic_batch(tmp_path: Path) -> None:
    """3: a dynamic batch, as an option of the target or of the export."""
    axes = {"x": {0: "B"}}
    ways: list[tuple[TractNNEF, Any]] = [(tract(dynamic_axes=axes), {}), (tract(), {"dynamic_axes": axes})]
    for target, options in ways:
        result = export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.nnef.tgz", target, ["x"], ["y"], **options)
        assert "B" in str(result.graph.inputs[0].shape)


def test_03_dynamic_axes_that_differ(tmp_path: Path) -> None:
    """3: axes given twice must be the same."""
    target, axes = tract(dynamic_axes={"x": {0: "B"}}), {"x": {1: "T"}}
    with pytest.raises(InputError, match="dynamic_axes differ"):
        export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tar", target, ["x"], ["y"], dynamic_axes=axes)


def test_03_no_axes_in_place_of_those_of_the_target(tmp_path: Path) -> None:
    """3: no axes are others than those of the target, too."""
    target, none = tract(dynamic_axes={"x": {0: "B"}}), dict[str, Any]()
    with pytest.raises(InputError, match="dynamic_axes differ"):
        export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tar", target, ["x"], ["y"], dynamic_axes=none)


def test_04_custom_extensions_of_the_export(tmp_path: Path) -> None:
    """4: `custom_extensions` are taken by the export too."""
    given: dict[str, Any] = {"dynamic_axes": {"x": {0: "B"}}, "custom_extensions": ["tract_assert B <= 16"]}
    result = export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tar", tract(), ["x"], ["y"], **given)
    assert "16" in str(result.range)


def test_06_custom_extensions_that_differ(tmp_path: Path) -> None:
    """6: extensions given twice must be the same."""
    target = tract(custom_extensions=["tract_assert B <= 16"], dynamic_axes={"x": {0: "B"}})
    with pytest.raises(InputError, match="custom_extensions of the export and of its target differ"):
        export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tar", target, ["x"], custom_extensions=["tract_assert B <= 8"])


def test_06_other_options_of_the_target(tmp_path: Path) -> None:
    """6: other options of the target are taken by the export too."""
    target = TractNNEF("0.23.9")
    given: dict[str, Any] = {"specific_properties": {"origin": "a test"}, "check_io": False}
    result = export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tar", target, ["x"], ["y"], **given)
    assert result.graph.properties["origin"] == "a test"
    assert not result.target.check_io
    assert not target.specific_properties


def test_06_an_option_that_contradicts_the_target(tmp_path: Path) -> None:
    """6: an option given twice must be the same."""
    target, given = tract(reify_sdpa_operator=True), dict[str, Any](reify_sdpa_operator=False)
    with pytest.raises(InputError, match="reify_sdpa_operator of the export and of its target differ"):
        export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tar", target, ["x"], **given)


def test_06_an_option_that_chooses_the_engine(tmp_path: Path) -> None:
    """6: what chooses the engine is refused with what to write."""
    for target, name in ((tract(), "offline"), (KhronosNNEF(), "version")):
        given: Any = {name: True}
        with pytest.raises(InputError, match=rf"`{name}` is an option of the target(.|\n)*{name}="):
            export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tar", target, ["x"], **given)


def test_08_log_level_changes_nothing(tmp_path: Path) -> None:
    """8: `log_level` is taken with a warning."""
    with pytest.warns(OptionWarning, match="log_level changes nothing: notes are in `result.notes`"):
        export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tgz", tract(), log_level=20)


def test_08_the_name_of_an_archive(tmp_path: Path) -> None:
    """8: `model.nnef` is written as `model.nnef.tgz`."""
    with pytest.warns(OptionWarning, match=r"model.nnef is written as model.nnef.tgz"):
        result = export_model_to_nnef(nn.Tanh(), X, tmp_path / "model.nnef", tract())
    assert [one.name for one in tmp_path.iterdir()] == [result.archive.name] == ["model.nnef.tgz"]


def test_09_as_many_names_as_inputs(tmp_path: Path) -> None:
    """9: another number of names than of inputs or outputs is an InputError."""
    for names in ((["x", "z"], ["y"]), (["x"], ["y", "z"])):
        with pytest.raises(InputError):
            export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tgz", tract(), *names)


def test_21_compression_level_9(tmp_path: Path) -> None:
    """21: gzip's levels above 3 are 3, with a warning."""
    with pytest.warns(OptionWarning, match="compression_level=9 is 3"):
        nine = export_model_to_nnef(nn.Tanh(), X, tmp_path / "9.tgz", tract(), compression_level=9)
    three = export_model_to_nnef(nn.Tanh(), X, tmp_path / "3.tgz", tract(), compression_level=3)
    assert nine.archive.stat().st_size == three.archive.stat().st_size
    with pytest.raises(WriteError, match="level 10 is not within 0 to 3"):
        export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tgz", tract(), compression_level=10)


@pytest.mark.parametrize("scheme", ["natural_verbose", "natural_verbose_camel"])
def test_22_natural_verbose(scheme: str, tmp_path: Path) -> None:
    """22: the longer natural names are the natural ones, with a warning."""
    given: Any = {"nnef_variable_naming_scheme": scheme}
    with pytest.warns(OptionWarning, match=f"nnef_variable_naming_scheme='{scheme}' is 'natural'"):
        long = export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tgz", tract(), **given)
    assert str(long.graph) == str(export_model_to_nnef(nn.Tanh(), X, tmp_path / "n.tgz", tract()).graph)


def test_23_check_io_names_qte_match_changes_nothing(tmp_path: Path) -> None:
    """23: `check_io_names_qte_match` is taken with a warning."""
    with pytest.warns(OptionWarning, match="check_io_names_qte_match changes nothing"):
        export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tgz", tract(), check_io_names_qte_match=False)


def test_36_khronos_latest() -> None:
    """36 (beside 35): `KhronosNNEF.latest()` is the newest version of the standard."""
    assert KhronosNNEF.latest(check_io=False).version == "1.0.5"


def test_49_the_result_is_a_path(tmp_path: Path) -> None:
    """49: the result is taken where a path is."""
    result = export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tgz", tract())
    assert os.fspath(result) == str(tmp_path / "m.tgz")
    assert Path(result).stat().st_size == os.path.getsize(result)


@pytest.mark.parametrize(
    ("lines", "range_"),
    [
        (["tract_assert P >= 0"], "P >= 0"),
        (["tract_assert 0 <= P"], "P >= 0"),
        (["tract_assert P > -1", "tract_assert P < 10"], "0 <= P <= 9"),
        (["tract_assert P < 10"], "1 <= P <= 9"),
        (["tract_assert P >= 2"], "P >= 2"),
    ],
)
@pytest.mark.parametrize("place", ["export", "target"])
def test_46_an_assertion_sets_the_range(lines: list[str], range_: str, place: str, tmp_path: Path) -> None:
    """46: `tract_assert P >= 0` sets the range, and so do other bounds."""
    axes: Any = {"x": {0: "P"}}
    of_export: dict[str, Any] = {"dynamic_axes": axes, "custom_extensions": lines} if place == "export" else {}
    target = TractNNEF("0.23.9") if of_export else TractNNEF("0.23.9", dynamic_axes=axes, custom_extensions=lines)
    result = export_model_to_nnef(nn.Linear(4, 2), X, tmp_path / "m.tar", target, ["x"], ["y"], **of_export)
    assert (str(result.range), result.notes) == (range_, ())
    least = int(result.range.bounds["P"][0])
    assert least in {sample.sizes["P"] for sample in result.samples}


def test_46_assertions_that_relate_sizes(tmp_path: Path) -> None:
    """46: the sizes of a past and a step are bounded together, and one of the modes has to hold."""
    lines = ["tract_assert P >= 0", "tract_assert S >= 1", "tract_assert S+P < 64", "tract_assert tg: S==1"]
    lines.append("tract_assert pp: P==0")
    given: dict[str, Any] = {"dynamic_axes": {"past": {0: "P"}, "step": {0: "S"}}, "custom_extensions": lines}

    class Cache(nn.Module):
        def forward(self, past: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
            return torch.cat([past, step.tanh()])

    args = {"past": X, "step": torch.randn(1, 4)}
    result = export_model_to_nnef(Cache(), args, tmp_path / "m.tar", TractNNEF("0.23.9"), **given)
    assert str(result.range) == "P >= 0, S >= 1, P + S < 64, S == 1 or P == 0"


def test_46_a_model_that_no_assertion_makes_valid(tmp_path: Path) -> None:
    """46: a model that cannot run at an asserted size is refused with its operator."""
    given: dict[str, Any] = {"dynamic_axes": {"x": {1: "P"}}, "custom_extensions": ["tract_assert P >= 0"]}
    with pytest.raises(CaptureError, match=r"P is declared from 0 to any size(.|\n)*only for P >= 3"):
        export_model_to_nnef(nn.Conv1d(2, 5, 3), torch.randn(2, 7), tmp_path / "m.tar", tract(), ["x"], **given)


def test_46_an_assertion_after_the_capture_has_a_note(tmp_path: Path) -> None:
    """46: a capture is not widened any more; a note says what to write."""
    export = ModelExport(nn.Tanh(), X, input_names=["x"], dynamic_axes={"x": {0: "P"}})
    export.to(tract(), tmp_path / "m.tar")
    with pytest.warns(OptionWarning, match="had no effect"):
        result = export.to(tract(custom_extensions=["tract_assert P >= 0"]), tmp_path / "m.tar")
    assert any(
        'P >= 0` had no effect: the archive is valid for P >= 1; declare Dim("P", min=0' in n for n in result.notes
    )


@pytest.mark.parametrize("line", ["tract_assert P <= 0", "tract_assert Q >= 2"])
def test_46_an_assertion_that_contradicts_the_range(line: str, tmp_path: Path) -> None:
    """46: an assertion that leaves no size, or names no axis, is an InputError."""
    axes = {"x": {0: "P"}}
    with pytest.raises(InputError, match="custom_extensions: `tract_assert"):
        export_model_to_nnef(
            nn.Tanh(), X, tmp_path / "m.tar", tract(), ["x"], dynamic_axes=axes, custom_extensions=[line]
        )


def test_25_axes_set_on_a_copy_of_the_target(tmp_path: Path) -> None:
    """25: a copy of a target may get other dynamic axes."""
    target = copy.deepcopy(tract())
    target.dynamic_axes = {"x": {0: "B"}}
    result = export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tar", target, ["x"], ["y"])
    assert "B" in str(result.graph.inputs[0].shape)


def test_47_copies_of_a_target(tmp_path: Path) -> None:
    """47: `with_dynamic_axes`, `with_check_io_tolerance` and `with_specific_properties` return copies of a target."""
    first = tract()
    target = first.with_dynamic_axes({"x": {0: "B"}}).with_check_io_tolerance("exact")
    target = target.with_specific_properties({"origin": "a test"})
    result = export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tar", target, ["x"], ["y"])
    assert (str(result.range), result.graph.properties["origin"]) == ("B >= 1", "a test")
    assert (target.check_io_tolerance, first.check_io_tolerance) == ("exact", "approximate")
    assert not first.dynamic_axes


def test_42_specific_properties(tmp_path: Path) -> None:
    """42: `specific_properties` are written."""
    result = export_model_to_nnef(
        nn.Tanh(), X, tmp_path / "m.tar", tract(specific_properties={"origin": "a test"}), ["x"], ["y"]
    )
    assert result.graph.properties["origin"] == "a test"


@pytest.mark.parametrize(
    ("inputs", "outputs"), [(["x", "x"], ["y"]), (["x"], ["y", "y"]), (["x"], ["x"])], ids=["in", "out", "both"]
)
def test_10_names_that_collide(inputs: list[str], outputs: list[str], tmp_path: Path) -> None:
    """10 to 12, 24: names that collide are an InputError."""
    with pytest.raises(InputError):
        export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tar", tract(), inputs, outputs)


def test_24_allow_same_io_names_differs(tmp_path: Path) -> None:
    """24: `allow_same_io_names` is refused, since an engine finds inputs and outputs by name."""
    with pytest.raises(InputError, match="allow_same_io_names"):
        export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tar", tract(), ["x"], ["x"], allow_same_io_names=True)


class Nested(nn.Module):
    def forward(self, pair: tuple[torch.Tensor, dict[str, torch.Tensor]], scale: int) -> dict[str, torch.Tensor]:
        first, named = pair
        return {"sum": first + named["other"], "scaled": first * scale}


def test_13_nested_arguments(tmp_path: Path) -> None:
    """13 to 20: tuples, dicts and primitives are arguments and results."""
    given = ((X, {"other": torch.randn(3, 4)}), 3)
    result = export_model_to_nnef(Nested(), given, tmp_path / "m.tar", tract())
    assert len(result.graph.inputs) == 2
    assert list(result.output_names) == ["sum", "scaled"]


def test_07_a_wrapper_with_any_arguments(tmp_path: Path) -> None:
    """7: a wrapper whose forward takes `*args`."""

    class Wrapper(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 2)

        def forward(self, *args: torch.Tensor) -> torch.Tensor:
            return self.inner(args[0]) + args[1]  # type: ignore[no-any-return]

    result = export_model_to_nnef(Wrapper(), (X, torch.randn(3, 2)), tmp_path / "m.tar", tract(), ["a", "b"], ["y"])
    assert list(result.input_names) == ["a", "b"]
