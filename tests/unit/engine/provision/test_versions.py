from __future__ import annotations

import pytest
from packaging.version import Version

from t2n_core.engine.provision.versions import choose_versions, parse_spec
from t2n_core.errors import EngineResolveError
from tests.releases import RECENT

RELEASES = f"0.19.0 0.19.2 0.19.15 0.20.3 0.20.22 0.21.0 0.21.9 0.21.10 0.21.13 0.21.19 0.22.1 0.22.4 0.23.0 {RECENT}"
AVAILABLE = [Version(text) for text in [*RELEASES.split(), "0.23.0.dev5", "0.24.0.dev1"]]


def resolve(spec: str) -> list[str]:
    return [str(choice.version) for choice in choose_versions(parse_spec(spec), AVAILABLE)]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("0.21", "0.21.19"),
        ("0.21.13", "0.21.13"),
        ("0.21.0", "0.21.0"),
        ("0", RECENT),
        (" 0.21 , 0.23 ", f"0.21.19 {RECENT}"),
        ("0.23,0.21", f"0.21.19 {RECENT}"),
        ("0.21,0.21.19,0.21", "0.21.19"),
        (">=0.21,<0.23", "0.21.0 0.21.9 0.21.10 0.21.13 0.21.19 0.22.1 0.22.4"),
        (">=0.21,<0.23,!=0.21.9,!=0.21.10", "0.21.0 0.21.13 0.21.19 0.22.1 0.22.4"),
        ("==0.21.*", "0.21.0 0.21.9 0.21.10 0.21.13 0.21.19"),
        ("~=0.21.10", "0.21.10 0.21.13 0.21.19"),
        ("<0.20", "0.19.2 0.19.15"),
        ("0.19,>=0.22,<0.23,latest", f"0.19.15 0.22.1 0.22.4 {RECENT}"),
        (">=0.22,<0.23,0.19,<0.19.10", "0.19.2 0.19.15 0.22.1 0.22.4"),
        ("latest", RECENT),
        ("all-minors", f"0.19.15 0.20.22 0.21.19 0.22.4 {RECENT}"),
        ("all", f"0.19.2 0.19.15 0.20.3 0.20.22 0.21.0 0.21.9 0.21.10 0.21.13 0.21.19 0.22.1 0.22.4 0.23.0 {RECENT}"),
        ("0.23.0.dev5", "0.23.0.dev5"),
        ("0.24.0.dev1,0.21", "0.21.19 0.24.0.dev1"),
        (">=0.23", f"0.23.0 {RECENT}"),
        ("path:/opt/tract", ""),
        ("path:/opt/tract,0.22", "0.22.4"),
    ],
)
def test_grammar(spec: str, expected: str) -> None:
    assert resolve(spec) == expected.split()


@pytest.mark.parametrize(
    ("spec", "message", "hint"),
    [
        ("0.21.25", "no release of tract matches '0.21.25'", "0.21.0, 0.21.9, 0.21.10, 0.21.13, 0.21.19"),
        ("0.25", "no release of tract matches '0.25'", f"0.19.15, 0.20.22, 0.21.19, 0.22.4, {RECENT}"),
        ("0.24", "no release of tract matches '0.24'", "newest of each line"),
        (">=0.25", "no release of tract matches '>=0.25'", RECENT),
        ("0.19.0", "cannot load tract_core", "0.19.2, 0.19.15"),
        ("latst", "'latst' is not an engine version", "did you mean `latest`?"),
        ("all-minor", "'all-minor' is not an engine version", "did you mean `all-minors`?"),
        ("0,21", "no release of tract matches '21'", "newest of each line"),
        ("0.21.x", "'0.21.x' is not an engine version", ">=0.21,<0.23"),
        (">=0.21,<", "'>=0.21,<' is not a version range", ">=0.21,<0.23"),
        ("0.21,,0.23", "empty item", "0.21.13"),
        ("", "empty item", "latest"),
        ("path:", "names no file", "path:/to/tract"),
    ],
)
def test_what_is_refused_says_what_to_write(spec: str, message: str, hint: str) -> None:
    with pytest.raises(EngineResolveError) as caught:
        resolve(spec)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_a_platform_without_any_release_is_named() -> None:
    with pytest.raises(EngineResolveError, match="no release is available for this platform"):
        choose_versions(parse_spec("latest"), [])


def test_the_first_item_that_asks_is_remembered() -> None:
    choices = choose_versions(parse_spec("latest,0.23,>=0.22"), AVAILABLE)
    assert {str(c.version): c.requested for c in choices} == {
        "0.22.1": ">=0.22",
        "0.22.4": ">=0.22",
        "0.23.0": ">=0.22",
        RECENT: "latest",
    }


def test_a_path_keeps_its_text_and_expands_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    (item,) = parse_spec("path:~/bin/tract")
    assert (item.kind, item.text, str(item.path)) == ("path", "path:~/bin/tract", "/home/someone/bin/tract")
