"""Snippets of torch-to-nnef's documentation and tests about names, in the numbering of the list of snippets.

Each runs by another import alone, or `t2n migrate` or an error has the sentence that says what to write.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import t2n_core
from pytest_t2n.cli.command import main
from pytest_t2n.cli.migrate.options import rename_options
from pytest_t2n.cli.migrate.table import moves
from t2n_core import KhronosNNEF, StoredAs, TractFeatureFlag, TractNNEF, export_model_to_nnef
from t2n_core.check.exported.streaming import check_streaming
from t2n_core.errors import InputError, T2NError
from t2n_core.export.notes import OptionWarning
from t2n_core.parity.judging.judgement import Judgement

DIFFERS = {
    "27 extractor": "its body is written anew, since values of a graph take the place of nnef_tools' tensors",
    "28 OP_REGISTRY": "a rule has the arguments of the operator's schema, and is bound to it by `@op`",
    "30 QTensor": "the format of weights is an option of the target; the model is not changed",
    "31 own scales": "scales are given to `StoredAs`, and the model is not changed",
    "32 OffloadedTensor": "files are mapped by the commands themselves, so that there is nothing to call",
    "52 export-peft": "adapters are written by `t2n export-tensors`, whose patterns take the place of its options",
    "41 extras": "rules of packages are entry points, which pip knows",
    "48 COMPLEX": "no release of tract since 0.20 has complex tensors",
}
"""Item -> why it does not run by the import alone."""

VERSION = "0.23.9"


def left(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> str:
    """Return the report of `t2n migrate` on a snippet that needs someone to change it."""
    path = tmp_path / "snippet.py"
    path.write_text(text, "utf-8")
    assert main(["migrate", str(path)]) == 1
    return capsys.readouterr().out


def run_by_the_import_alone(tmp_path: Path, text: str) -> dict[str, Any]:
    """Return the variables of a snippet that `t2n migrate --write` has changed in its imports alone."""
    path = tmp_path / "snippet.py"
    path.write_text(text, "utf-8")
    assert main(["migrate", "--write", str(path)]) == 0
    changed = path.read_text("utf-8")
    pairs = list(zip(text.splitlines(), changed.splitlines(), strict=True))
    assert all(before == after or "import " in before for before, after in pairs)
    found: dict[str, Any] = {"folder": tmp_path}
    exec(compile(changed, "snippet.py", "exec"), found)
    return found


def test_22_variable_naming_scheme(tmp_path: Path) -> None:
    """A `VariableNamingScheme` is a value of the option by the import alone."""
    text = (
        "import torch\n"
        "from torch_to_nnef import TractNNEF, export_model_to_nnef\n"
        "from torch_to_nnef.torch_graph.ir_naming import VariableNamingScheme\n"
        "target, scheme = TractNNEF('0.23.9'), VariableNamingScheme.NUMERIC\n"
        "model, x, path = torch.nn.Tanh(), torch.randn(2, 3), folder / 'm.tgz'\n"
        "result = export_model_to_nnef(model, x, path, target, nnef_variable_naming_scheme=scheme)\n"
    )
    found = run_by_the_import_alone(tmp_path, text)
    schemes = {one: one.value for one in found["VariableNamingScheme"]}
    assert set(schemes.values()) == {"raw", "natural_verbose", "natural_verbose_camel", "numeric"}
    assert found["result"].graph.outputs


def test_26_target_custom_extensions(tmp_path: Path) -> None:
    """`target.custom_extensions = [...]` after the constructor is in the archive."""
    target = copy.deepcopy(TractNNEF(VERSION, offline=True, dynamic_axes={"input": {0: "B"}}))
    target.custom_extensions = ["tract_assert B <= 16"]  # type: ignore[assignment]
    result = export_model_to_nnef(nn.Tanh().eval(), torch.randn(2, 4), tmp_path / "m.tgz", target)
    assert "B <= 16" in str(result.range)


def test_27_extractor_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A subclass of ModuleInfoExtractor is reported with the arguments of its body."""
    text = "from torch_to_nnef.op.custom_extractors import ModuleInfoExtractor\n"
    assert "`convert_to_nnef(self, g, module, inputs, params)`" in left(tmp_path, capsys, text)


