"""What a case makes the converter use, noted while it is tested, for the tests that nothing is without a case."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import T2NError
from t2n_core.nnef.options.writing_options import PLAIN, WritingOptions
from t2n_core.nnef.spec import Spec
from t2n_core.op.registry import Registry, Rule, load_default
from t2n_core.torch_graph.simplify import complex_pairs, decompositions
from t2n_core.torch_graph.simplify.complex_pairs import expansion
from tests.contract.cases import Case

READERS = {"decompositions": decompositions, "complex pairs": expansion}
"""Kind of decomposition -> the module whose `find` looks for them."""
ALL_OF_THEM: dict[str, Callable[[], Iterable[Any]]] = {
    "decompositions": decompositions.all_decompositions,
    "complex pairs": complex_pairs.known_overloads,
}


@lru_cache(maxsize=2)
def exported(case: Case) -> ModelExport:
    """The export of a case, captured once for all engines; tests of one case follow each other."""
    return case.export()


def named_rule(rule: Rule) -> str:
    """A name that no other rule has."""
    return f"{rule.key} {rule.target} {rule.releases} {rule.option} {rule.needs} {rule.place}"


@cache
def named_decompositions(kind: str) -> dict[Any, str]:
    """Target -> the first of those with the same function, or, where one is made for each overload, the operator."""
    names: dict[Any, str] = {}
    functions: dict[Any, str] = {}
    for target in sorted(ALL_OF_THEM[kind](), key=str):
        function = READERS[kind].find(target)
        several = function.__name__ == "both"
        names[target] = str(target.overloadpacket) if several else functions.setdefault(function, str(target))
    return names


@dataclass(frozen=True)
class Used:
    """The names of the rules, and of the decompositions of each kind, that one case asked for on one version."""

    rules: set[str]
    decompositions: dict[str, set[str]]


class Usage:
    """Notes in a folder that the workers of a session share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)

    @contextmanager
    def noted(self, case: Case, version: str) -> Iterator[ModelExport]:
        """The export of a case. What its lowering asks for inside of the block is noted for the version."""
        export, rules = exported(case), _Recording(load_default())
        used_names: dict[str, set[str]] = {kind: set() for kind in READERS}
        names = {kind: named_decompositions(kind) for kind in READERS}
        options = export.options
        export.options = replace(options, rules=rules)
        try:
            with ExitStack() as patches:
                for kind, reader in READERS.items():
                    recording = _recording(reader.find, names[kind], used_names[kind])
                    patches.enter_context(mock.patch.object(reader, "find", recording))
                yield export
        finally:
            export.options = options
        path = self._path(case, version)
        written = path.with_suffix(f".{os.getpid()}")
        written.write_text(json.dumps([sorted(rules.used), {kind: sorted(used) for kind, used in used_names.items()}]))
        written.replace(path)

    def of(self, case: Case, version: str) -> Used:
        """What a case asks for; it is lowered where no test has done so yet."""
        path = self._path(case, version)
        if not path.exists():
            with self.noted(case, version) as export, suppress(T2NError):  # test_case knows if it should be refused
                export.lower(TractNNEF(version))
        rules, used_names = json.loads(path.read_text())
        return Used(set(rules), {kind: set(used) for kind, used in used_names.items()})

    def _path(self, case: Case, version: str) -> Path:
        return self._folder / f"{hashlib.sha256(f'{version} {case.name}'.encode()).hexdigest()}.json"


class _Recording(Registry):
    """A view of a registry that remembers the rules that were asked for."""

    def __init__(self, registry: Registry) -> None:
        self._rules = registry._rules
        self.used: set[str] = set()

    def find(self, kind: str, spec: Spec, options: WritingOptions = PLAIN) -> Rule | None:
        rule = super().find(kind, spec, options)
        if rule is not None:
            self.used.add(named_rule(rule))
        return rule


def _recording(find: Callable[[Any], Any], names: Mapping[Any, str], used: set[str]) -> Callable[[Any], Any]:
    def recording(target: Any) -> Any:
        decomposition = find(target)
        if decomposition is not None and target in names:
            used.add(names[target])
        return decomposition

    return recording
