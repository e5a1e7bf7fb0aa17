"""Names and messages that no file, pipe or terminal takes as they are: one cell's outcome each, and nothing is lost."""

from __future__ import annotations

import pytest

from pytest_t2n.cli import main
from tests.plugin.conftest import EVERYWHERE
from tests.releases import RECENT

STRANGE = """
    import pytest

    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no str")
        __repr__ = __str__

    class Ids(BaseException):
        pass

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("number", range(11))
    def test_model(number, record_property):
        if number == 1:
            raise ValueError("cannot read \\udcff.bin")
        if number == 2:
            raise Mute
        if number == 3:
            raise ValueError("\\x1b[2J\\x1b[31mred [bold]x[/data/x.wav]")
        if number == 4:
            raise Ids("\\ud800")
        if number == 5:
            pytest.skip("for want of \\udcff")
        if number == 6:
            record_property("t2n_op", "op \\udcff")
            record_property("file", "\\udcff")
        if number == 7:
            raise SystemExit(3)
        if number == 8:
            test_model(number, record_property)
        if number == 9:
            raise ValueError("A" * 10_000_000)
        return "pass", (1,)

    @pytest.mark.nnef_export
    def test_by_hand(nnef_export):
        raise ValueError("by hand \\udcff")
"""


@pytest.mark.parametrize("where", EVERYWHERE)
def test_strange_messages_are_outcomes_of_their_cells(suite, where, monkeypatch, capsys):
    suite.pytester.makepyfile(STRANGE)
    result = suite.run("--t2n-report=site", "-p", "no:logging", mode=where, engines="0.23")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    result.assert_outcomes(passed=3, failed=8, skipped=1)
    messages = {
        name.partition("-tract")[0]: (cell["status"], cell.get("error", {}).get("message", "")[:60])
        for name, cell in suite.cells.items()
    }
    assert messages == {
        "test_model[0": ("pass", ""),
        "test_model[1": ("error", r"cannot read \udcff.bin"),
        "test_model[2": ("error", "<str() of this Mute raises RuntimeError>"),
        "test_model[3": ("error", "\x1b[2J\x1b[31mred [bold]x[/data/x.wav]"),
        "test_model[4": ("error", r"\ud800"),
        "test_model[5": ("skip", r"for want of \udcff"),
        "test_model[6": ("pass", ""),
        "test_model[7": ("error", "3"),
        "test_model[8": ("error", "maximum recursion depth exceeded"),
        "test_model[9": ("error", "A" * 60),
        "test_model[10": ("pass", ""),
        f"test_by_hand[tract-{RECENT}]": ("error", r"by hand \udcff"),
    }
    assert suite.cells[f"test_model[6-tract-{RECENT}]"]["op"] == r"op \udcff"
    assert suite.matrix[-1]["type"] == "end"
    summary = (suite.path / "site" / "summary.md").read_text()
    assert "\x1b" not in summary + (suite.path / "site" / "index.html").read_text()
    assert r"\\x1b\[2J\\x1b\[31mred \[bold\]x\[/data/x.wav\]" in summary
    capsys.readouterr()
    assert main(["matrix", "query", str(suite.path / "site"), "--surprises"]) == 0
    printed = capsys.readouterr().out
    assert r"\x1b[2J\x1b[31mred [bold]x[/data/x.wav]" in printed
    assert "\x1b" not in printed


@pytest.mark.parametrize("where", ["n0", "no_xdist"])
def test_strange_node_ids_keep_their_records(suite, where):
    """Workers of xdist and the cache of pytest cannot have such ids at all."""
    suite.pytester.makeini("[pytest]\ndisable_test_id_escaping_and_forfeit_all_rights_to_community_support = true\n")
    suite.pytester.makepyfile(
        """
        import os
        import pytest

        @pytest.mark.nnef_export
        @pytest.mark.parametrize("name", ["a", "b\\udcff", "c\\x1b[31m", "[/data/x.wav]"])
        def test_model(name):
            if name == "[/data/x.wav]" and not os.path.exists("again"):
                open("again", "w").close()
                os.kill(os.getpid(), 9)
            return "pass", (1,)
        """
    )
    options = ("--t2n-report=site", "-p", "no:cacheprovider")
    suite.run(*options, mode=where, engines="0.23", alone=True)
    assert len(suite.cells) == 3
    result = suite.run(*options, "--t2n-resume", mode=where, engines="0.23", alone=True)
    result.assert_outcomes(passed=1, deselected=3)
    assert list(suite.statuses.items()) == [
        (f"test_model[a-tract-{RECENT}]", "pass"),
        (rf"test_model[b\udcff-tract-{RECENT}]", "pass"),
        (f"test_model[c\x1b[31m-tract-{RECENT}]", "pass"),
        (f"test_model[[/data/x.wav]-tract-{RECENT}]", "pass"),
    ]
    assert len(suite.runs) == 4, "what was done is not run again"


ODD_IDS = """
    import pytest

    IDS = ["n" * 200_000, "nul\\0", "\N{GRINNING FACE}", "../../../escaped", "/tmp/escaped", "a::b", "[x]", " ", "é"]

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("model", ["pass"] * 8 + ["mismatch"], ids=IDS)
    def test_model(model):
        return model, (1,)
"""


@pytest.mark.parametrize("where", EVERYWHERE)
def test_odd_parameter_ids_keep_their_records(suite, where):
    suite.pytester.makepyfile(ODD_IDS)
    result = suite.run("--t2n-report=site", "--t2n-bundle=bundle", mode=where, engines="0.23")
    result.assert_outcomes(passed=8, failed=1)
    assert sorted(suite.statuses.values()) == ["mismatch"] + ["pass"] * 8
    assert max(map(len, suite.cells)) > 200_000
    assert not [path for path in suite.path.parent.rglob("*escaped*") if suite.path not in path.parents]
    assert (suite.path / "site" / "index.html").exists()
    assert main(["matrix", "query", str(suite.path / "site"), "--surprises"]) == 0