def test_28_op_registry_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`OP_REGISTRY.register` is reported with the decorator of a rule."""
    text = "from torch_to_nnef.op.aten.math import OP_REGISTRY\n\n@OP_REGISTRY.register(['hi'])\ndef hi(g): ...\n"
    assert '`@op("aten::name")`' in left(tmp_path, capsys, text)


def test_29_quantised_by_qnnpack(tmp_path: Path) -> None:
    """A model that torch.ao has quantised for qnnpack is exported by the import alone."""
    found = run_by_the_import_alone(
        tmp_path,
        "import torch\n"
        "import torch.ao.quantization as ao\n"
        "from torch_to_nnef import TractNNEF, export_model_to_nnef\n"
        "before, torch.backends.quantized.engine = torch.backends.quantized.engine, 'qnnpack'\n"
        "model = torch.nn.Sequential(ao.QuantStub(), torch.nn.Linear(3, 5), ao.DeQuantStub()).eval()\n"
        "model.qconfig = ao.get_default_qconfig('qnnpack')\n"
        "prepared = ao.prepare(model)\n"
        "prepared(torch.randn(4, 3))\n"
        "target = TractNNEF('0.23.9', check_io=False)\n"
        "try:\n"
        "    result = export_model_to_nnef(ao.convert(prepared), torch.randn(4, 3), folder / 'q.tgz', target)\n"
        "finally:\n"
        "    torch.backends.quantized.engine = before\n",
    )
    weights = {operation.arguments["label"]: value.dtype for operation, value in found["result"].graph.variables()}
    assert weights["1.weight"] == "int8"


@pytest.mark.parametrize(
    "name",
    ["compress.quantize_weights_min_max_Q4_0", "tensor.QTensor", "tensor.updater.ModTensorUpdater"],
)
def test_30_qtensor_differs(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`compress`, QTensor and ModTensorUpdater are reported with the option of the target."""
    module, _, last = name.rpartition(".")
    report = left(tmp_path, capsys, f"from torch_to_nnef.{module} import {last}\n")
    assert 'TractNNEF(version, weights="q4_0")' in report


def test_31_own_scales_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An own search of scales is reported with `StoredAs`, which takes a function."""
    text = "from torch_to_nnef.tensor.quant import fp_to_tract_q4_0_with_min_max_calibration\n"
    assert 'weights=StoredAs("q4_0", scales=…)' in left(tmp_path, capsys, text)
    assert TractNNEF(VERSION, offline=True, weights=StoredAs("q4_0", scales=lambda weight: weight.abs().amax(-1)))


def test_32_offloaded_tensor_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`OffloadedTensor` and its loader are reported with the commands that map files."""
    text = "from torch_to_nnef.tensor.offload import OffloadedTensor, t2n_load_checkpoint_and_dispatch\n"
    assert left(tmp_path, capsys, text).count("`t2n export-llm FOLDER` and `export_tensors` map the files") == 2


def test_33_export_tensors(tmp_path: Path) -> None:
    """`export_tensors_to_nnef` writes the tensors of a dict by the import alone."""
    text = (
        "import torch\n"
        "from torch_to_nnef import export_tensors_to_nnef\n"
        "written = export_tensors_to_nnef({'a.weight': torch.ones(2, 3)}, folder / 'out')\n"
    )
    assert list(run_by_the_import_alone(tmp_path, text)["written"]) == ["a.weight"]
    assert (tmp_path / "out" / "a.weight.dat").exists()


