"""What pip is asked, and what its several versions answer."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from t2n_core.engine.provision import index as index_module
from t2n_core.engine.provision.index import download_wheel, forget_answers, list_versions, wheel_record
from t2n_core.errors import EngineProvisionError, EngineResolveError
from tests.releases import NEWEST

TEXT = f"""tract ({NEWEST})
Available versions: {NEWEST}, 0.23.8.dev1, 0.21.19, 0.21.2, not-a-version
  INSTALLED: 0.21.2
  LATEST:    {NEWEST}
"""
JSON = f'{{"name": "tract", "versions": ["{NEWEST}", "0.23.8.dev1", "0.21.19", "0.21.2", "x.y"], "latest": "{NEWEST}"}}'
ASKED = ["index", "versions", "tract", "--pre"]
FOREIGN = ["--only-binary=:all:", "--python-version=3.11", "--implementation=cp", "--abi=cp311"]
NETWORK = """WARNING: Location 'file:///somewhere/' is ignored: it is neither a file nor a directory.
WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError("refused")': /simple/tract/
ERROR: Could not find a version that satisfies the requirement tract (from versions: none)
ERROR: No matching distribution found for tract
"""

FakePip = Callable[..., list[list[str]]]


@pytest.fixture
def fake_pip(monkeypatch: pytest.MonkeyPatch) -> FakePip:
    """Stands in for the process of pip; gives the list of its calls."""

    def install(version: str, stdout: str = "", stderr: str = "", code: int = 0) -> list[list[str]]:
        calls: list[list[str]] = []

        def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
            assert options["stdin"] is subprocess.DEVNULL
            assert options["timeout"] > 0
            assert options["env"]["PIP_NO_INPUT"] == "1"
            calls.append(command)
            return subprocess.CompletedProcess(command, code, stdout, stderr)

        monkeypatch.setattr(index_module.subprocess, "run", run)
        monkeypatch.setattr(index_module.metadata, "version", lambda name: version)
        forget_answers()
        return calls

    return install


@pytest.mark.parametrize(
    ("pip", "stdout", "more"),
    [("23.1", TEXT, []), ("25.0.1", TEXT, []), ("25.1", JSON, ["--json"]), ("26.3", JSON, ["--json"])],
)
def test_both_forms_of_pips_answer(pip: str, stdout: str, more: list[str], fake_pip: FakePip, tmp_path: Path) -> None:
    calls = fake_pip(pip, stdout)
    expected = tuple(map(Version, ("0.21.2", "0.21.19", "0.23.8.dev1", NEWEST)))
    assert list_versions(tmp_path) == expected
    assert [call[3:] for call in calls] == [["pip", *ASKED, *FOREIGN, *more]]
    assert list_versions(tmp_path) == expected
    assert len(calls) == 1
    assert list_versions(tmp_path, offline=True) == expected


@pytest.mark.parametrize(
    ("pip", "stdout"), [("24.0", ""), ("24.0", JSON), ("26.0", TEXT), ("26.0", "{}"), ("26.0", "[]")]
)
def test_an_answer_that_is_not_understood(pip: str, stdout: str, fake_pip: FakePip, tmp_path: Path) -> None:
    fake_pip(pip, stdout)
    with pytest.raises(EngineResolveError, match="not understood"):
        list_versions(tmp_path)


def test_a_list_without_versions(fake_pip: FakePip, tmp_path: Path) -> None:
    fake_pip("26.0", '{"versions": []}')
    with pytest.raises(EngineResolveError, match="lists no version of tract for this platform"):
        list_versions(tmp_path)


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        (NETWORK, 'the index cannot be reached: NewConnectionError("refused")'),
        ("WARNING: a\nERROR: HTTP error 403\nERROR: second\n", "HTTP error 403; second"),
        ("a\nb\nc\nd\n", "b; c; d"),
        ("", "pip reported no reason"),
    ],
)
def test_pips_reason_is_told(stderr: str, reason: str, fake_pip: FakePip, tmp_path: Path) -> None:
    fake_pip("26.0", stderr=stderr, code=1)
    with pytest.raises(EngineResolveError) as caught:
        list_versions(tmp_path)
    assert caught.value.message.endswith(f": {reason}")


def test_pip_that_hangs_or_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    forget_answers()
    monkeypatch.setattr(index_module, "PIP_TIMEOUT", 0.01)
    with pytest.raises(EngineResolveError, match="did not finish in 0 s"):
        list_versions(tmp_path)
    monkeypatch.setattr(index_module.sys, "executable", str(tmp_path / "no python"))
    with pytest.raises(EngineResolveError, match="pip could not be started"):
        list_versions(tmp_path)


@pytest.mark.parametrize("report", ["", "{}", '{"install": []}', '{"install": [{"download_info": {"url": "x"}}]}'])
def test_a_report_without_a_hash(report: str, fake_pip: FakePip, tmp_path: Path) -> None:
    fake_pip("26.0", report)
    with pytest.raises(EngineProvisionError, match=r"no sha256 for the wheel of tract 0\.21\.19"):
        wheel_record(Version("0.21.19"), tmp_path / "never made")
    assert list(tmp_path.iterdir()) == []


def test_a_download_that_left_nothing(fake_pip: FakePip, tmp_path: Path) -> None:
    fake_pip("26.0")
    with pytest.raises(EngineProvisionError, match="pip left 0 wheels"):
        download_wheel(Version("0.21.19"), tmp_path)


def test_a_cache_that_cannot_be_written_only_loses_the_memory(fake_pip: FakePip, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    fake_pip("26.0", JSON)
    assert len(list_versions(tmp_path / "file")) == 4


def test_the_real_index_has_every_line(tmp_path: Path) -> None:
    forget_answers()
    versions = list_versions(tmp_path)
    assert {v.release[:2] for v in versions} >= {(0, 19), (0, 20), (0, 21), (0, 22), (0, 23)}
    assert Version("0.21.13") in versions
    record = wheel_record(Version("0.21.13"), tmp_path / "target")
    assert record.filename.startswith("tract-0.21.13-cp311-cp311-")
    assert len(bytes.fromhex(record.sha256)) == 32
    forget_answers()
