"""A bundle of a session that was killed can be read, and is kept where the session goes on."""

from __future__ import annotations

import pytest

from pytest_t2n.cli import main
from pytest_t2n.run.bundle_reader import read_bundle
from tests.plugin.control.test_resume import CTRL_C, KILL, MODELS
from tests.plugin.judging.bundles import CACHE
from tests.releases import RECENT

ENGINES_IN_CACHE = ("0.21.19", RECENT)


@pytest.mark.parametrize(("where", "stop"), [("n0", KILL), ("n2", CTRL_C)])
def test_the_bundle_of_a_session_that_was_cut_is_kept(suite, where, stop, capsys):
    suite.pytester.makepyfile(MODELS.format(stop=stop))
    options = ("--t2n-report=site", "--t2n-bundle=bundle")
    suite.run(*options, mode=where, engines="0.23", alone=True)
    folder = suite.path / "bundle"
    done = [name for name, cell in suite.cells.items() if cell["status"] != "not_run"]
    bundle = read_bundle(folder)
    assert bundle.problems == []
    assert bundle.unfinished == ("interrupted" if stop == CTRL_C else "its session did not end")
    assert {check.nodeid.partition("::")[2] for check in bundle.checks} >= set(done)
    select = ["--tract", RECENT, "--offline", "--cache-dir", CACHE]
    assert main(["matrix", "run", "--bundle", str(folder), *select]) == 1
    stdout = capsys.readouterr().out
    assert f"the bundle has {len(bundle.checks)} checks, and is incomplete: {bundle.unfinished}" in stdout
    suite.run(*options, "--t2n-resume", mode=where, engines="0.23", alone=True)
    full_bundle = read_bundle(folder)
    assert (full_bundle.unfinished, len(full_bundle.checks)) == ("", 8)
    assert {check.nodeid.partition("::")[2] for check in full_bundle.checks} == set(suite.cells)
    archives = {path.name for path in (folder / "archives").iterdir()}
    assert {check.archive.partition("/")[2] for check in full_bundle.checks} <= archives
    suite.run("--t2n-bundle=bundle", "-k", "model[3", engines="0.23", alone=True)
    assert len(read_bundle(folder).checks) == 1, "a session of its own begins afresh"