def test_34_export_tensors_from_disk(tmp_path: Path) -> None:
    """`export_tensors_from_disk_to_nnef` writes the tensors of a file that pass a filter by the import alone."""
    torch.save({"a.weight": torch.randn(2, 3), "b.weight": torch.randn(3)}, tmp_path / "m.pt")
    text = (
        "from torch_to_nnef.export import export_tensors_from_disk_to_nnef\n"
        "checked = []\n"
        "written = export_tensors_from_disk_to_nnef(\n"
        "    folder / 'm.pt', folder / 'out', filter_key=lambda key: key.startswith('a'),\n"
        "    fn_check_found_tensors=checked.append,\n"
        ")\n"
    )
    found = run_by_the_import_alone(tmp_path, text)
    assert [list(one) for one in (found["written"], *found["checked"])] == [["a.weight"]] * 2
    assert [one.suffix for one in (tmp_path / "out").iterdir()] == [".dat"]


def test_35_tract_latest(tmp_path: Path) -> None:
    """`TractNNEF.latest()` is a target by the import alone."""
    found = run_by_the_import_alone(tmp_path, "from torch_to_nnef import TractNNEF\nlatest = TractNNEF.latest\n")
    assert found["latest"] == TractNNEF.latest


def test_36_the_newest_khronos() -> None:
    """`KhronosNNEF.latest()` is a target of the newest version."""
    assert KhronosNNEF.latest().version == KhronosNNEF().version


def test_38_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`log.init_log` runs by the import alone, with a warning; the name of a logger is reported."""
    with pytest.warns(OptionWarning, match="init_log changes nothing"):
        run_by_the_import_alone(tmp_path, "from torch_to_nnef.log import init_log\ninit_log()\n")
    text = "import logging\nlogging.getLogger('torch_to_nnef')\n"
    assert ":2: torch_to_nnef: a name of torch-to-nnef in a text" in left(tmp_path, capsys, text)


ERRORS = [move for move in moves() if move.old.startswith("torch_to_nnef.exceptions.")]


def test_39_all_errors_are_in_the_table() -> None:
    """The 35 errors of torch-to-nnef are in the table."""
    assert len(ERRORS) == 35


@pytest.mark.parametrize("move", ERRORS, ids=lambda move: move.old.rpartition(".")[2])
def test_39_each_error(move: Any, tmp_path: Path) -> None:
    """An error runs by the import alone."""
    text = f"from torch_to_nnef.exceptions import {move.old.rpartition('.')[2]} as error\n"
    assert issubclass(run_by_the_import_alone(tmp_path, text)["error"], T2NError)


def test_40_harden_jit(tmp_path: Path) -> None:
    """`harden_jit_for_export` runs by the import alone, with a warning, and the script is exported."""
    text = (
        "import torch\n"
        "from torch_to_nnef import TractNNEF, export_model_to_nnef\n"
        "from torch_to_nnef import harden_jit_for_export\n"
        "x = torch.randn(2, 3)\n"
        "script = harden_jit_for_export(torch.jit.script(torch.nn.Tanh()).eval(), (x,))\n"
        "export_model_to_nnef(script, x, folder / 'm.tgz', TractNNEF('0.23.9'))\n"
    )
    with pytest.warns(OptionWarning, match="harden_jit_for_export changes nothing"):
        run_by_the_import_alone(tmp_path, text)


def test_41_extras_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`op.extras.register` is reported with `rewriter.symbolic` and the entry point."""
    report = left(tmp_path, capsys, "from torch_to_nnef.op.extras import register\n")
    assert "write a rule with `rewriter.symbolic`" in report
    assert "entry point `t2n.operators`" in report
    (move,) = (one for one in moves() if one.old == "TORCH_TO_NNEF_EXTRA_MODULES")
    assert "entry point `t2n.operators`" in move.note


