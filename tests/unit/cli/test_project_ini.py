"""Advice on the pytest configuration of a project, which `t2n doctor` gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_t2n.cli.doctor import _project
from pytest_t2n.cli.project_ini import find_configuration, missing_options, python_path

COMPLETE = {
    "pyproject.toml": """
        [tool.pytest.ini_options]
        required_plugins = "pytest-t2n"
        addopts = "-ra --strict-markers"
        t2n_require = true
    """,
    "pytest.ini": """
        [pytest]
        required_plugins = pytest-xdist pytest_t2n>=0.1
        addopts = --strict-markers --t2n-require
    """,
    "pytest.toml": """
        [pytest]
        required_plugins = ["pytest-t2n"]
        strict = true
        t2n_require = "yes"
    """,
    "tox.ini": """
        [pytest]
        required_plugins = pytest-t2n
        strict_markers = true
        addopts = --t2n-require
    """,
    "setup.cfg": """
        [tool:pytest]
        required_plugins = pytest-t2n
        addopts = --strict-markers -k "not 50%"
        t2n_require = on
    """,
}


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text("\n".join(line.strip() for line in text.splitlines()))
    return path


@pytest.mark.parametrize("name", COMPLETE)
def test_a_configuration_with_all_recommended_options(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, name, COMPLETE[name])
    (finding,) = _project(tmp_path)
    assert (finding.state, finding.text) == ("ok", f"{path} has the recommended options")


def test_each_option_that_is_missing_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "pyproject.toml", "[tool.pytest.ini_options]\nrequired_plugins = 'pytest-xdist'")
    below = tmp_path / "tests"
    below.mkdir()
    findings = list(_project(below))
    assert {finding.state for finding in findings} == {"note"}
    assert [finding.text.partition(":")[0] for finding in findings] == [
        f'{path} lacks required_plugins = "pytest-t2n"',
        f'{path} lacks addopts = "--strict-markers"',
        f"{path} lacks t2n_require = true",
    ]


def test_strict_markers_that_are_switched_off_are_missing() -> None:
    (line,) = missing_options(
        {"required_plugins": ["pytest-t2n"], "strict": True, "strict_markers": False, "t2n_require": True}
    )
    assert "--strict-markers" in line


def test_files_without_a_section_of_pytest_are_passed_over(tmp_path: Path) -> None:
    below = tmp_path / "package"
    below.mkdir()
    written(below, "pyproject.toml", "[project]\nname = 'a'")
    written(below, "tox.ini", "[tox]\nenvlist = py")
    above = written(tmp_path, "pytest.ini", "")
    assert find_configuration(below) == (above, {})


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, "pyproject.toml", "[tool.pytest")
    (finding,) = _project(tmp_path)
    assert finding.state == "note"
    assert finding.text.startswith(f"{path} cannot be read: ")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "[tool.pytest.ini_options]\npythonpath = ['.', 'src']"),
        ("pytest.ini", "[pytest]\npythonpath = . src"),
        ("setup.cfg", "[tool:pytest]\npythonpath =\n    .\n    src"),
    ],
)
def test_folders_for_imports(name: str, text: str, tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tmp_path / name).write_text(text)
    assert python_path(tests) == [tmp_path, tmp_path / "src"]
    (tmp_path / name).write_text("no configuration")
    assert python_path(tests) == []
