"""Engines without a session: which of them a marker wants, and the header."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version

from pytest_t2n.config.engines import engines_for, header_line, parse_versions
from pytest_t2n.records.cell import SelectedEngine
from t2n_core.engine.provision.versions import choose_versions, parse_spec
from t2n_core.errors import EngineResolveError
from tests.releases import RECENT


def tract(version: str, label: str = "", requested: str = "") -> SelectedEngine:
    kind = "wheel" if not label else "cli"
    return SelectedEngine("tract", version, label or version, {"kind": kind, "requested": requested or version})


KHRONOS = SelectedEngine("khronos", "1.0.5", "1.0.5")
ALL = [tract("0.21.13"), tract("0.21.19"), tract("0.22.4"), tract(RECENT), tract(RECENT, f"path-{RECENT}"), KHRONOS]


@pytest.mark.parametrize(
    ("versions", "labels"),
    [
        ("0.21", ["0.21.19"]),
        ("0.21.13", ["0.21.13"]),
        (">=0.21.14,<0.23", ["0.21.19", "0.22.4"]),
        ([">=0.22", "0.21.13"], ["0.21.13", "0.22.4", RECENT, f"path-{RECENT}"]),
        ("all-minors", ["0.21.19", "0.22.4", RECENT, f"path-{RECENT}"]),
        ("latest", [RECENT, f"path-{RECENT}"]),
        ("all", ["0.21.13", "0.21.19", "0.22.4", RECENT, f"path-{RECENT}"]),
        ("0.2", []),
        ("0.20,0.22", ["0.22.4"]),
    ],
)
def test_version_filters(versions, labels):
    engines = engines_for(ALL, ("tract", "khronos"), parse_versions(versions))
    assert [engine.label for engine in engines] == [*labels, "1.0.5"]


RELEASES = ["0.19.0", "0.21.13", "0.21.19", "0.23.0.dev5", "0.23.0", RECENT]


def by_option(spec: str) -> list[str] | None:
    try:
        return [str(choice.version) for choice in choose_versions(parse_spec(spec), map(Version, RELEASES))]
    except EngineResolveError:
        return None


def by_marker(spec: str) -> list[str] | None:
    try:
        engines = engines_for([tract(version) for version in RELEASES], ["tract"], parse_versions(spec))
    except EngineResolveError:
        return None
    return [engine.version for engine in engines] or None  # the option refuses what matches nothing, the marker skips


@pytest.mark.parametrize("spec", ["0.21", "0.23.0.dev5", ">=0.22", "latest", "0.19.0", "all", "lates", "0.21,"])
def test_marker_and_option_have_one_grammar(spec):
    assert by_marker(spec) == by_option(spec)


@pytest.mark.parametrize("versions", ["", "newest", "0.21,", ["0.21", ">>1"], [], "path:/to/tract"])
def test_bad_version_filters(versions):
    with pytest.raises(EngineResolveError):
        parse_versions(versions)


def test_ids_are_unique():
    assert len({engine.id for engine in ALL}) == len(ALL)


def test_header():
    engines = [tract("0.21.19", requested="0.21"), tract(RECENT), KHRONOS]
    assert header_line(engines, Path("/c")) == f"t2n: tract 0.21.19 (0.21), {RECENT}; khronos 1.0.5; cache /c"
    assert header_line([KHRONOS], Path("/c")) == "t2n: khronos 1.0.5"


@pytest.mark.parametrize("given", ["--t2n-tract=", "--t2n-tract= , "])
def test_an_empty_selection_is_an_error(suite, given):
    suite.pytester.makepyfile("def test_plain(): pass")
    result = suite.run(given, engines="")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --t2n-tract= names no version: is a variable empty?*"])
