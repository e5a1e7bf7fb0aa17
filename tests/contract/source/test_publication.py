"""What a package index and a forge show: one version, links that lead somewhere, workflows that name what exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import pytest_t2n
import t2n_core
from pytest_t2n.cli import main

ROOT = Path(__file__).parents[3]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
SITE = "https://pytest-t2n.github.io/pytest-t2n/"
BLOB = "https://github.com/pytest-t2n/pytest-t2n/blob/main/"
FORGE_FILES = sorted((*(ROOT / ".github").rglob("*.yml"), *ROOT.glob("*.yml"), *ROOT.glob(".pre-commit*.yaml")))


def test_the_version_is_in_one_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert "version" not in PROJECT["project"]
    version_file = ROOT / PROJECT["tool"]["hatch"]["version"]["path"]
    assert re.findall(r'^__version__ = "(.*)"$', version_file.read_text("utf-8"), re.MULTILINE) == [
        t2n_core.__version__
    ]
    assert pytest_t2n.__version__ == t2n_core.__version__
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"t2n {t2n_core.__version__}\n"


def test_the_changelog_has_the_version() -> None:
    first = re.search(r"^## (\S+), ", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert first is not None
    assert first[1] == t2n_core.__version__


def test_entries_of_the_changelog_have_a_type() -> None:
    folder = ROOT / PROJECT["tool"]["towncrier"]["directory"]
    types = {entry["directory"] for entry in PROJECT["tool"]["towncrier"]["type"]}
    table = set(re.findall(r"^\| `(\w+)` \|", (folder / "README.md").read_text("utf-8"), re.MULTILINE))
    assert table == types
    for path in folder.glob("*.md"):
        if path.name != "README.md":
            assert path.name.split(".")[1:-1] in [[kind] for kind in types], f"{path}: not NAME.TYPE.md"


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as the site makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md"])
def test_links_work_on_a_package_page(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"^\[[^\]]+\]: (\S+)$", text, re.MULTILINE)
    assert links
    for link in links:
        assert link.startswith("https://"), link
        path, _, heading = link.partition("#")
        if path.startswith(SITE):
            source = ROOT / "docs" / path.removeprefix(SITE)
            source = source.with_suffix(".md") if source.suffix == ".html" else source
            assert source.is_file(), link
            assert not heading or heading in headings(source), link
        elif path.startswith(BLOB):
            assert (ROOT / path.removeprefix(BLOB)).is_file(), link
    prose = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    labels = set(re.findall(r"\]\[([^\]]+)\]", prose)) | set(re.findall(r"[^\]]\[([A-Za-z ]+)\](?![(\[:])", prose))
    assert {label.lower() for label in labels} == set(re.findall(r"^\[([^\]]+)\]: ", text, re.MULTILINE))


def test_urls_are_those_of_readme_and_site() -> None:
    urls = PROJECT["project"]["urls"]
    assert urls["Documentation"] == SITE
    assert urls["Changelog"] == f"{BLOB}CHANGELOG.md"
    mkdocs = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert f"site_url: {SITE}\nrepo_url: {urls['Homepage']}\n" in mkdocs


def test_the_pythons_of_the_classifiers_are_those_of_the_forge() -> None:
    prefix = "Programming Language :: Python :: 3."
    classified = [
        classifier.removeprefix(prefix)
        for classifier in PROJECT["project"]["classifiers"]
        if classifier.startswith(prefix)
    ]
    workflow = (ROOT / ".github/workflows/tests.yml").read_text("utf-8")
    tested = set(re.findall(r'python(?:-version)?: "3\.(\d+)"', workflow))
    assert sorted(tested, key=int) == classified


@pytest.mark.parametrize("path", FORGE_FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_file_of_the_forge_names_what_exists(path: Path) -> None:
    text = path.read_text("utf-8")
    if path.name != "mkdocs.yml":  # has tags of its own
        assert yaml.safe_load(text)
    environments = re.findall(r"^\[testenv:(.+)\]$", (ROOT / "tox.ini").read_text("utf-8"), re.MULTILINE)
    for names in re.findall(r"tox run -e ([\w,]+)", text):
        assert set(names.split(",")) <= set(environments)
    for command in re.findall(r"^ +t2n (\w+ \w+) ", text, re.MULTILINE):
        family, subcommand = command.split()
        with pytest.raises(SystemExit) as ended:
            main([family, subcommand, "--help"])
        assert ended.value.code == 0


def test_actions_are_pinned_by_commit() -> None:
    used = [action for path in FORGE_FILES for action in re.findall(r"uses: *(\S+@.*)", path.read_text("utf-8"))]
    assert len(used) > 20
    assert [action for action in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", action)] == []


PROMISES = {
    "SECURITY.md": "## What is promised",
    "docs/explanation/parity/sessions.md": "# What a green session proves",
}


@pytest.mark.parametrize("page", list(PROMISES))
def test_each_promise_names_its_tests(page: str) -> None:
    _, heading, text = (ROOT / page).read_text("utf-8").partition(PROMISES[page])
    assert heading
    rows = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    for row in rows:
        tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert tests, row
        for path, test in tests:
            assert f"def {test}(" in (ROOT / path).read_text("utf-8"), f"{path}::{test}"
