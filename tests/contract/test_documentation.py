"""The code of README and docs, run as it stands: exported, and proven in real engines."""

from __future__ import annotations

import ast
import lzma
import re
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import conformance.cases.models.libraries  # noqa: F401
from t2n_core import ModelExport, TractNNEF
from t2n_core.op.custom_extractors import ModuleInfoExtractor
from t2n_core.rewriter import Rewriter
from tests.pages import ROOT, Block, Page, functions_of, has_tests, missing_lines, pages, run_command
from tests.releases import NEWEST, RECENT
from tools.report_page import RECORDS
from tools.report_page import page as page_of_report

ENGINES = f"0.21.19,{RECENT}"
LANGUAGES = {"python", "rust", "sh", "text", "log", "toml", "json", "yaml", "mermaid"}
WIDTH = 88
"""Columns of code that a page of the site shows without scrolling."""
RunPage = Callable[[str], dict[str, Any]]


@pytest.fixture
def run_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunPage]:
    """A function that runs the program of a page in this process and returns its names."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(11)
    extractors = dict(ModuleInfoExtractor._registered)

    def run(name: str) -> dict[str, Any]:
        page = Page(ROOT / name)
        file = tmp_path / page.program_name
        file.write_text(page.program, encoding="utf-8")
        module = types.ModuleType(file.stem)
        module.__file__ = str(file)
        monkeypatch.setitem(sys.modules, file.stem, module)
        exec(compile(page.program, str(file), "exec"), vars(module))
        return vars(module)

    yield run
    ModuleInfoExtractor._registered.clear()
    ModuleInfoExtractor._registered.update(extractors)


@pytest.mark.parametrize("page", [page for page in pages() if page.of("python") or page.commands], ids=lambda p: p.name)
def test_a_page(page: Page, run_page: RunPage, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name, text in page.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    if page.of("python"):
        run_page(page.name)
    printed = "".join(capfd.readouterr())
    commands = page.commands
    for name, text in page.files.items():
        if name.endswith(".py") and has_tests(text) and not any(name in command for command, _ in commands):
            commands.insert(0, (f"pytest {name} --t2n-tract={ENGINES}", True))
    for command, succeeds in commands:
        code, output = run_command(command, tmp_path)
        assert (code == 0) == succeeds, f"{command}\n{output}"
        printed += output
    for block in page.of("text"):
        assert missing_lines(block.text, printed) == [], printed


def blocks(of: list[Page]) -> Iterator[tuple[str, Block]]:
    """Yield the place and the block of all code of some pages."""
    return ((f"{page.name}:{block.line}", block) for page in of for block in page.blocks)


def test_blocks_are_run_or_say_why_not() -> None:
    kinds = {location: (block.language, bool(block.not_run)) for location, block in blocks(pages())}
    assert {location: language for location, (language, _) in kinds.items() if language not in LANGUAGES} == {}
    assert [location for location, kind in kinds.items() if kind[1] and kind[0] not in ("sh", "python", "rust")] == []
    assert [location for location, kind in kinds.items() if kind == ("rust", False)] == [], "no test compiles this"


def test_functions_of_a_program_stand_once() -> None:
    """The second one alone would run."""
    files = [(page.name, name, text) for page in pages() for name, text in page.files.items() if name.endswith(".py")]
    functions = Counter((page, name, function) for page, name, text in files for function in functions_of(text))
    assert [location for location, count in functions.items() if count > 1] == []


def test_excuses_are_hidden_from_readers_and_stand_above_a_block() -> None:
    stated = {page.name: page.path.read_text("utf-8").count("by a test: ") for page in pages()}
    assert stated == {page.name: sum(bool(block.not_run) for block in page.blocks) for page in pages()}


def test_code_fits_the_page() -> None:
    """Output keeps its own lines, and the site wraps them."""
    code = [(location, block) for location, block in blocks(pages()[1:]) if block.language not in ("text", "log")]
    assert [(location, line) for location, block in code for line in block.text.splitlines() if len(line) > WIDTH] == []


def test_the_live_report_is_made_of_recorded_results_without_paths_of_a_machine() -> None:
    records = lzma.decompress(RECORDS.read_bytes()).decode()
    assert re.findall(r"/(?:tmp|root|home|work)/[^\"]*", records) == []
    cells = records.count('{"type":"cell"')
    stated = (ROOT / "docs/reference/report.md").read_text("utf-8")
    assert f"A report of {cells:,} cells" in stated
    assert f" of {cells} cells" in page_of_report()


def test_each_message_of_the_troubleshooting_page_is_in_the_code() -> None:
    page = (ROOT / "docs/how-to/failures/troubleshooting.md").read_text("utf-8")
    messages = re.findall(r"^### `(.+)`$", page, re.MULTILINE)
    assert len(messages) >= 20
    files = [path for package in ("t2n_core", "pytest_t2n") for path in (ROOT / package).rglob("*.py")]
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    for message in messages:
        parts = [part.strip(" :,") for part in message.split("…")]
        assert max(map(len, parts)) >= 10, f"{message} fits any message"
        assert [part for part in parts if not any(part in text for text in texts)] == [], message


def test_pages_are_for_readers_who_do_not_see_the_repository() -> None:
    for page in pages():
        text = re.sub(r"<!--.*?-->", "", page.path.read_text("utf-8"))
        opening = re.split(r"^## ", text, flags=re.MULTILINE)[0]
        assert re.findall(r"python -m (?:conformance|tools)\S*", opening) == [], page.name
        if "/explanation/" not in page.name:
            assert re.findall(r"tests/(?:contract|unit|plugin)\S*", text) == [], page.name


def test_links_lead_to_files() -> None:
    made = ("matrix/index.html", "definitions/index.md", "onnx/index.md", "onnx/architectures.md")  # of hooks of mkdocs
    for page in [*pages(), Page(ROOT / "CONTRIBUTING.md")]:
        links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.path.read_text("utf-8"))
        local = [link for link in links if not link.startswith(("http://", "https://")) and not link.endswith(made)]
        assert [link for link in local if not (page.path.parent / link).exists()] == [], page.name


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150


def test_extractors(run_page: RunPage, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = run_page("docs/how-to/extractors.md")
    assert len(capsys.readouterr().out.split()) == 2
    assert sorted(p.name for p in tmp_path.glob("*.tgz")) == ["gate-0.21.nnef.tgz", "gate-0.23.nnef.tgz"]
    sizes = {tuple(sample.sizes.values()) for sample in page["export"].samples}
    assert len(sizes) > 3
    silent = [s for s in page["export"].samples if (s.expected[1] == 0).any() and (s.expected[1] != 0).any()]
    assert silent  # some frames are below the floor and some are not: both branches are proven


def test_rewriters(run_page: RunPage, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = run_page("docs/how-to/rewriters.md")
    printed = capsys.readouterr().out
    assert "applied 1 times" in printed
    places = re.findall(r"rewriters\.py:(\d+)", printed.partition("equally specific")[2])
    assert len(places) == 2
    assert [p.name for p in tmp_path.glob("*.tgz")] == ["clipped.nnef.tgz"]
    assert isinstance(page["no_gelu"], Rewriter)


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


def test_each_rewriter_of_the_page(run_page: RunPage, tmp_path: Path) -> None:
    page = run_page("docs/how-to/rewriters.md")
    page["loads"] = __import__("json").loads
    rewriters = {name: value for name, value in page.items() if isinstance(value, Rewriter)}
    assert set(rewriters) - set(MODELS) == {"one", "two"}
    for name, make in MODELS.items():
        export = ModelExport(make(page).eval(), (torch.randn(5, 3, 6),), rewriters=[rewriters[name]])
        for version in ("0.21.19", NEWEST):
            result = export.to(TractNNEF(version), tmp_path / "one.nnef.tar")
            result.assert_parity("approximate")
            assert bool(result.rewrites.applied) == (name != "matmul__tract" or version < "0.22")
