"""What importing the engines costs: never torch, and numpy only where arrays are."""

from __future__ import annotations

import subprocess
import sys

import pytest


def modules_after(statement: str) -> set[str]:
    script = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import t2n_core.engine", {"torch", "numpy", "packaging", "msgspec", "platformdirs", "filelock"}),
        ("from t2n_core.engine import resolve_engines, ResolvedEngine", {"torch", "numpy"}),
        ("import pytest_t2n.cli", {"torch", "numpy", "rich", "packaging"}),
        ("import pytest_t2n.cli.engines", {"torch", "numpy"}),
        ("from t2n_core.engine import engine_for, close_all", {"torch", "pytest"}),
        ("import t2n_core.engine.tract.worker", {"torch", "packaging", "msgspec", "subprocess", "pytest"}),
    ],
)
def test_imports_stay_cheap(statement: str, absent: set[str]) -> None:
    loaded = modules_after(statement)
    assert "t2n_core.errors" in loaded or statement == "import t2n_core.engine"
    assert not absent & loaded


def test_only_public_names_are_promised() -> None:
    import t2n_core.engine as engine

    for name in engine.__all__:
        assert getattr(engine, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = engine.nothing
    assert set(engine.__all__) <= set(dir(engine))