def test_43_torch_graph(tmp_path: Path) -> None:
    """The torch graph of a module is read by the import alone."""
    found = run_by_the_import_alone(
        tmp_path,
        "import torch\n"
        "from torch_to_nnef.torch_graph import TorchModuleIRGraph, TorchModuleTracer, TorchOp\n"
        "tracer = TorchModuleTracer(torch.nn.Tanh(), args=(torch.randn(2, 3),))\n"
        "graph = TorchModuleIRGraph(tracer, is_root_module=True)\n",
    )
    (op,) = found["graph"].op_nodes
    assert isinstance(op, found["TorchOp"])
    assert op.kind == "aten::tanh"


def test_44_build_io(tmp_path: Path) -> None:
    """`build_io` writes inputs and outputs by the import alone."""
    text = (
        "import torch\n"
        "from torch_to_nnef.inference_target.tract import build_io\n"
        "model, x = torch.nn.Tanh(), torch.randn(2, 3)\n"
        "names = build_io(model, x, io_npz_path=folder / 'io.npz', input_names=['x'], output_names=['y'])\n"
    )
    found = run_by_the_import_alone(tmp_path, text)
    assert found["names"] == (["x"], ["y"])
    arrays = np.load(tmp_path / "io.npz")
    np.testing.assert_array_equal(arrays["x"], found["x"].numpy())
    np.testing.assert_allclose(arrays["y"], np.tanh(arrays["x"]), rtol=1e-6)


def test_45_pulse(tmp_path: Path) -> None:
    """`tract --pulse S=8` is as it was: an archive is streamed by the engine; `pulse=8` checks that."""
    target = TractNNEF(VERSION, dynamic_axes={"input": {2: "S"}})
    result = export_model_to_nnef(nn.Conv1d(3, 5, 4), torch.randn(1, 3, 33), tmp_path / "m.tgz", target)
    assert check_streaming(result, 8, Judgement.parse("approximate")).passed
    (move,) = (one for one in moves() if "--pulse" in one.old)
    assert "`TractNNEF(version, pulse=8)`" in move.note


def test_48_complex_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`feature_flags={COMPLEX}` is reported, and refused with what to write."""
    text = "from torch_to_nnef.inference_target.tract import TractFeatureFlag as F\nflags = {F.COMPLEX}\n"
    assert "torch.view_as_real" in left(tmp_path, capsys, text)
    with pytest.raises(InputError, match="view_as_real"):
        TractNNEF(VERSION, {TractFeatureFlag.COMPLEX}, offline=True)


def test_51_export_llm(capsys: pytest.CaptureFixture[str]) -> None:
    """The options of t2n_export_llm_to_tract are taken by `t2n export-llm`, with a note."""
    old = ["-d", "llama", "-e", "out", "-dt", "f16", "-c", "min_max_q4_0_all", "-n", "raw", "-nv"]
    assert rename_options(old) == ["llama", "-o", "out", "--dtype", "f16", "--weights", "q4_0", "--no-check"]
    assert "note: " in capsys.readouterr().err
    assert rename_options(["-s", "meta-llama/Llama-2-7b-hf"]) == ["meta-llama/Llama-2-7b-hf"]


def test_52_export_peft_differs() -> None:
    """t2n_export_peft_to_nnef is in the table with the command that writes adapters."""
    (move,) = (one for one in moves() if one.old == "t2n_export_peft_to_nnef")
    assert move.new == "t2n export-tensors"
    assert "--names '*lora*'" in move.note


def test_new_names_are_public_ones() -> None:
    """Each new name in the package itself is one that it exports."""
    own = {move.new.removeprefix("t2n_core.") for move in moves() if move.new.startswith("t2n_core.")}
    assert {name for name in own if "." not in name} <= {*t2n_core.__all__, "__version__"}


def test_each_difference_has_a_test() -> None:
    """Each snippet that differs has a test, and each test that differs has a reason."""
    numbers = {name.split("_")[1] for name in globals() if name.startswith("test_") and name.endswith("_differs")}
    assert {item.split()[0] for item in DIFFERS} == numbers
