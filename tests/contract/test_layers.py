"""The plugin imports torch and numpy late, and the converter exports its public names.

The layers of both packages are contracts of import-linter, in pyproject.toml.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def modules(package: str) -> Iterator[Path]:
    return (ROOT / package).rglob("*.py")


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """(module, at import time) of every import in a file; those under TYPE_CHECKING do not count."""
    tree = ast.parse(path.read_text("utf-8"))
    guarded = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for child in ast.walk(node)
    }
    inner = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) not in inner
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, id(node) not in inner


def test_the_plugin_imports_torch_and_numpy_late() -> None:
    early = [(str(path), name) for path in modules("pytest_t2n") for name, is_early in imports(path) if is_early]
    assert len(early) > 500
    assert [(path, name) for path, name in early if name.split(".")[0] in ("torch", "numpy")] == []


@pytest.mark.parametrize(
    "command", ["check", "reduce", "bundle", "bisect-releases", "upgrade", "matrix run", "matrix diff"]
)
def test_commands_that_run_no_test_do_not_load_pytest(command: str) -> None:
    code = (
        "import sys\nfrom pytest_t2n.cli.command import main\n"
        f"try:\n    main({[*command.split(), '--help']})\n"
        "except SystemExit:\n    sys.exit(int('pytest' in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def test_public_names() -> None:
    import t2n_core

    assert sorted(t2n_core.__all__) == t2n_core.__all__
    for name in t2n_core.__all__:
        assert getattr(t2n_core, name).__name__ == name
