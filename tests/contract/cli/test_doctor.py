"""`t2n doctor`: findings, and the exit status of a machine where nothing can work."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from pytest_t2n.cli import main
from t2n_core import __version__
from t2n_core.engine.provision import index
from t2n_core.engine.provision.store import EngineStore
from t2n_core.errors import EngineResolveError
from tests.releases import NEWEST

ENGINES_IN_CACHE = (NEWEST,)


def lines(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Return the findings by their part, with their mark; a project has several."""
    printed = [
        (line[5:].split()[0], f"{line[:4].strip()} {line[16:]}") for line in capsys.readouterr().out.splitlines()
    ]
    parts = [part for part, _ in printed if part != "project"]
    assert len(parts) == len(set(parts))
    return dict(printed)


def test_a_machine_that_works(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--offline"]) == 0
    findings = lines(capsys)
    assert findings["t2n"].startswith(f"ok {__version__}, Python 3.")
    assert findings["torch"].startswith("ok 2.")
    assert findings["engine"].startswith("ok tract 0.")
    assert findings["engine"].endswith("computes relu")
    assert "network" not in findings


def test_a_release_that_is_not_known_is_no_fault_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_disk = EngineStore.versions_on_disk
    monkeypatch.setattr(EngineStore, "versions_on_disk", lambda self: [*on_disk(self), Version("0.99.0")])
    monkeypatch.setattr(index, "ask_index", lambda: (Version(NEWEST), Version("0.99.0")))
    assert main(["doctor"]) == 0
    findings = lines(capsys)
    assert findings["engine"] == f"ok tract {NEWEST} computes relu"
    assert findings["network"].endswith("newest 0.99.0; 0.99.0 is newer than what this version knows")


def test_without_network_and_cache_nothing_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_answer(*_: Any) -> str:
        raise EngineResolveError("the package index returned no versions of tract (no route to host)")

    monkeypatch.setattr(index, "run_pip", no_answer)
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", "--cache-dir", str(tmp_path / "none")]) == 1
    findings = lines(capsys)
    assert findings["network"].startswith("BAD the package index did not answer pip")
    assert findings["project"] == f"note no pytest configuration in {tmp_path} or above"
    assert findings["engine"].startswith("note none in the cache yet")
    assert main(["doctor"]) == 0, "the cache has engines"
    assert lines(capsys)["network"].startswith("note ")


def test_what_is_not_installed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    version = importlib.metadata.version
    missing: dict[str, str | None] = {"torch": None, "sympy": "1.0"}

    def found(name: str) -> str:
        package_version = missing.get(name, version(name))
        if package_version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return package_version

    monkeypatch.setattr(importlib.metadata, "version", found)
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: REQUIREMENTS)
    assert main(["doctor", "--offline"]) == 0
    findings = lines(capsys)
    assert findings["torch"] == "note not installed: pip install 'pytest-t2n[torch]', to export models"
    assert findings["sympy"] == "note 1.0 is not >=1.13.3"
    assert "duckdb" not in findings
    missing.update(torch="2.90.0", sympy=None)
    assert main(["doctor", "--offline"]) == 0
    findings = lines(capsys)
    assert findings["torch"].startswith("note torch 2.90.0 is newer than ")
    assert findings["sympy"] == "note not installed: pip install 'pytest-t2n[upstream]', to reduce and profile archives"
    missing["numpy"] = None
    assert main(["doctor", "--offline"]) == 1
    assert lines(capsys)["numpy"] == "BAD not installed"


REQUIREMENTS = [
    "numpy>=1.26",
    "rich>=13",
    'torch<2.16,>=2.13; extra == "torch"',
    'pytest-t2n[upstream]; extra == "torch"',
    'sympy>=1.13.3; extra == "torch"',
    'sympy>=1.13.3; extra == "upstream"',
    'duckdb>=2; extra == "history"',
]


def test_it_imports_no_torch() -> None:
    program = (
        "import sys; from pytest_t2n.cli import main; main(['doctor', '--offline']); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0


def test_output_that_nobody_reads_to_its_end() -> None:
    words = [sys.executable, "-m", "pytest_t2n.cli", "doctor", "--offline"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(timeout=120) == 1
        assert process.stderr.read() == ""
