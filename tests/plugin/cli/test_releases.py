"""`t2n bisect-releases` on archives and bundles of real engines, and the option of a session."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pytest_t2n.cli import main
from pytest_t2n.cli.upstream import releases as upstream_releases
from t2n_core.engine.provision.store import default_cache_dir
from tests.releases import RECENT
from tests.starter import FOR_EXPORTS

ENGINES_IN_CACHE = ("0.21.7", "0.21.8", "0.21.11", "0.21.19", RECENT)

CACHE = str(default_cache_dir())
"""Looked up now: pytester gives each test a home without engines."""
STRETCHED = """version 1.0;
graph network(a, b) -> (o)
{
  a = external(shape = [1, 1, 1]);
  b = external(shape = [1, 1, 40]);
  o = sub(a, b);
}
"""
"""Wrong in 0.21.8 to 0.21.10."""


@pytest.fixture
def stretched(tmp_path: Path) -> Path:
    folder = tmp_path / "stretched"
    folder.mkdir()
    (folder / "graph.nnef").write_text(STRETCHED)
    a, b = np.full((1, 1, 1), 2, np.float32), np.arange(40, dtype=np.float32).reshape(1, 1, 40)
    np.savez(folder / "io.npz", a=a, b=b, o=a - b)
    np.savez(tmp_path / "inputs.npz", a=a, b=b)
    return folder


def t2n(*arguments: object) -> int:
    return main(["bisect-releases", "--offline", "--cache-dir", CACHE, *map(str, arguments)])


def test_the_window_of_a_release_is_named(stretched: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert t2n(stretched, "--json") == 0
    (report,) = map(json.loads, capsys.readouterr().out.splitlines())
    endings = report["endings"]
    wrong = {release for release, ending in endings.items() if ending != "right"}
    assert wrong == endings.keys() & {"0.21.8", "0.21.9", "0.21.10"}
    assert report["case"] == "stretched"
    assert report["fetched"] == []
    assert ["0.21.7", "0.21.8", "right", "mismatch at compare"] in report["boundaries"]


def test_progress_is_on_stderr(
    stretched: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(upstream_releases, "_SECONDS", 0.0)
    assert t2n(stretched, "--json") == 0
    streams = capsys.readouterr()
    count = len(json.loads(streams.out)["endings"])
    lines = streams.err.splitlines()
    assert (len(lines), lines[-1]) == (count, f"stretched: tract {RECENT}, {count} of {count}")


def test_the_definitions_say_what_has_to_come_out(stretched: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (stretched / "io.npz").unlink()
    for options in (("--inputs", stretched.parent / "inputs.npz"), ()):
        assert t2n(stretched, *options, "--json") == 0
        (report,) = map(json.loads, capsys.readouterr().out.splitlines())
        assert ["0.21.7", "0.21.8", "right", "mismatch at compare"] in report["boundaries"]


def test_a_good_release_says_what_has_to_come_out(stretched: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive, inputs = stretched, stretched.parent / "inputs.npz"
    graph = archive / "graph.nnef"
    text = graph.read_text()
    graph.write_text(text.replace("sub(a, b)", "no_such_operator(a, b)"))
    assert t2n(archive, "--inputs", inputs) == 1
    assert "name a release that is right with --good" in capsys.readouterr().err
    graph.write_text(text)
    assert t2n(archive, "--inputs", inputs, "--good", RECENT) == 0
    assert RECENT in capsys.readouterr().out


def test_a_release_that_is_not_as_was_said_fails(stretched: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert t2n(stretched, "--bad", RECENT) == 1
    assert f"tract {RECENT} was given as bad, but its result is: right" in capsys.readouterr().out


def test_a_release_that_cannot_be_had_is_not_passed_over(stretched: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = stretched.parent / "cache"
    engines = Path("engines", "tract")
    (cache / engines).mkdir(parents=True)
    (cache / engines / RECENT).symlink_to(Path(CACHE) / engines / RECENT)
    index = {"distribution": "tract", "time": 0.0, "versions": ["0.21.19", RECENT]}
    (cache / "index.json").write_text(json.dumps(index))
    arguments = ["bisect-releases", str(stretched), "--offline", "--cache-dir", str(cache), "--good", "0.21.19"]
    assert main(arguments) == 1
    out = capsys.readouterr().out
    assert "1 of 1 releases of tract tried\n  not to be had: 0.21.19 (" in out
    assert "tract 0.21.19 was given as good, but was not tried: " in out
    assert main([*arguments, "--json"]) == 1
    streams = capsys.readouterr()
    assert [json.loads(streams.out)[key] for key in ("endings", "fetched")] == [{RECENT: "right"}, []]
    assert "0.21.19 was given as good" in streams.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "there is no nowhere"),
        (["empty"], "neither a bundle nor a folder of bundles"),
        (["stretched", "--inputs", "other.npz"], "has no array `a`, an input of the graph"),
        (["stretched", "--good", "new"], "'new' is not a version of tract"),
    ],
)
def test_what_is_wrong_is_said(
    stretched: Path,
    arguments: list[str],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(stretched.parent)
    Path("empty").mkdir()
    np.savez("other.npz", x=np.zeros(3))
    assert t2n(*arguments) == 1
    assert words in capsys.readouterr().err


WRONG_SINCE = """
import pytest, torch
from t2n_core import ModelExport
from t2n_core.nnef.releases import Releases
from t2n_core.op.registry import Rule, load_default


