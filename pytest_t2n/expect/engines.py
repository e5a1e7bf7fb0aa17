"""Engine specifiers of entries: `tract>=0.20,<0.21` with all kernel tiers, or one tier: `tract>=0.23 no-fma`.

The engines of a user's own target are named by that target. Another exporter stands first: `torch-onnx tract>=0.23`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from functools import cache

from pytest_t2n.records.cell import SelectedEngine
from pytest_t2n.records.schema import CellLine
from t2n_core.engine.provision.resolved import CPU
from t2n_core.engine.tiers import NATIVE

_VARIANT = r"(?:native|no-[a-z0-9-]+|cpu|cuda|metal)"
_ENGINE = re.compile(rf"((?:[A-Za-z_][\w-]*\s+)?(?!{_VARIANT}\b)[A-Za-z_]\w*)\s*((?:[<>=!~].*?)?)((?:\s+{_VARIANT})*)$")


def check_engine(text: str) -> None:
    """Raise ValueError for a text that is not an engine specifier."""
    match = _ENGINE.match(text.strip())
    targets = ("tract", "khronos")
    target = "" if match is None else match[1].split()[-1]
    if match is None or (target not in targets and difflib.get_close_matches(target.lower(), targets)):
        raise ValueError(
            f"{text!r} names no engine; write 'tract', 'tract>=0.20,<0.21', 'tract>=0.23 no-fma' or 'khronos'"
        )
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(match[2])
    except InvalidSpecifier:
        raise ValueError(f"{match[2]!r} in {text!r} is no version specifier") from None


@cache
def fits_engine(text: str, target: str, version: str, label: str) -> bool:
    """Return True if a specifier names this engine."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion

    match = _ENGINE.match(text.strip())
    if match is None or " ".join(match[1].split()) != target or not set(match[3].split()) <= variant_of(label):
        return False
    try:
        return not match[2] or SpecifierSet(match[2]).contains(version, prereleases=True)
    except InvalidVersion:  # a binary that reports an invalid version
        return False


def variant_of(label: str) -> set[str]:
    """Return the tier and the runtime of an engine from its label: `0.23.8 no-fma` is no-fma on the cpu."""
    words = label.split()[1:]
    tiers = [word for word in words if word.startswith("no-")]
    return {*(tiers or [NATIVE]), *([word for word in words if word not in tiers] or [CPU])}


def specifiers_of(cells: Sequence[CellLine], engines: Sequence[SelectedEngine]) -> tuple[str, ...]:
    """Return specifiers for the engines of these cells, and for no other engine of the session."""
    specifiers: list[str] = []
    for target in dict.fromkeys(cell.qualified_target for cell in cells):
        failing = {cell.label for cell in cells if cell.qualified_target == target}
        selected = [engine for engine in engines if engine.qualified_target == target]
        all_fail = failing == {engine.label for engine in selected}
        if target == "khronos" or (all_fail and len({engine.version for engine in selected}) > 1):
            specifiers.append(target)
        else:
            specifiers += [_specifier(engine, selected, failing) for engine in selected if engine.label in failing]
    return tuple(dict.fromkeys(specifiers))


def _specifier(engine: SelectedEngine, selected: Sequence[SelectedEngine], failing: set[str]) -> str:
    """Return the specifier of one engine, with its tier and runtime if another engine of its release does not fail."""
    release = f"{engine.qualified_target}=={engine.version}"
    passing = [variant_of(o.label) for o in selected if o.version == engine.version and o.label not in failing]
    words = variant_of(engine.label)
    if not any(other != words for other in passing):
        return release
    telling = sorted(words.difference(*passing), key=lambda word: (not word.startswith("no-"), word)) or sorted(words)
    return " ".join([release, *telling])
