"""Kernel tiers on the real engine: a convolution that is exact with AVX-512 and only approximate without FMA."""

from __future__ import annotations

import json
import re

import pytest

from pytest_t2n.records.cell import SelectedEngine
from pytest_t2n.records.file import read_records
from pytest_t2n.records.platform import this_platform
from pytest_t2n.records.schema import RunLine, cells_of
from pytest_t2n.run.bundle_reader import read_bundle
from t2n_core.engine.processor import this_processor
from t2n_core.engine.provision.store import default_cache_dir
from tests.plugin.run.test_bundles import t2n
from tests.releases import RECENT
from tests.starter import FOR_EXPORTS

CACHE = f"--t2n-cache-dir={default_cache_dir()}"
"""Looked up now: pytester gives each test a home without engines."""

pytestmark = pytest.mark.skipif("avx512f" not in this_processor().features, reason="this processor has no AVX-512")

CONVOLUTION = """
    import pytest
    import torch

    @pytest.mark.nnef_export(target="tract", tolerance="exact")
    def test_conv():
        torch.manual_seed(0)
        return torch.nn.Conv2d(16, 24, 3, padding=1).eval(), torch.randn(1, 16, 19, 21)
"""


@pytest.fixture
def convolution(suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(CONVOLUTION)
    return suite


def run(suite, *arguments):
    return suite.run(
        "--t2n-report=site", CACHE, *arguments, engines=f"0.22.4,{RECENT}", alone=True, modules=FOR_EXPORTS
    )


def test_a_level_is_a_fact_about_kernels(convolution):
    result = run(convolution, "--t2n-cpu=native,no-avx512,no-fma", "--t2n-bundle=bundle", "--t2n-bundle-failures=bad")
    result.assert_outcomes(passed=3, failed=1)
    outcomes = {name: (cell["status"], cell["level"]) for name, cell in convolution.cells.items()}
    assert outcomes == {
        "test_conv[tract-0.22.4]": ("pass", "exact"),
        f"test_conv[tract-{RECENT}]": ("pass", "exact"),
        f"test_conv[tract-{RECENT}-no-avx512]": ("pass", "exact"),
        f"test_conv[tract-{RECENT}-no-fma]": ("mismatch", "approximate"),
    }
    assert len({cell["archive_sha256"] for cell in convolution.cells.values()}) == 1
    assert f"mismatch at stage `compare` in tract {RECENT} no-fma" in result.stdout.str()
    engines = {engine["label"]: engine for engine in convolution.matrix[0]["engines"]}
    assert engines[RECENT]["environment"].keys() == {*engines["0.22.4"]["environment"]}
    assert engines[f"{RECENT} no-fma"]["environment"]["TRACT_CPU_ISA"].startswith("-fma,-avx512f,")
    assert {"fma", "avx512f"} <= set(engines[RECENT]["kernels"])
    assert not {"fma", "avx512f"} & set(engines[f"{RECENT} no-fma"]["kernels"])

    page = (convolution.path / "site" / "index.html").read_text()
    heads = [re.sub(r"<[^>]*>", "", head) for head in re.findall(r"<h2.*?</h2>", page)]
    assert heads[0] == "Other kernels", "what differs between tiers heads the page"
    assert "1 case with another status in another kernel tier" in page
    assert '<td class="bad">mismatch at compare (no-fma)</td>' in page
    summary = (convolution.path / "site" / "summary.md").read_text()
    assert summary.index("With other kernels") < summary.index("| engine |")
    badge = json.loads((convolution.path / "site" / f"badge-tract-{RECENT}.json").read_text())
    assert badge["message"] == "0/1 pass", "a release is as good as its worst tier"

    bundle = convolution.path / "bundle"
    assert len(read_bundle(bundle).checks) == 4
    cache = CACHE.partition("=")[2]
    select = ("--tract", RECENT, "--cpu", "native,no-fma", "--cache-dir", cache, "--report", "again")
    assert t2n("matrix", "run", "--bundle", "bundle", *select, cwd=convolution.path).returncode == 1
    again = cells_of(read_records(convolution.path / "again" / "matrix.jsonl"))
    assert {cell.nodeid.partition("::")[2]: (cell.status, cell.level) for cell in again} == {
        name: outcomes[name] for name in (f"test_conv[tract-{RECENT}]", f"test_conv[tract-{RECENT}-no-fma]")
    }
    (readme,) = convolution.path.glob("bad/*/README.md")
    line = next(line for line in readme.read_text().splitlines() if "t2n matrix" in line)
    assert line.endswith(f"--tract {RECENT} --cpu no-fma")
    done = t2n(*line.split()[1:], "--cache-dir", cache, cwd=convolution.path)
    assert (done.returncode, "mismatch" in done.stdout) == (1, True)


def test_a_pass_is_not_taken_for_other_kernels(convolution, monkeypatch):
    run(convolution, "--t2n-reuse").assert_outcomes(passed=2)
    run(convolution, "--t2n-reuse", "--t2n-cpu=native,no-fma").assert_outcomes(passed=2, failed=1)
    monkeypatch.setenv("TRACT_CPU_ISA", "-avx512f,-fma")
    run(convolution, "--t2n-accept", "--t2n-expect=known.toml").assert_outcomes(passed=2)
    assert not (convolution.path / "known.toml").exists(), "a variable of the shell changes no kernels"


def test_an_expectation_may_speak_of_one_tier(convolution):
    tiers = ("--t2n-cpu=native,no-avx512,no-fma", "--t2n-expect=known.toml")
    run(convolution, *tiers, "--t2n-accept").assert_outcomes(passed=3, xfailed=1)
    assert f'engine = "tract=={RECENT} no-fma"' in (convolution.path / "known.toml").read_text()
    run(convolution, *tiers).assert_outcomes(passed=3, xfailed=1)
    run(convolution, "--t2n-expect=known.toml").assert_outcomes(passed=2)


def test_a_bundle_says_where_it_was_exported_and_where_judged(convolution):
    run(convolution, "--t2n-bundle=bundle").assert_outcomes(passed=2)
    path = convolution.path / "bundle" / "manifest.json"
    manifest = json.loads(path.read_text())
    here = this_platform()
    exporter = manifest["platform"]
    assert (exporter["versions"], exporter["model"]) == (here.versions, here.model)
    exporter |= {"key": "0123456789ab", "machine": "aarch64", "versions": {"torch": "1.2.3", "python": "3.99"}}
    path.write_text(json.dumps(manifest))
    cache = CACHE.partition("=")[2]
    select = ("--tract", RECENT, "--cache-dir", cache, "--report", "again")
    assert t2n("matrix", "run", "--bundle", "bundle", *select, cwd=convolution.path).returncode == 0
    records = read_records(convolution.path / "again" / "matrix.jsonl")
    (judged,) = cells_of(records)
    (line,) = (record for record in records if isinstance(record, RunLine))
    platforms = {platform.key: platform for platform in line.platforms}
    assert platforms[judged.platform].versions["python"] == here.versions["python"] == line.versions["python"]
    assert platforms[judged.platform].model == here.model
    assert platforms[judged.exported].versions == {"torch": "1.2.3", "python": "3.99"}
    assert line.platform, "where it was judged"


def test_a_runtime_that_the_machine_lacks(convolution):
    result = run(convolution, "--t2n-runtime=cpu,metal")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --t2n-runtime=metal: tract {RECENT}: Unknown runtime metal*"])
    assert "Traceback" not in result.stderr.str()


def test_a_runtime_is_in_the_name():
    engine = SelectedEngine("tract", RECENT, f"{RECENT} cuda", {"requested": "0.23"})
    assert (engine.id, engine.title, engine.is_native) == (f"tract-{RECENT}-cuda", f"tract {RECENT} cuda", False)
