"""The key of `--t2n-reuse`: made once per check, of all that decides about a result."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest

from pytest_t2n.records.cell import Cell, SelectedEngine
from pytest_t2n.records.platform import REFERENCE_VARIABLES, platform_of
from pytest_t2n.run.bundles import CheckInputs
from pytest_t2n.run.reuse import key_of, reuse_result
from t2n_core.engine.processor import Processor
from t2n_core.engine.provision.resolved import ResolvedEngine
from t2n_core.engine.tiers import kind_of_processor
from t2n_core.level import TractCheckTolerance
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.parity.stage import Stage, Status
from tests.plugin.conftest import FAKE_CONFTEST
from tests.plugin.suites import marked
from tests.releases import RECENT

COUNTING = """

import t2n_core.parity.check
import t2n_core.files

digest = t2n_core.files.archive_digest


def counted(path):
    with Path(__file__).with_name("digests.txt").open("a") as digests:
        digests.write(f"{path}\\n")
    return digest(path)


t2n_core.files.archive_digest = t2n_core.parity.check.archive_digest = counted
"""


def test_an_archive_is_read_once_for_the_key_and_once_for_the_record(suite):
    suite.pytester.makeconftest(FAKE_CONFTEST + COUNTING)
    suite.pytester.makepyfile(marked(model='"pass"'))
    digests = suite.path / "digests.txt"
    counts = []
    for _ in range(2):
        suite.run("--t2n-reuse", "--t2n-cache-dir=cache", engines="0.23", alone=True).assert_outcomes(passed=1)
        counts.append(len(digests.read_text().splitlines()))
        digests.unlink()
    assert counts == [2, 1], "a result that is reused has its digest in the store"


RELEVANT = {
    "machine": ["x86_64", "aarch64"],
    "vendor": ["GenuineIntel", "AuthenticAMD"],
    "model": ["Xeon", "EPYC"],
    "features": [("avx",), ("avx", "fma"), ("avx", "avx512f", "fma")],
    "cores": [2, 64],
    "sha256": ["ab" * 32, "cd" * 32],
    "tier": ["native", "no-avx512", "no-fma"],
    "runtime": ["cpu", "cuda"],
    "paths": ["", "declutter"],
    "numpy": ["2.1.0", "2.2.0"],
    "torch": ["2.9.0", "2.10.0"],
    "archive": [b"one archive", b"another archive"],
    "expected": [1.0, 2.0],
    **{name: ["", "1", "2"] for name in REFERENCE_VARIABLES},
}
"""What decides about a result, with some values."""
IRRELEVANT = {
    "HOME": ["/a", "/b"],
    "LANG": ["C", "de_DE.UTF-8"],
    "TRACT_CPU_ISA": ["", "-fma"],  # no variable of tract reaches an engine's process
    "TRACT_ENABLE_BLOCKED_CONV": ["", "1"],
    "library": ["/cache/one.so", "/cache/two.so"],
    "requested": ["0.23", "latest"],
}


def key_in(facts: dict, archives: Path) -> str:
    """The key of one check in an environment with these facts."""
    processor = Processor(facts["vendor"], facts["model"], facts["features"], facts["cores"])
    variables = {name: value for name, value in facts.items() if name.isupper()}
    versions = {"python": "3.11.7", "numpy": facts["numpy"], "torch": facts["torch"]}
    here = platform_of(processor, variables, versions, system="linux", machine=facts["machine"])
    resolved = ResolvedEngine(
        *("wheel", RECENT, Path(facts["library"]), facts["sha256"], facts["requested"]),
        tier=facts["tier"],
        runtime=facts["runtime"],
        paths=facts["paths"],
    )
    engine = SelectedEngine("tract", RECENT, resolved.label, resolved.to_dict(), here.key)
    archive = archives / facts["archive"].decode().replace(" ", "_")
    if not archive.exists():
        archive.write_bytes(facts["archive"])
    samples = [Sample((np.zeros(2),), (np.full(2, facts["expected"]),), {})]
    return key_of(CheckInputs(Cell("n", "c", engine), CheckRequest(archive, samples, ["y"], Judgement.parse("close"))))


def test_keys_differ_exactly_where_something_relevant_does(tmp_path):
    rng = random.Random(16)
    keys: dict[tuple, str] = {}
    owners: dict[str, tuple] = {}
    facts = {name: values[0] for name, values in (RELEVANT | IRRELEVANT).items()}
    for _ in range(10_000):
        # a walk of small steps: neighbours that differ in one fact, and the same facts again
        for name in rng.sample(list(facts), rng.randrange(1, 3)):
            facts[name] = rng.choice((RELEVANT | IRRELEVANT)[name])
        relevant = tuple(facts[name] for name in RELEVANT)
        key = key_in(facts, tmp_path)
        assert keys.setdefault(relevant, key) == key, "an irrelevant fact changed the key"
        assert owners.setdefault(key, relevant) == relevant, "two environments have one key"
    assert 1000 < len(keys) < 10_000


@pytest.mark.skipif(kind_of_processor() != "x86_64", reason="tiers are named after features of x86")
def test_a_pass_is_reused_on_its_own_kernels_only(suite):
    suite.pytester.makepyfile(marked(model='"pass"'))
    reuse = ("--t2n-reuse", "--t2n-cache-dir=cache", "--t2n-report=site")
    for cpu, runs in (("native", 1), ("native,no-fma", 2), ("no-fma", 2), ("no-avx512", 3)):
        suite.run(*reuse, f"--t2n-cpu={cpu}", engines="0.23").assert_outcomes(passed=1 + ("," in cpu))
        assert len(suite.runs) == runs, cpu


@pytest.mark.parametrize(("content", "runs"), [(b"#!/bin/sh\nexec tract", 2), (b"\x7fELF\x02\x01", 1)])
def test_nothing_is_reused_of_a_script(tmp_path, content, runs):
    binary, archive = tmp_path / "tract", tmp_path / "archive"
    binary.write_bytes(content)
    archive.write_bytes(b"archive")
    resolved = ResolvedEngine("cli", RECENT, binary, "ab" * 32, "path:tract")
    cell = Cell("n", "c", SelectedEngine("tract", RECENT, resolved.label, resolved.to_dict()))
    inputs = CheckInputs(cell, CheckRequest(archive, [Sample((np.zeros(2),), (np.ones(2),), {})], ["y"]))
    checked = []

    def check() -> Outcome:
        checked.append(1)
        return Outcome(Status.PASS, Stage.COMPARE, level=TractCheckTolerance.EXACT)

    for _ in range(2):
        assert reuse_result(tmp_path / "cache", inputs, check, 5.0).passed
    assert len(checked) == runs


@pytest.mark.parametrize("place", ["results", "key"])
def test_results_that_others_could_have_written_are_not_reused(suite, place):
    suite.pytester.makepyfile(marked(model='"pass"'))
    arguments = ("--t2n-reuse", "--t2n-cache-dir=cache", "--t2n-report=site")
    suite.run(*arguments, engines="0.23")
    suite.run(*arguments, engines="0.23")
    assert [cell.get("reused", False) for cell in suite.cells.values()] == [True]
    results = suite.path / "cache" / "results"
    folder = results if place == "results" else next(path for path in results.iterdir() if path.is_dir())
    folder.chmod(0o777)
    suite.run(*arguments, engines="0.23")
    assert [cell.get("reused", False) for cell in suite.cells.values()] == [False]


def test_what_is_no_result_is_not_reused(suite):
    suite.pytester.makepyfile(marked(model='"pass"'))
    arguments = ("--t2n-reuse", "--t2n-cache-dir=cache", "--t2n-report=site")
    suite.run(*arguments, engines="0.23")
    (result,) = (suite.path / "cache" / "results").rglob("*.json")
    original_text = result.read_text()
    for content in ("", "{}", original_text.replace('"status":"pass"', '"status":"skip"')):
        result.write_text(content)
        suite.run(*arguments, engines="0.23").assert_outcomes(passed=1)
        assert [(cell["status"], cell.get("reused", False)) for cell in suite.cells.values()] == [("pass", False)]
    result.unlink()
    os.mkfifo(result)
    suite.run(*arguments, engines="0.23", alone=True).assert_outcomes(passed=1)
    assert [(cell["status"], cell.get("reused", False)) for cell in suite.cells.values()] == [("pass", False)]
