"""Environments of exporters, made with pip in the cache: their packages are not installed beside a project."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

from filelock import FileLock
from packaging.requirements import Requirement
from packaging.version import Version

from t2n_core.engine.provision.store import default_cache_dir
from t2n_core.errors import InputError
from t2n_core.exporters.exporter import Exporter

_READY: Final = "ready"
"""The file in the folder of a complete environment, with its requirements."""
_CLOUDPICKLE: Final = "cloudpickle"


def environments_folder(cache: Path | None = None) -> Path:
    """Return the folder with the environments of exporters; `cache` is the folder of the engines."""
    return (default_cache_dir() if cache is None else cache) / "exporters"


def python_of(exporter: Exporter, folder: Path) -> Path:
    """Return the interpreter of an exporter: of its environment, or of this one if it has the requirements.

    Raises InputError if neither this environment nor one under `folder` has them.
    """
    if (python := installed_python(folder / exporter.name)) is not None:
        return python
    if not (missing := missing_requirements(exporter)):
        return Path(sys.executable)
    raise InputError(
        f"the exporter {exporter.name} needs {', '.join(missing)}",
        hint=f"`t2n exporters install {exporter.name}` makes an environment for it, beside yours",
    )


def missing_requirements(exporter: Exporter) -> list[str]:
    """Return the requirements that this environment does not have."""
    return [requirement for requirement in exporter.requirements if not _is_installed(Requirement(requirement))]


def version_of(exporter: Exporter, folder: Path) -> str:
    """Return the version of an exporter in the environment where it runs; empty if it has none."""
    home = folder / exporter.name
    if not exporter.distribution or installed_python(home) is None:
        return exporter.version
    distributions = metadata.distributions(
        name=exporter.distribution, path=[str(path) for path in home.glob(_packages())]
    )
    return next((distribution.version for distribution in distributions), "")


def make_environment(exporter: Exporter, folder: Path, more: Sequence[str] = ()) -> Path:
    """Return the interpreter of a new environment with the requirements of an exporter and the torch of this one.

    `more` are further requirements. Raises InputError if pip fails.
    """
    torch = f"torch=={Version(metadata.version('torch')).public}"
    return install(folder / exporter.name, [torch, "numpy", _CLOUDPICKLE, *exporter.requirements, *more])


def install(home: Path, requirements: Sequence[str], *options: str) -> Path:
    """Return the interpreter of a new environment in a folder; `options` are pip's. Raises InputError."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(home.with_name(f"{home.name}.lock")):
        venv.create(home, with_pip=True, clear=True)
        pip = [str(_interpreter(home)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *options]
        if subprocess.run([*pip, *requirements], check=False).returncode:
            raise InputError(f"pip could not install {', '.join(requirements)}", hint="its messages are above")
        (home / _READY).write_text("\n".join(requirements) + "\n", encoding="utf-8")
    return _interpreter(home)


def installed_python(home: Path) -> Path | None:
    """Return the interpreter of a complete environment in a folder; None if there is none."""
    return _interpreter(home) if (home / _READY).exists() else None


def _interpreter(home: Path) -> Path:
    return home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _packages() -> str:
    """Return the folder of packages in an environment, as a pattern."""
    return "Lib/site-packages" if os.name == "nt" else f"lib/python{sys.version_info[0]}.*/site-packages"


def _is_installed(requirement: Requirement) -> bool:
    try:
        return requirement.specifier.contains(metadata.version(requirement.name), prereleases=True)
    except metadata.PackageNotFoundError:
        return False
