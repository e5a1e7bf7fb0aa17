"""Kernel tiers and runtimes as engines of a session: which releases have them, names, header, markers."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_t2n.config.engines import engines_for, header_line, parse_versions
from pytest_t2n.config.variants import variants_of
from pytest_t2n.records.cell import SelectedEngine
from pytest_t2n.records.nodeids import case_id
from t2n_core.engine.provision.resolved import ResolvedEngine
from t2n_core.engine.tiers import kind_of_processor
from t2n_core.errors import InputError
from tests.plugin.suites import marked
from tests.releases import RECENT


@pytest.fixture(autouse=True)
def x86(monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "x86_64")


def release(version: str, kind: str = "wheel") -> ResolvedEngine:
    return ResolvedEngine("wheel" if kind == "wheel" else "cli", version, Path("/none"), "ab", version)


def selected(cpu: str, *versions: str) -> list[SelectedEngine]:
    variants = variants_of([release(version) for version in versions], cpu, "")
    return [SelectedEngine("tract", variant.version, variant.label, variant.to_dict()) for variant in variants]


def test_a_release_has_its_tiers_side_by_side():
    engines = selected("native,no-avx512,no-fma", "0.22.4", "0.23.5", "0.23.6", RECENT)
    assert [engine.id for engine in engines] == [
        "tract-0.22.4",
        "tract-0.23.5",
        *("tract-0.23.6", "tract-0.23.6-no-avx512", "tract-0.23.6-no-fma"),
        *(f"tract-{RECENT}", f"tract-{RECENT}-no-avx512", f"tract-{RECENT}-no-fma"),
    ]
    assert engines[-1].title == f"tract {RECENT} no-fma"
    assert header_line(engines[-4:], None) == (
        f"t2n: tract 0.23.6 no-fma, {RECENT}, {RECENT} no-avx512, {RECENT} no-fma; no-avx512 not on 0.23.6"
    )
    assert header_line(selected("native,no-fma", "0.21.19", "0.22.4", RECENT), None) == (
        f"t2n: tract 0.21.19, 0.22.4, {RECENT}, {RECENT} no-fma; no-fma not on 0.21.19, 0.22.4"
    )
    assert [engine.id for engine in selected("", "0.22.4", RECENT)] == ["tract-0.22.4", f"tract-{RECENT}"]


def test_a_binary_has_tiers_by_its_version():
    engines = variants_of([release(RECENT, "cli"), release("0.23.5", "cli")], "native,no-fma", "")
    assert [engine.label for engine in engines] == [f"path-{RECENT}", f"path-{RECENT} no-fma", "path-0.23.5"]


@pytest.mark.parametrize(
    ("cpu", "runtime", "message"),
    [
        ("no-avx51", "", "--t2n-cpu: 'no-avx51' is not a kernel tier"),
        ("native,no-sve2", "", "sve2 is a feature of aarch64, and this machine is x86_64"),
        ("native,no-fma", "", "--t2n-cpu=no-fma: tract 0.23.5 has no kernel tiers, which came with 0.23.6"),
    ],
)
def test_what_no_release_can_be(cpu, runtime, message):
    with pytest.raises(InputError, match=message):
        variants_of([release("0.22.4"), release("0.23.5")], cpu, runtime)


def test_no_release_is_left_out_in_silence():
    with pytest.raises(InputError, match=r"tract 0\.22\.4 has no kernel tiers.*; add native to --t2n-cpu"):
        selected("no-fma", "0.22.4", RECENT)


def test_versions_of_a_marker_speak_of_releases():
    engines = selected("native,no-fma", "0.22.4", RECENT)
    for versions, labels in ((">=0.23", [RECENT, f"{RECENT} no-fma"]), ("0.22", ["0.22.4"])):
        assert [engine.label for engine in engines_for(engines, ["tract"], parse_versions(versions))] == labels


def test_ids_lead_back_to_the_case():
    for engine in selected("native,no-avx512,no-fma", RECENT):
        assert case_id(f"t.py::test_a[x-{engine.id}]", engine.id) == "t.py::test_a[x]"
        assert case_id(f"t.py::test_a[{engine.id}]", engine.id) == "t.py::test_a"


on_x86 = pytest.mark.skipif(kind_of_processor() != "x86_64", reason="tiers are named after features of x86")
TWO = marked('["pass", "mismatch", "crash"]')


@on_x86
def test_tiers_are_cells_and_run_on_the_worker_of_their_case(suite, mode):
    suite.pytester.makepyfile(TWO)
    result = suite.run("--t2n-report=site", "--t2n-cpu=native,no-avx512,no-fma", engines="0.22,0.23", mode=mode)
    result.assert_outcomes(passed=4, failed=8)
    result.stdout.fnmatch_lines(
        [f"t2n: tract 0.22.4 (0.22), {RECENT} (0.23), {RECENT} no-avx512, {RECENT} no-fma; no-avx512*"]
    )
    engines = ["tract-0.22.4", f"tract-{RECENT}", f"tract-{RECENT}-no-avx512", f"tract-{RECENT}-no-fma"]
    assert set(suite.statuses) == {f"test_model[{m}-{e}]" for m in ("pass", "mismatch", "crash") for e in engines}
    assert {cell["case"].rpartition("::")[2] for cell in suite.cells.values()} == {
        "test_model[pass]",
        "test_model[mismatch]",
        "test_model[crash]",
    }
    captures = [line for line in suite.log if " capture " in line]
    assert len(captures) == 3, "the engines of a case share its export"


@on_x86
def test_options_and_their_ini_twins(suite):
    suite.pytester.makepyfile(TWO)
    suite.pytester.makeini("[pytest]\nt2n_cpu = native,no-fma\n")
    suite.run("--t2n-report=site", engines="0.23")
    assert {cell["label"] for cell in suite.cells.values()} == {RECENT, f"{RECENT} no-fma"}
    result = suite.run("--t2n-cpu=no-fmaa", engines="0.23")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --t2n-cpu: 'no-fmaa' is not a kernel tier", "*did you mean `no-fma`?"])
