"""Packages that bring operators, rewriters and targets by entry points, as pip would have installed them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.releases import RECENT

ROOT = Path(__file__).parents[3]
PACKAGE = '''
import torch
from torch import nn

from t2n_core import TractNNEF, rewriter


@torch.library.custom_op("brought::thrice", mutates_args=())
def thrice(x: torch.Tensor) -> torch.Tensor:
    return x * 3.0


@thrice.register_fake
def _(x):
    return torch.empty_like(x)


@rewriter.module(nn.Dropout2d)
def without_dropout(module):
    return nn.Identity()


class Labelled(TractNNEF):
    """Writes a label."""

    def __init__(self, version="0.23", *, label="none", **options):
        super().__init__(version, specific_properties={"label": label}, **options)


class Net(nn.Module):
    def forward(self, x):
        return thrice(x)


def make():
    return Net(), {"x": torch.randn(2, 3)}
'''
RULES = '''
import brought

from t2n_core.op.registry import op


@op("brought::thrice")
def thrice(g, x):
    """x times three."""
    return g.mul(x, 3.0)
'''
POINTS = """
[t2n.operators]
brought = brought_rules

[t2n.rewriters]
brought = brought:without_dropout

[t2n.targets]
labelled = brought:Labelled
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with a package and its metadata."""
    (tmp_path / "brought.py").write_text(PACKAGE)
    (tmp_path / "brought_rules.py").write_text(RULES)
    info = tmp_path / "brought-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    return tmp_path


def t2n(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command with the folder's packages installed."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    command = [sys.executable, "-m", "pytest_t2n.cli", *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_an_operator_and_a_target(installed: Path) -> None:
    words = ["export", "brought:make", "-o", "net", "--target", "labelled", "--option", "label=m1"]
    done = t2n(installed, *words)
    assert done.returncode == 0, done.stderr
    assert f"proven in tract {RECENT}" in done.stdout
    text = (installed / "net" / "graph.nnef").read_text()
    assert '("label", "m1")' in text
    assert "mul(" in text


def test_a_rewriter(installed: Path) -> None:
    program = (
        "import brought; from t2n_core.rewriter.builtin import builtin_rewriters; "
        "assert brought.without_dropout in builtin_rewriters()"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(installed), str(ROOT)])}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


def test_what_cannot_be_loaded_is_named(installed: Path) -> None:
    (installed / "brought_rules.py").write_text("import nothing_here")
    done = t2n(installed, "export", "brought:make", "-o", "net", "--target", "labelled")
    assert done.returncode == 1
    assert "brought provides `brought` in t2n.operators, and brought_rules cannot be loaded" in done.stderr


def test_a_target_that_nobody_brings(installed: Path) -> None:
    done = t2n(installed, "export", "brought:make", "-o", "net", "--target", "none")
    assert done.returncode == 1
    assert "there is no target `none`; there are tract, khronos, labelled" in done.stderr
