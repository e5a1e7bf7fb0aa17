"""Every case on real engines, and every rule in at least one case.

By default the oldest and the newest engine; `pytest -m all_engines` runs the newest release of the minor lines between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from packaging.version import Version

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import T2NError
from t2n_core.nnef.spec import Spec, spec_for
from t2n_core.nnef.writing_options import PLAIN, WritingOptions
from t2n_core.op.registry import Registry, Rule, load_default
from tests.contract.cases import Case, all_cases

ALWAYS = ("0.19.15", "0.23.9")
BETWEEN = ("0.20.22", "0.21.19", "0.22.4")
VERSIONS = [*ALWAYS, *(pytest.param(v, marks=pytest.mark.all_engines) for v in BETWEEN)]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def exported(case: Case) -> ModelExport:
    """Captured once for all engines."""
    return case.export()


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in all_cases()])
@pytest.mark.parametrize("version", VERSIONS)
def test_case(case: Case, version: str, tmp_path: Path) -> None:
    archive = tmp_path / "model.nnef.tar"
    refused = case.refusal and (not case.refused_before or Version(version) < Version(case.refused_before))
    if refused:
        with pytest.raises(T2NError, match=case.refusal):
            exported(case).to(TractNNEF(version), archive)
        return
    outcome = exported(case).to(TractNNEF(version), archive).check_parity(case.level)
    assert outcome.passed, outcome.describe()


class _Recording(Registry):
    """Remembers the rules that were asked for."""

    used: set[Rule]

    def find(self, kind: str, spec: Spec, options: WritingOptions = PLAIN) -> Rule | None:
        rule = super().find(kind, spec, options)
        if rule is not None:
            self.used.add(rule)
        return rule


def _rules_of(case: Case, version: str) -> set[Rule]:
    recording = _Recording(load_default()._rules)
    recording.used = set()
    export = exported(case)
    options = export.options
    try:
        export.options = replace(options, rules=recording)
        export.lower(TractNNEF(version))
    except T2NError:
        pass  # a refusal; whether it should be one is for test_case
    finally:
        export.options = options
    return recording.used


TESTED_ELSEWHERE = {"t2n_capture::module_call"}
"""Needs an extractor of a test's own: tests/unit/op/test_extractors.py."""


def test_every_rule_has_a_case() -> None:
    cases, versions = all_cases(), (*ALWAYS, *BETWEEN)
    missing = {r for r in load_default() if any(r.fits(spec_for("tract", v)) for v in versions)}
    keys: dict[Case, set[str]] = {case: set() for case in cases}
    for version in versions:
        for case in cases:
            if version in ALWAYS or keys[case] & {r.key for r in missing}:  # between them only what has more forms
                used = _rules_of(case, version)
                keys[case] |= {r.key for r in used}
                missing -= used
    missing = {r for r in missing if r.key not in TESTED_ELSEWHERE}
    names = sorted(f"{r.key} (since {r.releases.since})" if r.releases.since else r.key for r in missing)
    assert not names, f"{len(names)} rules without a case: {', '.join(names)}"
