"""The code of `docs/torch_graph.md`, run as it stands, on a real engine."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs" / "torch_graph.md"


def test_the_code_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = DOCS.read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "tagger.py"
    file.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("tagger", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "tagger", module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    printed = capsys.readouterr().out
    (shown,) = re.findall(r"^```text\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    for line in shown.splitlines():
        if "…" not in line:
            assert line.split("#")[0].strip() in printed, line
    assert re.search(r"tagger.py:\d+ in forward: `y = self.out\(", printed)
