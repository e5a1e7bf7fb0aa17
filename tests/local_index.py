"""A package index in a folder, in place of the real one."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging import tags

from t2n_core.engine.provision import index as index_module
from t2n_core.errors import EngineError


@dataclass(frozen=True)
class LocalIndex:
    """A package index in a folder, with wheels named `tract` that hold anything; pip alone knows where it is."""

    root: Path

    @property
    def _project(self) -> Path:
        return self.root / "tract"

    def add(self, version: str, library: bytes = b"library", *, stated_sha256: str | None = None) -> Path:
        """A wheel for this platform; `stated_sha256` is what the index says if it is to lie."""
        tag = next(tags.platform_tags())
        wheel = self._project / f"tract-{version}-cp311-cp311-{tag}.whl"
        info = f"tract-{version}.dist-info"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("tract/__init__.py", "raise RuntimeError('never imported')")
            archive.writestr("tract/tract.cpython-311.so", library)
            archive.writestr("tract.libs/libhelper.so", b"helper of " + version.encode())
            archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tract\nVersion: {version}\n")
            archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-{tag}\n")
            archive.writestr(f"{info}/LICENSE", "MIT")
            archive.writestr(f"{info}/RECORD", "")
        digest = stated_sha256 or hashlib.sha256(wheel.read_bytes()).hexdigest()
        page = self._project / "index.html"
        link = f'<a href="{wheel.name}#sha256={digest}">{wheel.name}</a><br>\n'
        page.write_text((page.read_text() if page.exists() else "<!DOCTYPE html>\n") + link)
        return wheel

    def vanish(self) -> None:
        self.root.rename(self.root.with_name("gone"))

    def answer(self, arguments: Sequence[str], error: type[EngineError], problem: str) -> str:
        """In place of `run_pip`: the same answers without a second of waiting for pip."""
        version = arguments[-1].removeprefix("tract==")
        wheels = {wheel.name.split("-")[1]: wheel for wheel in self._project.glob("tract-*.whl")}
        if arguments[0] == "index":
            if not wheels:
                raise error(problem)
            if "--json" not in arguments:  # a pip before 25.1
                return f"tract ({next(iter(wheels))})\nAvailable versions: {', '.join(wheels)}\n"
            return json.dumps({"name": "tract", "versions": list(wheels)})
        if version not in wheels:
            raise error(problem)
        wheel = wheels[version]
        if arguments[0] == "download":
            shutil.copy(wheel, next(a for a in arguments if a.startswith("--dest=")).removeprefix("--dest="))
            return ""
        match = re.search(f"{re.escape(wheel.name)}#sha256=([0-9a-f]+)", (self._project / "index.html").read_text())
        assert match
        info = {"url": wheel.as_uri(), "archive_info": {"hashes": {"sha256": match[1]}}}
        return json.dumps({"install": [{"download_info": info}]})


@pytest.fixture
def pip_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command of every call of pip."""
    calls: list[str] = []
    real = index_module.run_pip

    def record(arguments: Sequence[str], error: type[EngineError], problem: str) -> str:
        calls.append(arguments[0])
        return real(arguments, error, problem)

    monkeypatch.setattr(index_module, "run_pip", record)
    return calls


@pytest.fixture
def quick_index(local_index: LocalIndex, monkeypatch: pytest.MonkeyPatch) -> LocalIndex:
    """As `local_index`, with a stand-in for pip."""
    monkeypatch.setattr(index_module, "run_pip", local_index.answer)
    return local_index


@pytest.fixture
def local_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalIndex:
    """pip sees this index and nothing else; no answer of an earlier test is remembered."""
    root = tmp_path / "index"
    (root / "tract").mkdir(parents=True)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", root.as_uri())
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setattr(index_module, "_answers", {})
    return LocalIndex(root)
