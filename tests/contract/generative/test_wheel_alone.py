"""`docs/how-to/state/language-models.md`: its `decode.py` decodes where only numpy and the wheel of tract are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from pytest_t2n.cli.command import main
from tests.bare import bare_packages, run_alone
from tests.contract.generative.test_export_generative import llama, recurrent, windowed
from tests.pages import ROOT, Page

DECODE = Page(ROOT / "docs" / "how-to" / "state" / "language-models.md").files["decode.py"]
PROMPT = [5, 17, 3, 8, 44, 2, 9]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bare_packages(tmp_path_factory.mktemp("packages"))


@pytest.mark.parametrize(
    ("make", "options"),
    [(llama, []), (llama, ["--step-archive"]), (windowed, []), (recurrent, [])],
    ids=["llama", "llama-step", "windowed", "recurrent"],
)
def test_a_folder_of_a_model_becomes_tokens(
    make: Any, options: list[str], bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = make()
    model.save_pretrained("model")
    (tmp_path / "decode.py").write_text(DECODE)
    assert (
        main(["export-llm", "model", "-o", "exported", "--tract=0.23", "--no-tokenizer", "--no-check", *options]) == 0
    )
    assert (tmp_path / "exported" / "step.nnef.tgz").exists() == bool(options)
    printed = run_alone(bare, "decode.py", "exported", *map(str, PROMPT), folder=tmp_path)
    given = torch.tensor([PROMPT])
    greedy = {"max_new_tokens": 12, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    expected = model.generate(given, attention_mask=torch.ones_like(given), **greedy)[0, len(PROMPT) :].tolist()
    assert list(map(int, printed.split())) == expected
    assert len(set(expected)) > 2, "tokens that prove little"
