"""Calls of torch-to-nnef that run once `t2n migrate` has changed their imports, and options it has."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from pytest_t2n.cli.command import main
from t2n_core import KhronosNNEF, ModelExport, TractNNEF, export_model_to_nnef
from t2n_core.errors import CaptureError, InputError, OptionWarning, WriteError
from tests.releases import NEWEST

X = torch.randn(3, 4)
HARDEN = f"""
from torch_to_nnef import TractNNEF, export_model_to_nnef
from torch_to_nnef import harden_jit_for_export
script = harden_jit_for_export(torch.jit.script(torch.nn.Tanh()).eval(), (x,))
export_model_to_nnef(script, x, folder / "m.tgz", TractNNEF("{NEWEST}"))
"""


def tract(**options: Any) -> TractNNEF:
    return TractNNEF(NEWEST, check_io=False, **options)


def exported(folder: Path, target: Any = None, name: str = "m.tar", **options: Any) -> Any:
    return export_model_to_nnef(nn.Tanh(), X, folder / name, target or tract(), ["x"], ["y"], **options)


def migrated(folder: Path, text: str) -> dict[str, Any]:
    """Return the variables of a program of which `t2n migrate --write` changes the imports alone."""
    path = folder / "program.py"
    path.write_text(text, "utf-8")
    assert main(["migrate", "--write", str(path)]) == 0
    changed = path.read_text("utf-8")
    pairs = zip(text.splitlines(), changed.splitlines(), strict=True)
    assert all(before == after or "import " in before for before, after in pairs)
    variables: dict[str, Any] = {"torch": torch, "folder": folder, "x": X}
    exec(compile(changed, "program.py", "exec"), variables)
    return variables


def test_variable_naming_scheme(tmp_path: Path) -> None:
    variables = migrated(
        tmp_path,
        "from torch_to_nnef import TractNNEF, export_model_to_nnef\n"
        "from torch_to_nnef.torch_graph.ir_naming import VariableNamingScheme\n"
        f"target, scheme = TractNNEF('{NEWEST}'), VariableNamingScheme.NUMERIC\n"
        "model, path = torch.nn.Tanh(), folder / 'm.tgz'\n"
        "result = export_model_to_nnef(model, x, path, target, nnef_variable_naming_scheme=scheme)\n",
    )
    schemes = {scheme.value for scheme in variables["VariableNamingScheme"]}
    assert schemes == {"raw", "natural_verbose", "natural_verbose_camel", "numeric"}
    assert variables["result"].graph.outputs


def test_export_tensors(tmp_path: Path) -> None:
    torch.save({"a.weight": torch.randn(2, 3), "b.weight": torch.randn(3)}, tmp_path / "m.pt")
    variables = migrated(
        tmp_path,
        "from torch_to_nnef import export_tensors_to_nnef\n"
        "from torch_to_nnef.export import export_tensors_from_disk_to_nnef\n"
        "written = export_tensors_to_nnef({'c.weight': torch.ones(2, 3)}, folder / 'new')\n"
        "checked = []\n"
        "loaded = export_tensors_from_disk_to_nnef(\n"
        "    folder / 'm.pt', folder / 'out', filter_key=lambda key: key.startswith('a'),\n"
        "    fn_check_found_tensors=checked.append,\n"
        ")\n",
    )
    tensors = [variables["written"], variables["loaded"], *variables["checked"]]
    assert [list(names) for names in tensors] == [["c.weight"], ["a.weight"], ["a.weight"]]
    assert sorted(path.name for path in tmp_path.glob("*/*.dat")) == ["a.weight.dat", "c.weight.dat"]


def test_build_io(tmp_path: Path) -> None:
    variables = migrated(
        tmp_path,
        "from torch_to_nnef.inference_target.tract import build_io\n"
        "model, path = torch.nn.Tanh(), folder / 'io.npz'\n"
        "names = build_io(model, x, io_npz_path=path, input_names=['x'], output_names=['y'])\n",
    )
    assert variables["names"] == (["x"], ["y"])
    arrays = np.load(tmp_path / "io.npz")
    np.testing.assert_array_equal(arrays["x"], X.numpy())
    np.testing.assert_allclose(arrays["y"], np.tanh(arrays["x"]), rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from torch_to_nnef.log import init_log\ninit_log()\n", "init_log changes nothing"),
        (HARDEN, "harden_jit_for_export changes nothing"),
    ],
)
def test_functions_without_effect_warn(text: str, message: str, tmp_path: Path) -> None:
    with pytest.warns(OptionWarning, match=message):
        migrated(tmp_path, text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"log_level": 20}, "log_level changes nothing: notes are in `result.notes`"),
        ({"check_io_names_qte_match": False}, "check_io_names_qte_match changes nothing"),
        ({"name": "m.nnef"}, r"m.nnef is written as m.nnef.tgz"),
        ({"name": "m.tgz", "compression_level": 9}, "compression_level=9 is 3"),
        ({"nnef_variable_naming_scheme": "natural_verbose"}, "naming_scheme='natural_verbose' is 'natural'"),
        ({"nnef_variable_naming_scheme": "natural_verbose_camel"}, "'natural_verbose_camel' is 'natural'"),
    ],
)
def test_options_with_another_effect_warn(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.warns(OptionWarning, match=message):
        result = exported(tmp_path, **options)
    plain = exported(tmp_path, name="plain.tar")
    assert str(result.graph) == str(plain.graph)
    assert {path.name for path in tmp_path.iterdir()} == {result.archive.name, "plain.tar"}
    with pytest.raises(WriteError, match="level 10 is not within 0 to 3"):
        exported(tmp_path, name="m.tgz", compression_level=10)


@pytest.mark.parametrize("passes", [True, False])
def test_debug_bundle_is_a_gzipped_tar(passes: bool, tmp_path: Path) -> None:
    class Refusing(TractNNEF):
        def post_write(self, *_: Any) -> None:
            if not passes:
                raise InputError("refused")

    path = tmp_path / "debug.tgz"
    if passes:
        exported(tmp_path, Refusing(NEWEST), debug_bundle_path=path)
    else:
        with pytest.raises(InputError, match="refused"):
            exported(tmp_path, Refusing(NEWEST), debug_bundle_path=path)
    with tarfile.open(path, "r:gz") as bundle:
        names = bundle.getnames()
        assert {(member.uname, member.uid) for member in bundle} == {("", 0)}
    assert names[0] == "debug"
    assert any(name.endswith("io.npz") for name in names)
    assert (tmp_path / "m.tar").exists() == passes


def test_result_is_a_path(tmp_path: Path) -> None:
    result = exported(tmp_path)
    assert os.fspath(result) == str(tmp_path / "m.tar")
    assert Path(result).stat().st_size == os.path.getsize(result)


def test_options_of_the_target_are_options_of_the_export(tmp_path: Path) -> None:
    target, axes = TractNNEF(NEWEST), {"x": {0: "B"}}
    options = {"specific_properties": {"origin": "a test"}, "check_io": False, "dynamic_axes": axes}
    result = exported(tmp_path, target, custom_extensions=["tract_assert B <= 16"], **options)
    assert (result.graph.properties["origin"], str(result.range)) == ("a test", "1 <= B <= 16")
    assert not result.target.check_io
    assert not target.specific_properties


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dynamic_axes": {"x": {1: "T"}}}, "dynamic_axes differ"),
        ({"dynamic_axes": {}}, "dynamic_axes differ"),
        ({"custom_extensions": ["tract_assert B <= 8"]}, "custom_extensions of the export and of its target differ"),
        ({"reify_sdpa_operator": False}, "reify_sdpa_operator of the export and of its target differ"),
        ({"offline": True}, r"`offline` is an option of the target(.|\n)*offline="),
        ({"allow_same_io_names": True}, "allow_same_io_names"),
    ],
)
def test_options_that_contradict_the_target_are_refused(options: Any, message: str, tmp_path: Path) -> None:
    extensions = ["tract_assert B <= 16"]
    target = tract(custom_extensions=extensions, dynamic_axes={"x": {0: "B"}}, reify_sdpa_operator=True)
    with pytest.raises(InputError, match=message):
        exported(tmp_path, target, **options)
    with pytest.raises(InputError, match=r"`version` is an option of the target(.|\n)*version="):
        exported(tmp_path, KhronosNNEF(), version="1.0")


@pytest.mark.parametrize(("inputs", "outputs"), [(["x", "x"], ["y"]), (["x"], ["y", "y"]), (["x"], ["x"])])
def test_names_that_collide_are_refused(inputs: list[str], outputs: list[str], tmp_path: Path) -> None:
    with pytest.raises(InputError):
        export_model_to_nnef(nn.Tanh(), X, tmp_path / "m.tar", tract(), inputs, outputs)


@pytest.mark.parametrize(
    ("lines", "sizes"),
    [
        (["tract_assert P >= 0"], "P >= 0"),
        (["tract_assert 0 <= P"], "P >= 0"),
        (["tract_assert P > -1", "tract_assert P < 10"], "0 <= P <= 9"),
        (["tract_assert P < 10"], "1 <= P <= 9"),
        (["tract_assert P >= 2"], "P >= 2"),
    ],
)
@pytest.mark.parametrize("place", ["export", "target"])
def test_assertions_set_the_range(lines: list[str], sizes: str, place: str, tmp_path: Path) -> None:
    options: Any = {"dynamic_axes": {"x": {0: "P"}}, "custom_extensions": lines}
    of_target, of_export = ({}, options) if place == "export" else (options, {})
    result = exported(tmp_path, TractNNEF(NEWEST, **of_target), **of_export)
    assert (str(result.range), result.notes) == (sizes, ())
    assert int(result.range.bounds["P"][0]) in {sample.sizes["P"] for sample in result.samples}


def test_assertions_that_relate_sizes(tmp_path: Path) -> None:
    class Cache(nn.Module):
        def forward(self, past: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
            return torch.cat([past, step.tanh()])

    conditions = ["P >= 0", "S >= 1", "S+P < 64", "tg: S==1", "pp: P==0"]
    lines = [f"tract_assert {condition}" for condition in conditions]
    options: Any = {"dynamic_axes": {"past": {0: "P"}, "step": {0: "S"}}, "custom_extensions": lines}
    args = {"past": X, "step": torch.randn(1, 4)}
    result = export_model_to_nnef(Cache(), args, tmp_path / "m.tar", TractNNEF(NEWEST), **options)
    assert str(result.range) == "P >= 0, S >= 1, P + S < 64, S == 1 or P == 0"


def test_assertions_of_impossible_sizes(tmp_path: Path) -> None:
    """A model that cannot run at a declared size is refused, and an assertion after the capture cannot widen it."""
    options: Any = {"dynamic_axes": {"x": {1: "P"}}, "custom_extensions": ["tract_assert P >= 0"]}
    with pytest.raises(CaptureError, match=r"P is declared from 0 to any size(.|\n)*only for P >= 3"):
        export_model_to_nnef(nn.Conv1d(2, 5, 3), torch.randn(2, 7), tmp_path / "m.tar", tract(), ["x"], **options)
    export = ModelExport(nn.Tanh(), X, input_names=["x"], dynamic_axes={"x": {0: "P"}})
    export.to(tract(), tmp_path / "m.tar")
    with pytest.warns(OptionWarning, match="had no effect"):
        result = export.to(tract(custom_extensions=["tract_assert P >= 0"]), tmp_path / "m.tar")
    expected = 'P >= 0` had no effect: the archive is valid for P >= 1; declare Dim("P", min=0'
    assert any(expected in note for note in result.notes)
