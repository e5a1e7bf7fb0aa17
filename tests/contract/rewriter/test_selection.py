"""Which rewriter acts: targets and versions, ties, optional packages, what never applied, and who shares a capture."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from t2n_core import KhronosNNEF, ModelExport, TractNNEF, export_model_to_nnef, rewriter
from t2n_core.errors import RewriteError
from t2n_core.rewriter import FUNCTION_REWRITER, RewriteWarning
from t2n_core.rewriter.selection import select
from tests.releases import NEWEST

OLD, NEW = TractNNEF("0.21.19"), TractNNEF(NEWEST)


@pytest.fixture
def net() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 6), nn.GELU()).eval()


def gelu(**options: Any) -> Any:
    return rewriter.function(F.gelu, **options)(lambda ctx, input, approximate="none": ctx.original(input) + 0.0)


def chosen(rewriters: list[Any], target: Any) -> Any:
    (winner,) = {r for r, _ in select(rewriters, target).torch.values()}
    return winner


def test_the_most_specific_wins_whatever_the_order() -> None:
    """mmdeploy: the first registered one wins, though it is the less specific."""
    plain, tract, ranged = gelu(), gelu(target="tract"), gelu(target="tract", versions=">=0.23,<0.24")
    khronos = gelu(target="khronos")
    for order in ([plain, tract, ranged, khronos], [khronos, ranged, tract, plain]):
        assert chosen(order, NEW) is ranged
        assert chosen(order, OLD) is tract
        assert chosen(order, KhronosNNEF()) is khronos
        assert chosen(order, None) is plain


def test_a_users_one_comes_before_a_built_in_one() -> None:
    builtin, mine = replace(gelu(target="tract", versions=">=0.20"), builtin=True), gelu()
    assert chosen([builtin, mine], NEW) is mine
    assert chosen([builtin], NEW) is builtin


def test_versions_count_pre_releases() -> None:
    assert gelu(target="tract", versions=">=0.22").fits(TractNNEF("0.23.0.rc1".replace(".rc", "rc")))
    assert not gelu(target="tract", versions="<0.22").fits(NEW)


def test_two_equally_specific_ones_name_both_places(net: nn.Module, x: torch.Tensor) -> None:
    first, second = gelu(target="tract"), rewriter.function("torch.nn.functional.gelu", target="tract")(F.gelu)
    with pytest.raises(RewriteError, match=r"test_selection\.py:\d+ and .*test_selection\.py:\d+"):
        select([first, second], NEW)
    select([first, second], KhronosNNEF())  # neither is for it
    select([first, first], NEW)  # the same one given twice
    ranges = [gelu(target="tract", versions="<0.22"), gelu(target="tract", versions=">=0.22")]
    assert chosen(ranges, NEW) is ranges[1]


def test_spellings_of_one_function_clash() -> None:
    rewrites = [
        rewriter.function(f)(lambda ctx, *args: ctx.original(*args)) for f in (torch.matmul, torch.Tensor.matmul)
    ]
    with pytest.raises(RewriteError, match="equally specific"):
        select(rewrites, NEW)


def test_one_function_may_have_several_names_in_one_class() -> None:
    """Each has its own original: in mmdeploy a loop nested too deep mixes them up."""
    originals: list[Any] = []

    def note(ctx: rewriter.RewriteContext, input: Any, *rest: Any) -> Any:
        originals.append(ctx.original)
        return ctx.original(input, *rest)

    net = nn.Sequential(nn.Sigmoid(), nn.Tanh())
    rewriters = [rewriter.function(torch.sigmoid)(note), rewriter.function(torch.tanh)(note)]
    _ = ModelExport(net, (torch.randn(3),), rewriters=rewriters).captured
    assert originals == [torch.sigmoid, torch.tanh]


# ------------------------------------------------------------------------------------------------ optional packages
def test_a_package_that_is_not_there_is_listed(net: nn.Module, x: torch.Tensor, tmp_path: Path) -> None:
    absent = rewriter.function("t2n_no_such_package.models.Net.forward")(lambda ctx, self, x: x)
    with pytest.warns(RewriteWarning, match="t2n_no_such_package is not installed") as caught:
        result = ModelExport(net, (x,), rewriters=[absent]).to(NEW, tmp_path / "m.tar")
    assert len(caught) == 1
    assert list(result.rewrites.unapplied) == [absent]
    assert "never applied" in str(result.rewrites)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("packaging.version.Versoin", "did you mean `Version`"),
        ("packaging.version.Version.is_prerelese", "did you mean `is_prerelease`"),
        ("packaging.versoin.Version", r"has no 'versoin'"),
        ("torch.nn.functional:geluu", "did you mean"),
    ],
)
def test_a_wrong_name_raises(net: nn.Module, x: torch.Tensor, path: str, words: str) -> None:
    with pytest.raises(RewriteError, match=words):
        select([rewriter.function(path)(lambda ctx: None)], NEW)


def test_a_package_that_is_installed_and_not_loaded_is_looked_into(tmp_path: Path) -> None:
    (tmp_path / "lazy_package").mkdir()
    (tmp_path / "lazy_package" / "__init__.py").write_text("")
    (tmp_path / "lazy_package" / "inner.py").write_text("def f(x): return x.numpy()\n")
    code = (
        "import sys, torch; from t2n_core import rewriter; from t2n_core.rewriter.selection import select\n"
        "r = rewriter.function('lazy_package.inner.f')(lambda ctx, x: x)\n"
        "assert 'lazy_package' not in sys.modules\n"
        "assert select([r], None).python and 'lazy_package.inner' in sys.modules\n"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        check=True,
        env={**__import__("os").environ, "PYTHONPATH": f"{Path(__file__).parents[3]}:{tmp_path}"},
    )


# ------------------------------------------------------------------------------------------------- what never applied
def test_what_never_applied_is_one_warning_or_an_error(net: nn.Module, x: torch.Tensor, tmp_path: Path) -> None:
    unused = [rewriter.function(f)(lambda ctx, x: x) for f in (torch.tanh, torch.relu, "aten::elu")]
    unused += [rewriter.module(nn.Tanh)(nn.ReLU()), rewriter.symbolic("aten::tanh")(lambda g, self: self)]
    used = gelu()
    with pytest.warns(RewriteWarning) as caught:
        result = ModelExport(net, (x,), rewriters=[*unused, used]).to(NEW, tmp_path / "m.tar")
    assert len(caught) == 1
    assert str(caught[0].message).count("the model does not use it") == 5
    assert Path(caught[0].filename) == Path(__file__)
    assert set(result.rewrites.unapplied) == set(unused)
    assert result.rewrites.applied == {used: 1}
    archive = tmp_path / "strict.tar"
    with pytest.raises(RewriteError, match=r"never applied:\n- torch.tanh"):
        export_model_to_nnef(net, (x,), archive, NEW, rewriters=unused, strict_rewrites=True)
    assert not archive.exists()


def test_those_for_other_targets_are_not_reported(net: nn.Module, x: torch.Tensor, tmp_path: Path) -> None:
    others = [gelu(target="khronos"), gelu(target="tract", versions="<0.22"), gelu(target="tract"), gelu()]
    export = ModelExport(net, (x,), rewriters=others, strict_rewrites=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert export.to(NEW, tmp_path / "m.tar").rewrites.applied == {others[2]: 1}


# --------------------------------------------------------------------------------------------------------- captures
def test_a_capture_is_shared_by_versions_with_the_same_rewriters(
    net: nn.Module, x: torch.Tensor, tmp_path: Path
) -> None:
    seen: list[str] = []

    @rewriter.function(F.gelu, target="tract", versions="<0.22")
    def gelu__old(ctx: rewriter.RewriteContext, input: torch.Tensor, approximate: str = "none") -> torch.Tensor:
        seen.append("old")
        return 0.5 * input * (1.0 + torch.erf(input * 0.5**0.5))

    export = ModelExport(net, (x,), rewriters=[gelu__old])
    for version in ("0.21.13", "0.21.19", "0.22.4", NEWEST):
        result = export.to(TractNNEF(version), tmp_path / f"{version}.tar")
        result.assert_parity("approximate")
        assert result.rewrites.applied == ({gelu__old: 1} if version < "0.22" else {})
    assert seen == ["old"]
    assert len(export._captures.entries) == 2


def test_what_a_rewrite_reads_of_its_target_decides_who_shares_its_capture(
    net: nn.Module, x: torch.Tensor, tmp_path: Path
) -> None:
    def export_where(is_old: Callable[[rewriter.RewriteContext], bool]) -> tuple[int, list[set[str]]]:
        """Return the number of captures without a target and for five, and the operators of each archive."""
        answers = []

        @rewriter.function(F.gelu)
        def gelu__any(ctx: rewriter.RewriteContext, input: torch.Tensor, approximate: str = "none") -> torch.Tensor:
            answers.append(is_old(ctx))
            return input * torch.sigmoid(1.702 * input) if answers[-1] else ctx.original(input)

        export = ModelExport(net, (x,), rewriters=[gelu__any])
        assert export.captured.symbols == {}
        versions = ("0.21.19", NEWEST, "0.22.4", "0.21.19", NEWEST)
        graphs = [export.to(TractNNEF(version), tmp_path / "model.tar").graph for version in versions]
        return len(answers), [{operation.name for operation in graph.operations} for graph in graphs]

    captures, names = export_where(lambda ctx: ctx.target is not None and ctx.target.version < "0.22")
    assert captures == 6
    assert names[0] == names[3] != names[1] == names[4]
    assert ["sigmoid" in of_archive for of_archive in names] == [True, False, False, True, False]
    captures, names = export_where(lambda ctx: not ctx.has_operator("tract_core_cumsum"))
    assert captures == 2
    assert names[0] == names[3] != names[1] == names[4]
    assert ["sigmoid" in of_archive for of_archive in names] == [True, False, True, True, False]


def test_a_rewriter_is_no_rewriter_s_replacement() -> None:
    with pytest.raises(RewriteError, match="one subject"):
        rewriter.function(F.gelu)(gelu())
    with pytest.raises(RewriteError, match="without a target"):
        gelu(versions=">=0.21")
    with pytest.raises(RewriteError, match="not a range"):
        gelu(target="tract", versions="0.21 or so")
    with pytest.raises(RewriteError, match="is a class"):
        select([rewriter.function(nn.GELU)(lambda ctx, x: x)], NEW)
    with pytest.raises(RewriteError, match="neither a callable"):
        rewriter.function(3)(lambda ctx, x: x)


@pytest.mark.parametrize("name", ["tracts", "Tract", "kronos"])
def test_a_target_that_is_nearly_another_one(name: str) -> None:
    """A rewriter for a mistyped target would never apply; a name unlike any may be that of a user's own target."""
    expected = f"for the target `{name}`; did you mean `(tract|khronos)`"
    with pytest.warns(RewriteWarning, match=expected):
        rewriter.function(torch.tanh, target=name)(torch.sigmoid)
    with FUNCTION_REWRITER, pytest.warns(RewriteWarning, match=expected):
        FUNCTION_REWRITER.register_rewriter(func_name=torch.tanh, backend=name)(torch.sigmoid)
    with warnings.catch_warnings(action="error"):
        rewriter.function(torch.tanh, target="tensorrt")(torch.sigmoid)