def tanh(g, self):
    return g.mul(g.tanh(self), 1.01)


@pytest.mark.nnef_export
def test_tanh(nnef_export):
    rules = load_default().copy()
    rules.remove("aten::tanh")
    rules.add(Rule("aten::tanh", tanh, parameters=frozenset({"self"})))
    rules.add(Rule("aten::tanh", lambda g, self: g.tanh(self), "tract", Releases.of("0.23.0"), frozenset({"self"})))
    nnef_export(ModelExport(torch.nn.Tanh(), torch.randn(2, 5), rules=rules)).assert_parity()
"""


def test_a_failing_cell_is_tried_in_all_releases(suite) -> None:
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(test_wrong=WRONG_SINCE)
    options = ("--t2n-bisect-releases", "--t2n-offline", f"--t2n-cache-dir={CACHE}", "--t2n-bundle-failures=failures")
    result = suite.run(*options, engines="0.21.19", alone=True, modules=FOR_EXPORTS)
    result.stdout.fnmatch_lines(["*releases of tract tried*", "*boundaries:*", "*mismatch at compare, 0.23.* right*"])
    assert main(["bisect-releases", str(suite.path / "failures"), "--offline", "--cache-dir", CACHE]) == 0


def test_a_case_is_written_as_tract_keeps_its_own(stretched: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [
        "--engine",
        "0.21.8",
        "--format",
        "tract",
        "--title",
        "sub is wrong",
        "-o",
        stretched.parent / "upstream",
    ]
    assert main(["bundle", "--offline", "--cache-dir", CACHE, *map(str, [stretched, *options])]) == 0
    stdout = capsys.readouterr().out
    assert "replayed in tract 0.21.8: mismatch at compare" in stdout
    assert ": right" in stdout
    assert (stretched.parent / "upstream" / "runme.sh").exists()
    text = (stretched.parent / "upstream.issue.md").read_text()
    assert text.startswith("# sub is wrong\n\ntract 0.21.8 computes other values")
    assert "the graph has the expected values: the engine is wrong." in text
    assert "| `o`, by definition | [1, 1, 40] | 2, 1, 0," in text


def test_a_case_that_is_no_error_of_the_engine_says_so(stretched: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arrays = dict(np.load(stretched / "io.npz"))
    np.savez(stretched / "io.npz", **{**arrays, "o": arrays["o"] + 1})
    options = ["--engine", RECENT, "--format", "tract", "-o", stretched.parent / "upstream"]
    main(["bundle", "--offline", "--cache-dir", CACHE, *map(str, [stretched, *options])])
    assert "the graph is wrong, and not the engine" in capsys.readouterr().out
