"""The code of documentation pages, run as it stands: exported, and proven in real engines."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from t2n_core import ModelExport, TractNNEF
from t2n_core.op.custom_extractors import ModuleInfoExtractor
from t2n_core.rewriter import Rewriter

DOCS = Path(__file__).parents[2] / "docs"


def blocks_of(page: str) -> str:
    """All Python blocks of a page, as one program whose lines are those of the page."""
    lines, inside = [], False
    for line in (DOCS / page).read_text("utf-8").splitlines():
        if line.startswith("```"):
            inside = line == "```python"
            lines.append("")
        else:
            lines.append(line if inside else "")
    return "\n".join(lines)


@pytest.fixture
def run_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(11)
    known = dict(ModuleInfoExtractor._registered)

    def run(page: str) -> dict[str, Any]:
        module = types.ModuleType(page.replace(".", "_"))
        monkeypatch.setitem(__import__("sys").modules, module.__name__, module)
        exec(compile(blocks_of(page), str(DOCS / page), "exec"), vars(module))
        return vars(module)

    yield run
    ModuleInfoExtractor._registered.clear()
    ModuleInfoExtractor._registered.update(known)


def test_extractors(run_page: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = run_page("extractors.md")
    assert len(capsys.readouterr().out.split()) == 2
    assert sorted(p.name for p in tmp_path.glob("*.tgz")) == ["gate-0.21.nnef.tgz", "gate-0.23.nnef.tgz"]
    sizes = {tuple(sample.sizes.values()) for sample in page["export"].samples}
    assert len(sizes) > 3
    silent = [s for s in page["export"].samples if (s.expected[1] == 0).any() and (s.expected[1] != 0).any()]
    assert silent  # some frames are below the floor and some are not: both branches are proven


def test_rewriters(run_page: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = run_page("rewriters.md")
    printed = capsys.readouterr().out
    assert "applied 1 times" in printed
    places = re.findall(r"rewriters\.md:(\d+)", printed.partition("equally specific")[2])
    assert len(places) == 2
    assert [p.name for p in tmp_path.glob("*.tgz")] == ["clipped.nnef.tgz"]
    assert isinstance(page["no_gelu"], Rewriter)
    assert len(blocks_of("rewriters.md").strip()) > 1000


MODELS = {
    "clipped_forward": lambda page: page["Clipped"](),
    "matmul__tract": lambda page: Calling(lambda x: x @ x.mT),
    "gelu__aten": lambda page: Calling(
        lambda x: torch.nn.functional.gelu(x) * torch.nn.functional.gelu(x, approximate="tanh")
    ),
    "loads__any": lambda page: Calling(lambda x: x * page["loads"]("2.0")),
    "gate__tract": lambda page: torch.nn.Sequential(torch.nn.Linear(6, 4), page["Gate"]()),
    "plain_gate": lambda page: torch.nn.Sequential(torch.nn.Linear(6, 4), page["Gate"]()),
    "silu__tract": lambda page: torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.SiLU()),
    "no_gelu": lambda page: torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.GELU()),
    "cube__any": lambda page: Calling(lambda x: page["Cube"].apply(x, 0.5)),
}


class Calling(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.function(x)
        return result


def test_each_rewriter_of_the_page(run_page: Any, tmp_path: Path) -> None:
    page = run_page("rewriters.md")
    page["loads"] = __import__("json").loads
    rewriters = {name: value for name, value in page.items() if isinstance(value, Rewriter)}
    assert set(rewriters) - set(MODELS) == {"one", "two"}
    for name, make in MODELS.items():
        export = ModelExport(make(page).eval(), (torch.randn(5, 3, 6),), rewriters=[rewriters[name]])
        for version in ("0.21.19", "0.23.9"):
            result = export.to(TractNNEF(version), tmp_path / "one.nnef.tar")
            result.assert_parity("approximate")
            assert bool(result.rewrites.applied) == (name != "matmul__tract" or version < "0.22")
