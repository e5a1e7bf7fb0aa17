"""Each hook of the target in `docs/how-to/own-target.md`; `test_documentation.py` runs the page itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import ExportResult, ModelExport, TractNNEF, export_model_to_nnef
from t2n_core.errors import InputError, LowerError, ParityError, WriteError
from tests.contract.options.exports import text_of
from tests.pages import ROOT, Page
from tests.releases import NEWEST

DOC = Page(ROOT / "docs" / "how-to" / "own-target.md")


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(DOC.program, str(DOC.path), "exec"), names)
    torch.manual_seed(5)
    return names


def test_the_example_exports_and_is_right(example: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "model.nnef.tgz"
    example["export"](str(path))
    text = text_of(path)
    for part in ('("label", "m1")', "fragment limited(", "output = limited(output_unbounded)", "tract_symbol T"):
        assert part in text


def test_what_a_hook_writes_is_compared_with_pytorch(example: dict[str, Any], tmp_path: Path) -> None:
    """Without the tanh some outputs are beyond the limits that the target sets."""
    path = tmp_path / "model.nnef.tgz"
    with pytest.raises(ParityError):
        export_model_to_nnef(nn.Linear(8, 4).eval(), torch.randn(9, 8) * 9, path, example["ProductTarget"]("m1"))
    assert not path.exists()


def test_pre_trace_refuses(example: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "model.nnef.tgz"
    with pytest.raises(InputError, match="float32 only"):
        export_model_to_nnef(
            example["Model"]().double(), torch.randn(5, 8).double(), path, example["ProductTarget"]("m")
        )
    assert not path.exists()


def test_post_capture_refuses_with_the_source_line(example: dict[str, Any], tmp_path: Path) -> None:
    target = example["ProductTarget"]("m", forbidden=["aten::lstm.input"])
    with pytest.raises(LowerError, match=r"(?s)no time for this operator.*aten::lstm"):
        export_model_to_nnef(nn.LSTM(4, 3).eval(), torch.randn(5, 2, 4), tmp_path / "model.nnef.tgz", target)


def test_post_capture_edits_its_own_copy(tmp_path: Path) -> None:
    """One target leaves the last operator out; the next one of the same capture has it."""

    class WithoutLast(TractNNEF):
        def post_capture(self, graph: Any) -> None:
            graph.outputs = [graph.op_nodes[-1].inputs[0]]
            graph.op_nodes.pop()

    export = ModelExport(nn.Sequential(nn.Linear(4, 3), nn.Tanh()).eval(), torch.randn(2, 4))
    edited = export.to(WithoutLast(NEWEST), tmp_path / "edited.tgz")
    assert "tanh" not in text_of(edited.archive)
    assert not edited.check_parity().passed
    plain = export.to(TractNNEF(NEWEST), tmp_path / "plain.tgz")
    assert "tanh" in text_of(plain.archive)
    plain.assert_parity()


def test_hooks_get_what_they_need(tmp_path: Path) -> None:
    called: dict[str, tuple[Any, ...]] = {}

    class Seen(TractNNEF):
        def pre_trace(self, *given: Any) -> None:
            called["pre_trace"] = given

        def specific_fragments(self, *given: Any) -> list[Any]:
            called["specific_fragments"] = given
            return []

        def post_trace(self, *given: Any) -> None:
            super().post_trace(*given)
            called["post_trace"] = (given[0], list(given[1]))

        def post_write(self, *given: Any) -> None:
            assert given[3].is_file()
            called["post_write"] = given

        def post_export(self, *given: Any) -> None:
            called["post_export"] = given

    model, x = nn.Tanh(), torch.randn(2, 4)
    target = Seen(NEWEST, dynamic_axes={"input": {1: "T"}})
    assert target.has_dynamic_axes
    assert not TractNNEF(NEWEST).has_dynamic_axes
    bundle = tmp_path / "debug"
    export = ModelExport(model, x, output_names=["y"], debug_bundle_path=bundle)
    result = export.to(target, tmp_path / "m.tgz")
    assert list(called) == ["pre_trace", "specific_fragments", "post_trace", "post_write", "post_export"]
    assert called["pre_trace"] == (model, None, ["y"])
    assert called["specific_fragments"] == (model,)
    assert called["post_trace"] == (result.graph, result.graph.extensions)
    assert "tract_symbol T" in result.graph.extensions
    assert called["post_write"] == called["post_export"] == (model, result.graph, [x], tmp_path / "m.tgz", bundle)


def test_post_write_refuses_and_post_export_follows(example: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "model.nnef.tgz"
    with pytest.raises(WriteError, match="do not fit into the firmware"):
        export_model_to_nnef(nn.Linear(800, 800).eval(), torch.randn(2, 800), path, example["ProductTarget"]("m"))
    assert not path.exists()
    example["export"](str(path))
    assert json.loads(Path(f"{path}.json").read_text()) == {"features": [5, 8]}


@pytest.mark.parametrize("calls_super", [True, False])
def test_no_override_of_post_export_switches_the_check_off(calls_super: bool, tmp_path: Path) -> None:
    """`super()` proves the archive; without it the check follows."""
    seen: list[str] = []

    class Wrong(TractNNEF):
        def post_trace(self, nnef_graph: Any, active_custom_extensions: list[str]) -> None:
            super().post_trace(nnef_graph, active_custom_extensions)
            nnef_graph.operations[-1].name = "exp"

        def post_write(self, *given: Any) -> None:
            seen.append("written")

        def post_export(self, *given: Any) -> None:
            if calls_super:
                super().post_export(*given)
            seen.append("after")

    path, x = tmp_path / "m.tgz", torch.randn(2, 4)
    with pytest.raises(ParityError):
        export_model_to_nnef(nn.Tanh(), x, path, Wrong(NEWEST))
    assert not path.exists()
    assert seen == (["written"] if calls_super else ["written", "after"])
    export = ModelExport(nn.Tanh(), x)
    if calls_super:  # also where the caller of the export checks
        with pytest.raises(ParityError):
            export.to(Wrong(NEWEST), path)
    else:
        assert not export.to(Wrong(NEWEST), path).check_parity().passed
    export.to(Wrong(NEWEST, check_io=False), path)


def test_the_check_runs_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Any] = []
    monkeypatch.setattr(ExportResult, "assert_parity", lambda *args: runs.append(args))

    class Own(TractNNEF):
        def post_export(self, *given: Any) -> None:
            super().post_export(*given)

    for target in (TractNNEF(NEWEST), Own(NEWEST), TractNNEF(NEWEST, check_io=False)):
        export_model_to_nnef(nn.Tanh(), torch.randn(2, 4), tmp_path / "m.tgz", target)
    assert len(runs) == 2
    with pytest.raises(InputError, match=r"result\.assert_parity"):
        Own(NEWEST).post_export(nn.Tanh(), None, [], tmp_path)


def test_a_third_target(example: dict[str, Any], tmp_path: Path) -> None:
    target = example["PortableNNEF"]("0.21.19")
    result = ModelExport(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval(), torch.randn(1, 3, 8, 8)).to(
        target, tmp_path / "m.tgz"
    )
    assert result.assert_parity("close").engine == "tract 0.21.19"
    assert "extension" not in text_of(result.archive)
    with pytest.raises(InputError, match="fixed sizes"):
        example["PortableNNEF"](dynamic_axes={"x": {0: "N"}})
