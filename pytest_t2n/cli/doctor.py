"""`t2n doctor` reports what is installed, what is missing, and whether an engine runs here. It never imports torch.

For the project in the current folder it reports the recommended options that its pytest configuration lacks.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement
from packaging.version import Version

from pytest_t2n.cli.output import say
from pytest_t2n.cli.project_ini import find_configuration, missing_options
from t2n_core import __version__
from t2n_core.engine.khronos import why_no_khronos
from t2n_core.engine.processor import this_processor
from t2n_core.engine.provision.store import EngineStore, is_listed
from t2n_core.engine.provision.versions import UNUSABLE
from t2n_core.errors import T2NError
from t2n_core.extras import EXTRAS, install_command
from t2n_core.torch_graph.compat.releases import untested_note

_GRAPH = """version 1.0;

graph doctor(x) -> (y)
{
  x = external<scalar>(shape = [2]);
  y = relu(x);
}
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    part: str
    text: str
    state: str = "ok"
    """`ok`, `note` for a problem of some uses, `bad` for a problem of all uses."""


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--offline", action="store_true", help="ask no package index")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each part")
    parser.add_argument("--cache-dir", type=Path, help="instead of T2N_CACHE_DIR or the user's cache directory")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the findings; return 1 if one of them is bad."""
    store = EngineStore(options.cache_dir)
    bad = False
    for finding in _findings(store, offline=options.offline):
        if options.json:
            print(json.dumps(asdict(finding)))
            bad = bad or finding.state == "bad"
            continue
        mark = {"ok": "ok  ", "note": "note", "bad": "BAD "}[finding.state]
        say(f"{mark} {finding.part:<10} {finding.text}")
        bad = bad or finding.state == "bad"
    return 1 if bad else 0


def _findings(store: EngineStore, *, offline: bool) -> Iterator[Finding]:
    yield Finding("t2n", f"{__version__}, Python {platform.python_version()}, {platform.platform()}")
    processor = this_processor()
    vectors = [name for name in processor.features if name in ("avx2", "fma", "avx512f", "asimd", "neon", "sve")]
    yield Finding("processor", f"{processor.model or platform.machine()}, {processor.cores} cores, {' '.join(vectors)}")
    yield from _packages()
    problem = why_no_khronos()
    yield Finding("khronos", problem or "its tools are installed", "note" if problem else "ok")
    yield _cache(store)
    if not offline:
        yield _network(store)
    yield _engine(store)
    yield from _project(Path.cwd())


def _project(folder: Path) -> Iterator[Finding]:
    """Yield the options that the pytest configuration of a folder lacks."""
    try:
        configuration = find_configuration(folder)
    except ValueError as wrong:
        yield Finding("project", str(wrong), "note")
        return
    if configuration is None:
        yield Finding("project", f"no pytest configuration in {folder} or above", "note")
        return
    path, options = configuration
    missing = missing_options(options)
    if not missing:
        yield Finding("project", f"{path} has the recommended options")
    for line in missing:
        yield Finding("project", f"{path} lacks {line}", "note")


_USES = {"torch": "to export models", "upstream": "to reduce and profile archives"}
"""Extra -> what its packages are needed for."""


def _packages() -> Iterator[Finding]:
    """Yield each declared package's state; packages of extras are needed only for the uses in _USES."""
    shown = set()
    for line in importlib.metadata.requires("pytest-t2n") or []:
        requirement = Requirement(line)
        base = requirement.marker is None
        use = _USES.get(EXTRAS.get(requirement.name, ""), "")
        if requirement.name in shown or not (base or use):
            continue
        shown.add(requirement.name)  # several extras may name it
        try:
            installed = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            advice = "" if base else f": {install_command(requirement.name)}, {use}"
            yield Finding(requirement.name, f"not installed{advice}", "bad" if base else "note")
            continue
        untested = untested_note(installed) if requirement.name == "torch" else ""
        if untested:
            yield Finding(requirement.name, untested, "note")
        elif requirement.specifier.contains(installed, prereleases=True):
            if not base or requirement.name in ("numpy", "pytest", "torch"):
                yield Finding(requirement.name, installed)
        else:
            yield Finding(requirement.name, f"{installed} is not {requirement.specifier}", "bad" if base else "note")


def _cache(store: EngineStore) -> Finding:
    folder = store.cache_dir
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(there, os.W_OK):
        return Finding("cache", f"{folder} cannot be written: set T2N_CACHE_DIR, or --cache-dir", "bad")
    versions = [version for version in store.versions_on_disk() if version not in UNUSABLE]
    names = f": {versions[0]} to {versions[-1]}" if versions else ""
    return Finding("cache", f"{folder}, {len(versions)} engine{'s' if len(versions) != 1 else ''}{names}")


def _network(store: EngineStore) -> Finding:
    from t2n_core.engine.provision.index import ask_index

    try:
        versions = ask_index()
    except T2NError as wrong:
        state = "note" if store.versions_on_disk() else "bad"
        return Finding("network", f"the package index did not answer pip: {wrong.message.splitlines()[0]}", state)
    newer = [version for version in versions if not version.is_prerelease and not is_listed(version)]
    words = f"; {max(newer)} is newer than what this version knows" if newer else ""
    return Finding("network", f"pip finds {len(versions)} releases of tract, newest {max(versions)}{words}")


def _engine(store: EngineStore) -> Finding:
    """Return the result of a small graph in the newest engine of the cache."""
    cached = [version for version in store.versions_on_disk() if version not in UNUSABLE]
    usable = [version for version in cached if is_listed(version)]
    if not usable:
        return Finding("engine", "none in the cache yet: t2n engines fetch latest, or the first test", "note")
    version = max(usable)
    try:
        answer = _relu(store, version)
    except T2NError as wrong:
        return Finding("engine", f"tract {version}: {wrong.message.splitlines()[0]}", "bad")
    return Finding("engine", f"tract {version} {answer or 'computes relu'}", "bad" if answer else "ok")


def _relu(store: EngineStore, version: Version) -> str:
    """Return the problem of an engine's answer; '' if it is right. Raises T2NError."""
    import numpy as np

    from t2n_core.engine import close_all, engine_for, resolve_engines

    (engine,) = resolve_engines(str(version), offline=True, cache_dir=store.cache_dir)
    with TemporaryDirectory() as folder:
        (Path(folder) / "graph.nnef").write_text(_GRAPH, encoding="utf-8")
        try:
            reply = engine_for(engine).run(Path(folder), [[np.array([-1.0, 2.0], np.float32)]])
        finally:
            close_all()
    if reply.status != "ok":
        return f"fails at {reply.stage}: {reply.message.partition(chr(10))[0]}"
    ((output,),) = reply.outputs
    return "" if output.tolist() == [0.0, 2.0] else f"computes relu([-1, 2]) = {output.tolist()}"
