"""A name of a model becomes its folder in the hub's cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_t2n.cli.exports.hub_cache import hub_cache, model_folder
from t2n_core.errors import InputError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return an HF_HOME with one model: two snapshots, a branch and a tag."""
    cached = tmp_path / "hub" / "models--owner--small-1.5"
    for commit in ("0a1b", "9f8e"):
        (cached / "snapshots" / commit).mkdir(parents=True)
    (cached / "refs" / "pr").mkdir(parents=True)
    (cached / "refs" / "main").write_text("9f8e\n")
    (cached / "refs" / "pr" / "1").write_text("0a1b")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "commit"),
    [("owner/small-1.5", "9f8e"), ("owner/small-1.5@pr/1", "0a1b"), ("owner/small-1.5@0a1b", "0a1b")],
)
def test_a_name_is_its_snapshot(name: str, commit: str, home: Path) -> None:
    folder = model_folder(name, {"HF_HOME": str(home)})
    assert folder == home / "hub" / "models--owner--small-1.5" / "snapshots" / commit
    assert model_folder(name, {"HF_HUB_CACHE": str(home / "hub"), "HF_HOME": "/no"}) == folder


def test_folders_come_before_names(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert model_folder(home / "hub" / "models--owner--small-1.5", {}).name == "9f8e"
    (tmp_path / "owner" / "small-1.5").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert model_folder("owner/small-1.5", {"HF_HOME": str(home)}) == Path("owner/small-1.5")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("owner/other", "there is no folder owner/other, and no model of this name in "),
        ("owner/small-1.5@dev", "has no snapshot of dev"),
        ("../../small", "there is no folder ../../small$"),
        ("/a/b/c", "there is no folder /a/b/c$"),
    ],
)
def test_what_is_not_there_is_refused(name: str, message: str, home: Path) -> None:
    with pytest.raises(InputError, match=message):
        model_folder(name, {"HF_HOME": str(home)})


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"HF_HUB_CACHE": "/a", "HF_HOME": "/b", "XDG_CACHE_HOME": "/c"}, "/a"),
        ({"HF_HOME": "/b", "XDG_CACHE_HOME": "/c"}, "/b/hub"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/huggingface/hub"),
    ],
)
def test_the_place_is_that_of_huggingface_hub(variables: dict[str, str], expected: str) -> None:
    assert hub_cache(variables) == Path(expected)
    assert hub_cache({}) == Path.home() / ".cache" / "huggingface" / "hub"
