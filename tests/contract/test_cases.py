"""Every case on real engines, and every rule in at least one case.

On the newest engine; `tox -e nightly` runs the newest release of each line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from packaging.version import Version

from t2n_core import TractNNEF
from t2n_core.engine import ResolvedEngine
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.errors import T2NError
from t2n_core.nnef.spec import spec_for
from t2n_core.op.registry import load_default
from tests.contract.cases import Case, all_cases
from tests.contract.usage import Usage, named_rule
from tests.releases import LINES, NEWEST, OLDEST, on_each_line

WITHIN_LINES = ("0.21.9",)
"""The last releases with rules of their own within a line; `test_single_releases.py` runs cases of these rules."""
VERSIONS = on_each_line(NEWEST)


@pytest.fixture(scope="module")
def engine_without_fork() -> Iterator[Callable[[ResolvedEngine], TractEngine]]:
    """Return a function from an engine's files to the engine, whose jobs run in the worker itself.

    A fork would take most of the time of so short a job, and no case may end the worker.
    """
    engines: dict[str, TractEngine] = {}

    def engine(resolved: ResolvedEngine) -> TractEngine:
        if resolved.version not in engines:
            engines[resolved.version] = TractEngine(resolved, fork=False)
        return engines[resolved.version]

    yield engine
    for tract_engine in engines.values():
        tract_engine.close()


@pytest.fixture(autouse=True)
def fast_engines(engine_without_fork: Callable[[ResolvedEngine], TractEngine], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("t2n_core.inference_target.tract.engine_for", engine_without_fork)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that each test writes; a folder for each of thousands of tests takes longer than the archives."""
    return tmp_path_factory.mktemp("cases") / "model.nnef.tar"


# The versions of a case follow each other, so that one capture serves them all.
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in all_cases()])
def test_case(case: Case, version: str, archive: Path, usage: Usage) -> None:
    refused = case.refusal and (not case.refused_before or Version(version) < Version(case.refused_before))
    with usage.noted(case, version) as export:
        if refused:
            with pytest.raises(T2NError, match=case.refusal):
                export.to(TractNNEF(version), archive)
            return
        result = export.to(TractNNEF(version, keep_nan=case.keep_nan), archive)
    result.assert_parity(case.level)


TESTED_ELSEWHERE = {"t2n_capture::module_call"}
"""Needs an extractor of a test's own: tests/contract/op/test_extractors.py."""


def test_every_operator_with_a_rule_has_a_case(usage: Usage) -> None:
    newest = {named_rule(r): r.key for r in load_default() if r.fits(spec_for("tract", NEWEST))}
    used = set[str]().union(*(usage.of(case, NEWEST).rules for case in all_cases()))
    assert sorted(set(newest.values()) - {newest[name] for name in used & newest.keys()} - TESTED_ELSEWHERE) == []


@pytest.mark.nightly
def test_every_rule_has_a_case(usage: Usage) -> None:
    cases, always, between = all_cases(), (OLDEST, NEWEST), (*LINES[1:-1], *WITHIN_LINES)
    versions = (*always, *between)
    rules = {named_rule(r): r for r in load_default() if any(r.fits(spec_for("tract", v)) for v in versions)}
    used = {case: set[str]().union(*(usage.of(case, version).rules for version in always)) for case in cases}
    missing = rules.keys() - set[str]().union(*used.values())
    for case in cases:  # between them only what has more forms
        for version in between:
            if {rules[name].key for name in used[case] & rules.keys()} & {rules[name].key for name in missing}:
                missing -= usage.of(case, version).rules
    left = [rules[name] for name in missing if rules[name].key not in TESTED_ELSEWHERE]
    names = sorted(f"{r.key} (since {r.releases.since})" if r.releases.since else r.key for r in left)
    assert not names, f"{len(names)} rules without a case: {', '.join(names)}"
