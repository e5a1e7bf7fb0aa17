"""The console command `t2n`, with engines in a temporary cache."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_t2n.cli.command import FAMILIES, main
from t2n_core.engine.provision import index as index_module
from t2n_core.engine.provision import store as store_module
from t2n_core.engine.provision.store import EngineStore, FileEntry, Manifest
from t2n_core.errors import EngineProvisionError, OptionWarning
from tests.releases import NEWEST


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two engines, one of them damaged; the index has three, and nothing can be downloaded."""
    import hashlib

    import msgspec
    from packaging.version import Version

    cache = tmp_path / "cache"
    content = b"library"
    for version in ("0.21.19", "0.22.4"):
        folder = EngineStore(cache).folder(Version(version))
        (folder / "tract").mkdir(parents=True)
        (folder / "tract" / "tract.so").write_bytes(content if version == "0.21.19" else b"damaged")
        entry = FileEntry("tract/tract.so", hashlib.sha256(content).hexdigest(), len(content))
        manifest = Manifest(version, "tract.whl", "f" * 64, "tract/tract.so", (entry,))
        (folder / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    monkeypatch.setenv("T2N_CACHE_DIR", str(cache))
    monkeypatch.setattr(store_module, "_verified", set())
    monkeypatch.setattr(store_module, "known_wheels", dict)  # these engines are none of the released ones
    monkeypatch.setattr(index_module, "_answers", {})

    def run_pip(arguments: Any, error: type[Exception], problem: str) -> str:
        if arguments[0] == "index":
            versions = ["0.19.0", "0.21.19", "0.22.4", NEWEST]
            return (
                json.dumps({"versions": versions})
                if "--json" in arguments
                else f"Available versions: {', '.join(versions)}"
            )
        raise EngineProvisionError("no network in this test")

    monkeypatch.setattr(index_module, "run_pip", run_pip)
    return cache


def test_list_shows_the_cache(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engines", "list"]) == 0
    out = capsys.readouterr().out
    assert "0.21.19" in out
    assert "0.22.4" in out
    assert NEWEST not in out
    assert f"cache: {cache}" in out


def test_list_of_the_index_marks_what_is_cached(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engines", "list", "--index", "--json"]) == 0
    listing = json.loads(capsys.readouterr().out)
    assert listing["cache_dir"] == str(cache)
    assert {row["version"]: row["cached"] for row in listing["engines"]} == {
        "0.21.19": True,
        "0.22.4": True,
        NEWEST: False,
    }
    assert Path(listing["engines"][0]["library"]).read_bytes() == b"library"


def test_fetch_checks_what_is_there(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engines", "fetch", "0.21"]) == 0
    assert capsys.readouterr().out.splitlines() == ["tract 0.21.19: ready", "1 engine ready"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fetch", "0.25"], "no release of tract matches '0.25'"),
        (["fetch", "0.22", "--offline"], "is damaged: tract/tract.so does not have the sha256"),
        (["fetch", "0.22"], "no network in this test"),
        (["fetch", "latst"], "did you mean `latest`?"),
        (["clean", "0.23"], "no release of tract matches '0.23'"),
        (["clean", "path:/x"], "is not in the cache"),
    ],
)
def test_errors_are_one_message_and_status_1(
    arguments: list[str], message: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["engines", *arguments]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert message in err
    assert "Traceback" not in err
    assert len(EngineStore(cache).versions_on_disk()) == 2


def test_clean_deletes_what_is_named(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engines", "clean", "0.21"]) == 0
    assert capsys.readouterr().out == "tract 0.21.19: deleted\n"
    assert [str(v) for v in EngineStore(cache).versions_on_disk()] == ["0.22.4"]
    assert main(["engines", "clean", "all"]) == 0
    assert EngineStore(cache).versions_on_disk() == []
    assert main(["engines", "clean", "all"]) == 0
    assert "nothing to delete" in capsys.readouterr().out


def test_another_place_can_be_named(cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engines", "list", "--json", "--cache-dir", str(tmp_path / "other")]) == 0
    assert json.loads(capsys.readouterr().out) == {"cache_dir": str(tmp_path / "other"), "engines": []}


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["engines"], ["engines", "fetch"], ["engines", "fly"]])
def test_wrong_usage_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: t2n" in capsys.readouterr().err


def test_help_names_every_family_and_imports_none() -> None:
    script = (
        "import sys\nfrom pytest_t2n.cli import main\ntry:\n    main(['--help'])\nfinally:\n    print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    help_text, modules = done.stdout.rsplit("\n", 2)[:2]
    for name, family in FAMILIES.items():
        assert name in help_text
        assert family.module not in modules.split()


def test_an_error_of_the_system_is_no_traceback(monkeypatch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def run(options: Any) -> int:
        raise OSError(28, "No space left on device", "/tmp/x")

    monkeypatch.setattr("pytest_t2n.cli.doctor.add_commands", lambda parser: parser.set_defaults(run=run))
    assert main(["doctor"]) == 1
    assert capsys.readouterr().err == "error: /tmp/x: No space left on device\n"


def test_a_warning_that_a_filter_makes_an_error_is_no_traceback(
    monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(options: Any) -> int:
        raise OptionWarning("weights had no effect")

    monkeypatch.setattr("pytest_t2n.cli.doctor.add_commands", lambda parser: parser.set_defaults(run=run))
    assert main(["doctor"]) == 1
    assert "turned OptionWarning into an error: weights had no effect" in capsys.readouterr().err


WITHOUT_INDEX = """
import sys
from pytest_t2n.cli.command import main
from t2n_core.engine.provision import index
from t2n_core.errors import EngineResolveError

def refused(*arguments):
    raise EngineResolveError("no network")

index.run_pip = refused
sys.exit(main(["engines", "list", "--index"]))
"""


def test_a_warning_of_the_index_is_one_line(cache: Path) -> None:
    (cache / "index.json").write_text(json.dumps({"distribution": "tract", "time": 0.0, "versions": [NEWEST]}))
    done = subprocess.run([sys.executable, "-c", WITHOUT_INDEX], capture_output=True, text=True, timeout=60, check=True)
    (line,) = done.stderr.splitlines()
    assert line.startswith("warning: the package index did not answer, its versions as of ")
    assert line.endswith(" are used (no network)")
