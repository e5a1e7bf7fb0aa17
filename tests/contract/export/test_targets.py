"""Each hook of the target in `docs/how-to/own-target.md`; `test_documentation.py` runs the page itself."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF, export_model_to_nnef
from t2n_core.errors import InputError, LowerError, ParityError
from tests.pages import ROOT, Page

DOC = Page(ROOT / "docs" / "how-to" / "own-target.md")


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(DOC.program, str(DOC.path), "exec"), names)
    torch.manual_seed(5)
    return names


def text_of(archive: Path) -> str:
    with tarfile.open(archive) as tar:
        stream = tar.extractfile("graph.nnef")
        assert stream is not None
        return stream.read().decode()


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


def test_post_trace_refuses_with_the_source_line(example: dict[str, Any], tmp_path: Path) -> None:
    target = example["ProductTarget"]("m", forbidden=["aten::lstm.input"])
    with pytest.raises(LowerError, match=r"(?s)no time for this operator.*aten::lstm"):
        export_model_to_nnef(nn.LSTM(4, 3).eval(), torch.randn(5, 2, 4), tmp_path / "model.nnef.tgz", target)


def test_post_trace_edits_its_own_copy(tmp_path: Path) -> None:
    """One target leaves the last operator out; the next one of the same capture has it."""

    class WithoutLast(TractNNEF):
        def post_trace(self, graph: Any) -> None:
            graph.outputs = [graph.op_nodes[-1].inputs[0]]
            graph.op_nodes.pop()

    export = ModelExport(nn.Sequential(nn.Linear(4, 3), nn.Tanh()).eval(), torch.randn(2, 4))
    edited = export.to(WithoutLast("0.23.9"), tmp_path / "edited.tgz")
    assert "tanh" not in text_of(edited.archive)
    assert not edited.check_parity().passed
    plain = export.to(TractNNEF("0.23.9"), tmp_path / "plain.tgz")
    assert "tanh" in text_of(plain.archive)
    plain.assert_parity()
