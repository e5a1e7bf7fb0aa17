"""Rewriters from a marker, from the fixture of a folder, and from a call; on the real converter and engines."""

from __future__ import annotations

import pytest

from t2n_core.engine.provision.store import default_cache_dir
from tests.releases import RECENT
from tests.starter import FOR_EXPORTS

CACHE = f"--t2n-cache-dir={default_cache_dir()}"

GATES = """
    import pytest
    import torch
    from t2n_core import rewriter

    class Gate(torch.nn.Module):
        def forward(self, x):
            return torch.sigmoid(x) if float(x.sum()) < 1e30 else x

    @rewriter.module(Gate)
    def sigmoid__any(ctx, module):
        return torch.nn.Sigmoid()

    @rewriter.function(torch.sigmoid, target="tract", versions="<0.22")
    def sigmoid__old(ctx, input):
        return torch.tanh(input * 0.5) * 0.5 + 0.5

    def gate():
        return Gate().eval(), {"x": torch.randn(3, 4)}
"""


def test_marker_and_call(suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(
        GATES
        + """
    @pytest.mark.nnef_export(rewriters=[sigmoid__any, sigmoid__old], strict_rewrites=True, dynamic_axes={"x": [0]})
    def test_marked():
        return gate()

    @pytest.mark.nnef_export
    def test_called(nnef_export):
        model, args = gate()
        result = nnef_export(model, args, rewriters=[sigmoid__any, sigmoid__old])
        assert result.assert_parity("approximate").passed
        old = result.target.version < "0.22"
        assert [r.target for r in result.rewrites.applied] == [None] + ["tract"] * old
        assert any(o.name == "tanh" for o in result.graph.operations) == old

    @pytest.mark.nnef_export
    def test_without():
        return gate()
    """
    )
    result = suite.run(
        "--t2n-report=site", "--t2n-offline", CACHE, engines=f"0.21.19,{RECENT}", alone=True, modules=FOR_EXPORTS
    )
    result.assert_outcomes(passed=4, failed=2)
    assert {name for name, cell in suite.cells.items() if cell["status"] != "pass"} == {
        "test_without[tract-0.21.19]",
        f"test_without[tract-{RECENT}]",
    }
    assert suite.cells[f"test_without[tract-{RECENT}]"]["stage"] == "capture"


def test_fixture(suite):
    suite.pytester.makeconftest("")
    suite.pytester.mkpydir("inner")
    suite.pytester.makepyfile(**{"inner/gates": GATES})
    suite.pytester.makepyfile(
        **{
            "inner/test_gates": """
                import pytest
                from .gates import gate, sigmoid__any, sigmoid__old

                @pytest.fixture
                def nnef_rewriters():
                    return [sigmoid__any]

                @pytest.mark.nnef_export
                def test_folder():
                    return gate()

                @pytest.mark.nnef_export(strict_rewrites=True)
                def test_more(nnef_rewriters):
                    nnef_rewriters.append(sigmoid__old)
                    return gate()

                def test_plain():
                    pass
                """
        }
    )
    result = suite.run("--t2n-offline", CACHE, engines=f"0.21.19,{RECENT}", alone=True, modules=FOR_EXPORTS)
    result.assert_outcomes(passed=5)


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("rewriters=[print]", "*<built-in function print> is not a rewriter*"),
        ("rewriters='gelu'", "*rewriters is a list of rewriters, not 'gelu'*"),
        ("rewriter=[]", "*unknown argument `rewriter`*did you mean `rewriters`*"),
    ],
)
def test_what_is_no_rewriter_is_an_error_at_collection(suite, argument, words):
    suite.pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.nnef_export({argument})
        def test_it():
            return "pass", (1,)
        """
    )
    result = suite.run("--collect-only", engines="0.23")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines([words])
