"""The pytest configuration of a project: the folders it adds for imports, and options that it should have."""

from __future__ import annotations

import configparser
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

_PLUGIN = "pytest-t2n"
_SECTIONS = {
    "pytest.toml": ("pytest",),
    ".pytest.toml": ("pytest",),
    "pytest.ini": ("pytest",),
    ".pytest.ini": ("pytest",),
    "pyproject.toml": ("tool.pytest", "tool.pytest.ini_options"),
    "tox.ini": ("pytest",),
    "setup.cfg": ("tool:pytest",),
}
"""Files that pytest reads, in its order, with their sections."""
_ON = ("1", "yes", "true", "on")


def find_configuration(folder: Path) -> tuple[Path, Mapping[str, Any]] | None:
    """Return the file that configures pytest in a folder, with its options; None if there is none.

    As pytest does, this looks into the folder and those above it. Raises ValueError for a file that cannot be read.
    """
    for parent in (folder, *folder.parents):
        for name, sections in _SECTIONS.items():
            path = parent / name
            if path.is_file() and (options := _options(path, sections)) is not None:
                return path, options
    return None


def python_path(folder: Path) -> list[Path]:
    """Return the folders that `pythonpath` of the configuration of a folder adds to the search path for imports."""
    try:
        configuration = find_configuration(folder)
    except ValueError:  # `t2n doctor` reports it
        return []
    if configuration is None:
        return []
    path, options = configuration
    return [path.parent / entry for entry in _as_list(options.get("pythonpath"))]


def missing_options(options: Mapping[str, Any]) -> list[str]:
    """Return the recommended options that a configuration lacks, each with what passes unchecked without it."""
    addopts = _as_list(options.get("addopts"))
    missing = []
    if not any(_is_plugin(word) for word in _requirements(options.get("required_plugins"))):
        missing.append(f'required_plugins = "{_PLUGIN}": without the plugin, tests that return a model pass')
    strict = {"--strict-markers", "--strict"} & set(addopts) or any(map(_is_on, _strict(options)))
    if not strict:
        missing.append('addopts = "--strict-markers": a misspelt marker checks nothing')
    if not (_is_on(options.get("t2n_require")) or "--t2n-require" in addopts):
        missing.append("t2n_require = true: marked tests without an engine are skipped")
    return missing


def _strict(options: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the options for strict markers in pytest 9; the specific option comes before the general one."""
    yield options.get("strict_markers", options.get("strict"))


def _options(path: Path, sections: tuple[str, ...]) -> Mapping[str, Any] | None:
    """Return the options of a file; None if it has no section for pytest."""
    try:
        if path.suffix == ".toml":
            tables = tomllib.loads(path.read_text("utf-8"))
            for section in sections:
                options = _table(tables, section)
                # `[tool.pytest]` holds options, or only the table `ini_options`.
                if options is not None and set(options) != {"ini_options"}:
                    return options
            return {} if path.name.endswith("pytest.toml") else None
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        parser.read_string(path.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError, configparser.Error, UnicodeDecodeError) as wrong:
        raise ValueError(f"{path} cannot be read: {str(wrong).splitlines()[0]}") from None
    for section in sections:
        if parser.has_section(section):
            return dict(parser[section])
    return {} if path.name.endswith("pytest.ini") else None


def _table(tables: Mapping[str, Any], section: str) -> Mapping[str, Any] | None:
    table: Any = tables
    for name in section.split("."):
        table = table.get(name) if isinstance(table, Mapping) else None
    return table if isinstance(table, Mapping) else None


def _as_list(value: Any) -> list[str]:
    """Return an option that is a text of several words, or a list, as a list."""
    if isinstance(value, list):
        return [str(item) for item in value]
    try:
        return shlex.split(value or "") if isinstance(value, str | None) else []
    except ValueError:  # an unclosed quote, which pytest itself refuses
        return str(value).split()


def _requirements(value: Any) -> list[str]:
    """Return the plugins that `required_plugins` names; a requirement may hold no spaces there."""
    return [str(requirement) for requirement in value] if isinstance(value, list) else str(value or "").split()


def _is_plugin(word: str) -> bool:
    try:
        return canonicalize_name(Requirement(word).name) == _PLUGIN
    except InvalidRequirement:
        return False


def _is_on(value: Any) -> bool:
    return value is True or str(value).strip().lower() in _ON
