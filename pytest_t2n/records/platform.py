"""Platforms: machines with their packages, and short names for them in a file that has several."""

from __future__ import annotations

import functools
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from hashlib import sha256
from importlib import metadata

import msgspec

from pytest_t2n.records.schema import PlatformLine
from t2n_core.engine.processes.environment import THREADS
from t2n_core.engine.processor import Processor, this_processor

_DISTRIBUTIONS = ("pytest-t2n", "torch", "numpy", "nnef", "nnef-tools", "pytest", "pytest-xdist")
REFERENCE_VARIABLES = (
    *THREADS, "ATEN_CPU_CAPABILITY", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA",
    "DNNL_DEFAULT_FPMATH_MODE", "ONEDNN_DEFAULT_FPMATH_MODE", "OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES",
    "NPY_ENABLE_CPU_FEATURES",
)  # fmt: skip
"""Variables that choose threads and kernels of PyTorch and numpy, which compute the reference for engines."""


@functools.cache
def this_platform() -> PlatformLine:
    """Return the platform of this process at the first call."""
    return platform_of(
        this_processor(), os.environ, package_versions(), system=sys.platform, machine=platform.machine()
    )


def platform_of(
    processor: Processor, environment: Mapping[str, str], versions: Mapping[str, str], *, system: str, machine: str
) -> PlatformLine:
    """Return the platform with these facts; of the environment only variables that affect results are included."""
    line = PlatformLine(
        "",
        system=system,
        machine=machine,
        vendor=processor.vendor,
        model=processor.model,
        features=list(processor.features),
        cores=processor.cores,
        environment={name: environment[name] for name in sorted(REFERENCE_VARIABLES) if environment.get(name)},
        versions=dict(versions),
    )
    data = msgspec.json.encode(line, order="deterministic")
    return msgspec.structs.replace(line, key=sha256(data).hexdigest()[:12])


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the distributions that affect results."""
    versions = {"python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def names_of(platforms: Iterable[PlatformLine]) -> dict[str, str]:
    """Return a short name for each platform by its key, from their differences: `aarch64`, `numpy 2.1.3`."""
    lines = {line.key: line for line in platforms}
    if len(lines) < 2:
        return dict.fromkeys(lines, "")
    facts = {key: _facts(line) for key, line in lines.items()}
    words = dict.fromkeys(lines, "")
    for fact in dict.fromkeys(name for platform_facts in facts.values() for name in platform_facts):
        if len({platform_facts.get(fact, "") for platform_facts in facts.values()}) == 1:
            continue
        longer = {key: ", ".join(filter(None, [words[key], facts[key].get(fact, "")])) for key in lines}
        if len(set(longer.values())) > len(set(words.values())):
            words = longer
        if len(set(words.values())) == len(lines):
            break
    # lists of features are too long for a title
    return {key: word if _is_unique(word, words.values()) else f"{word} {key}".strip() for key, word in words.items()}


def describe_platform(line: PlatformLine, features: bool = True) -> str:
    """Return processor, cores, system, packages and, last, the processor's features of a platform in one line."""
    words = [f"{line.vendor} {line.model}".strip(), f"{line.cores} cores" if line.cores else ""]
    words += [f"{line.system} {line.machine}".strip()]
    words += [f"{name} {version}" for name, version in line.versions.items()]
    words += [f"{name}={value}" for name, value in line.environment.items()]
    words += [" ".join(line.features)] if features else []
    return ", ".join(filter(None, words))


def differences(platform: PlatformLine, other: PlatformLine) -> list[str]:
    """Return the names of the facts that differ between two platforms: `numpy`, `model`, `features`."""
    names = [field for field in PlatformLine.__struct_fields__ if field not in ("key", "versions")]
    changed = [name for name in names if getattr(platform, name) != getattr(other, name)]
    packages = {**platform.versions, **other.versions}
    return changed + [name for name in packages if platform.versions.get(name) != other.versions.get(name)]


def _facts(line: PlatformLine) -> dict[str, str]:
    """Return the facts for a title, the most informative first."""
    facts = {"machine": line.machine, "system": line.system, "model": line.model}
    facts |= {name: f"{name} {version}" for name, version in line.versions.items()}
    facts |= {name: f"{name}={value}" for name, value in line.environment.items()}
    return {**facts, "cores": f"{line.cores} cores"}


def _is_unique(word: str, words: Iterable[str]) -> bool:
    return bool(word) and sum(other == word for other in words) == 1
