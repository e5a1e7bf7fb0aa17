"""Exporters by name, and the environments that they run in."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from t2n_core import Exporter, ExportRequest
from t2n_core.entry_points import load_entry_points
from t2n_core.errors import InputError
from t2n_core.exporters import builtin, registry
from t2n_core.exporters.environment import (
    environments_folder,
    make_environment,
    missing_requirements,
    python_of,
    version_of,
)
from t2n_core.exporters.registry import BUILTIN, check_names, find_exporter, name_of


class Toy(Exporter):
    """An exporter of another package."""

    name = "toy"

    def export(self, request: ExportRequest) -> None:
        raise NotImplementedError


class Mine(Toy):
    """An exporter of a session."""

    name = "mine"


class Needy(Toy):
    """An exporter with requirements: one that is here, one that is not, one that is older here."""

    requirements = ("numpy>=1.26", "no-such-distribution>=1", "torch>=99")
    distribution = "numpy"


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points of packages: one that is right, and three that are not."""
    points = {"toy": Toy, "other": Toy, "broken": dict, "abstract": type("Abstract", (Exporter,), {"name": "abstract"})}
    monkeypatch.setattr(registry, "load_entry_points", lambda group: points if group == "t2n.exporters" else {})


@pytest.mark.parametrize("name", BUILTIN)
def test_a_built_in_exporter_has_the_name_that_finds_it(name: str) -> None:
    exporter = find_exporter(name, {})
    assert exporter.name == name
    assert exporter.suffix in (".nnef.tgz", ".onnx")
    assert type(exporter).__module__ == builtin.__name__
    assert not exporter.converts or exporter.converts in BUILTIN


@pytest.mark.parametrize(("name", "others"), [("toy", {}), ("mine", {"mine": Mine}), ("mine", {"mine": Mine()})])
def test_an_exporter_of_a_package_or_of_the_session(name: str, others: dict[str, Any]) -> None:
    assert isinstance(find_exporter(name, others), Toy)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("torch-onx", "there is no exporter 'torch-onx'; .*torch-onnx"),
        ("min", "there is no exporter 'min'; .*mine"),
        ("broken", "the exporter 'broken' is .*, not a subclass of t2n_core.Exporter"),
        ("text", "the exporter 'text' is 'net', not a subclass of t2n_core.Exporter"),
        ("other", "the exporter 'other' is .*Toy.*, which has the name 'toy'"),
        ("abstract", "the exporter 'abstract' cannot be created: .*export"),
        ("lite", "the exporter 'lite' writes 'tflite', not nnef or onnx"),
    ],
)
def test_what_is_no_exporter_is_told(name: str, message: str) -> None:
    lite = type("Lite", (Toy,), {"name": "lite", "format": "tflite"})
    with pytest.raises(InputError, match=message):
        find_exporter(name, {"mine": Mine, "text": "net", "lite": lite})


@pytest.mark.parametrize("name", ["", "my exporter", "a[b]", "2x", 3, None])
def test_a_name_that_no_option_can_have(name: Any) -> None:
    with pytest.raises(InputError, match=r"has the name .*, not one of letters, digits"):
        name_of(type("Nameless", (Toy,), {"name": name}))


@pytest.mark.parametrize("name", ["t2n", "torch-onnx"])
def test_a_name_of_another_exporter(name: str) -> None:
    with pytest.raises(InputError, match=f"has the name '{name}', which is another exporter's"):
        name_of(type("Double", (Toy,), {"name": name}))
    assert name_of(Toy) == "toy"


def test_a_package_with_the_name_of_another_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "load_entry_points", lambda group: {"torch-onnx": Toy})
    with pytest.raises(InputError, match="registers the exporter 'torch-onnx', which is another exporter's name"):
        find_exporter("torch-onnx", {})


def test_names_are_checked_without_loading_an_exporter() -> None:
    check_names(["torch-onnx", "toy", "mine"], ["mine"])
    with pytest.raises(InputError, match="there is no exporter 'mine'"):
        check_names(["mine"])


def test_the_group_of_entry_points_is_known() -> None:
    assert "t2n" not in {*BUILTIN, *load_entry_points("t2n.exporters")}, "the name of this package's own"


def test_missing_requirements_are_named(tmp_path: Path) -> None:
    assert missing_requirements(Toy()) == []
    assert missing_requirements(Needy()) == ["no-such-distribution>=1", "torch>=99"]
    with pytest.raises(InputError, match="the exporter toy needs no-such-distribution>=1, torch>=99") as refusal:
        python_of(Needy(), tmp_path)
    assert "t2n exporters install toy" in str(refusal.value.hint)
    assert python_of(Toy(), tmp_path) == Path(sys.executable)


def test_the_version_is_that_of_the_environment_of_the_exporter(tmp_path: Path) -> None:
    import numpy as np

    assert version_of(Toy(), tmp_path) == ""
    assert version_of(Needy(), tmp_path) == np.__version__
    home = tmp_path / "toy"
    packages = home / ("Lib" if sys.platform == "win32" else f"lib/python3.{sys.version_info[1]}") / "site-packages"
    (packages / "numpy-9.8.7.dist-info").mkdir(parents=True)
    (packages / "numpy-9.8.7.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 9.8.7\n")
    assert version_of(Needy(), tmp_path) == np.__version__, "an environment that is not complete"
    (home / "ready").touch()
    assert version_of(Needy(), tmp_path) == "9.8.7"
    assert python_of(Needy(), tmp_path).is_relative_to(home)


def test_environments_are_in_the_cache_of_the_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert environments_folder(tmp_path) == tmp_path / "exporters"
    monkeypatch.setenv("T2N_CACHE_DIR", str(tmp_path / "own"))
    assert environments_folder() == tmp_path / "own" / "exporters"


def test_an_environment_that_pip_refuses_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_pip(home: Path, with_pip: bool, clear: bool) -> None:
        python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        python.parent.mkdir(parents=True)
        python.write_text("#!/bin/sh\nexit 1\n")
        python.chmod(0o755)

    monkeypatch.setattr("venv.create", no_pip)
    with pytest.raises(InputError, match=r"pip could not install torch==.*no-such-distribution>=1"):
        make_environment(Needy(), tmp_path)
    with pytest.raises(InputError, match="needs no-such-distribution"):
        python_of(Needy(), tmp_path)
