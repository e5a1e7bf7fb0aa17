"""A report in a folder of somebody else: what no report wrote stays as it is."""

from __future__ import annotations

import pytest

from pytest_t2n.cli import main
from tests.plugin.suites import marked
from tests.releases import RECENT

MODEL = marked(model='"pass"')
BADGE = '{"schemaVersion": 1, "label": "coverage", "message": "97 %", "color": "green"}'


def test_files_of_others_stay(suite):
    suite.pytester.makepyfile(MODEL)
    site = suite.path / "site"
    foreign = {
        "badge-coverage.json": BADGE,
        "badge-tract.json": "no JSON",
        "page-0123456789ab/notes.txt": "mine",
        "page-one/evidence-0.js": "mine",
    }
    for name, text in foreign.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    ours = site / "page-ba9876543210"
    ours.mkdir()
    (ours / "evidence-0.js").write_text("t2nPart()")
    for _ in range(2):
        assert suite.run("--t2n-report=site", engines="0.22").ret == 0
    assert suite.run("--t2n-report=site", engines="0.23").ret == 0
    assert {name: (site / name).read_text() for name in foreign} == foreign
    assert not ours.exists()
    assert [path.name for path in site.glob("badge-tract-*")] == [f"badge-tract-{RECENT}.json"]
    assert main(["matrix", "html", str(site / "matrix.jsonl"), "-o", str(site)]) == 0


@pytest.mark.parametrize("option", ["--t2n-report", "--t2n-bundle"])
def test_git_ignores_a_folder_of_ours_alone(option, suite):
    """As the cache of pytest; a folder that was there with other files, or with none, belongs to somebody."""
    suite.pytester.makepyfile(MODEL)
    (suite.path / "docs").mkdir()
    for folder in ("out", "docs"):
        assert suite.run(f"{option}={folder}", engines="0.23").ret == 0
    ignored, docs = suite.path / "out" / ".gitignore", suite.path / "docs" / ".gitignore"
    assert ignored.read_text().splitlines()[-1] == "*"
    assert not docs.exists()
    ignored.write_text("")
    (suite.path / "docs" / "notes.md").write_text("mine")
    for folder in ("out", "docs"):
        assert suite.run(f"{option}={folder}", engines="0.23").ret == 0
    assert ignored.read_text() == ""
    assert not docs.exists()
    (suite.path / "docs" / "notes.md").unlink()
    assert suite.run(f"{option}=docs", engines="0.23").ret == 0
    assert docs.exists()


def test_git_ignores_the_folder_of_a_merged_report(suite):
    suite.pytester.makepyfile(MODEL)
    assert suite.run("--t2n-report=site", engines="0.23").ret == 0
    merged = suite.path / "merged"
    assert main(["matrix", "merge", str(suite.path / "site" / "matrix.jsonl"), "-o", str(merged)]) == 0
    assert (merged / ".gitignore").exists()


@pytest.mark.parametrize("name", ["index.html", "summary.md", "matrix.jsonl"])
def test_a_file_of_somebody_else_is_not_overwritten(suite, name, capsys):
    suite.pytester.makepyfile(MODEL)
    assert suite.run("--t2n-report=site", engines="0.23").ret == 0
    docs = suite.path / "docs"
    docs.mkdir()
    (docs / name).write_text("my own")
    result = suite.run("--t2n-report=docs", engines="0.23")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"*docs/{name} is not from a report, and would be overwritten: name another directory"]
    )
    site = str(suite.path / "site" / "matrix.jsonl")
    for command in (["html", site, "-o", str(docs)], ["merge", site, "-o", str(docs)]):
        assert main(["matrix", *command]) == 1
        assert "is not from a report" in capsys.readouterr().err
    assert [path.name for path in docs.iterdir() if not path.name.startswith(".")] == [name]
    assert (docs / name).read_text() == "my own"


@pytest.mark.parametrize("there", [True, False])
def test_what_a_link_leads_to_stays(suite, there):
    suite.pytester.makepyfile(MODEL)
    target, site = suite.path / "target.jsonl", suite.path / "site"
    site.mkdir()
    if there:
        target.write_text("{}\n")
    (site / "matrix.jsonl").symlink_to(target)
    assert suite.run("--t2n-report=site", engines="0.23").ret == 0
    assert target.exists() == there
    assert not there or target.read_text() == "{}\n"
    assert suite.statuses == {f"test_model[tract-{RECENT}]": "pass"}
