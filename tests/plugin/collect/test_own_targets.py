"""Targets of a user in the marker, on real engines: their cells are like all others."""

from __future__ import annotations

import pytest

from t2n_core.engine.provision.store import default_cache_dir
from tests.releases import RECENT
from tests.starter import FOR_EXPORTS

CACHE = f"--t2n-cache-dir={default_cache_dir()}"
"""Looked up now: pytester gives each test a home without engines."""

TARGETS = """
import pytest
import torch
from torch import nn

from t2n_core import InferenceTarget, KhronosNNEF, TractNNEF
from t2n_core.errors import WriteError

class Product(TractNNEF):
    def __init__(self, version, label="m1", **options):
        super().__init__(version, registries=[], specific_properties={"label": label}, **options)

    def post_write(self, model, nnef_graph, args, exported_filepath, debug_bundle_path=None):
        if nnef_graph.properties["label"] == "refused":
            raise WriteError("this label is refused")

class Doubling(InferenceTarget):
    "Its engine doubles its input, whatever the archive holds."
    name = "doubling"

    def __init__(self, version="1.2", **options):
        super().__init__(version, **options)

    def engine(self):
        return DoublingEngine()

class DoublingEngine:
    name, version, kept_states = "doubling", "1.2", None

    def run(self, archive, batches, *, timeout=60.0):
        from t2n_core.engine.protocol import EngineReply

        outputs = tuple((batch[0] * 2,) for batch in batches)
        return EngineReply("ok", "run", outputs=outputs, times={"run": 0.001})

    def close(self):
        pass

class Twice(nn.Module):
    def __init__(self, factor=2.0):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor
"""
TESTS = """
@pytest.mark.nnef_export(target=["tract", Product], dynamic_axes={"x": {0: "T"}})
def test_class():
    return Twice(), torch.randn(3, 4)

@pytest.mark.nnef_export(target=[Product("0.21.19", "m2"), Doubling])
def test_instance(nnef_export):
    result = nnef_export(Twice(), torch.randn(3, 4))
    assert result.graph.properties == ({} if result.target.name == "doubling" else {"label": "m2"})
    result.assert_parity()

@pytest.mark.nnef_export(target=Doubling)
def test_wrong():
    return Twice(3.0), torch.randn(3, 4)

@pytest.mark.nnef_export(target=Product, label="refused")
def test_refused():
    return Twice(), torch.randn(3, 4)
"""
STATUSES = {
    "test_class[tract-0.21.19]": "pass",
    f"test_class[tract-{RECENT}]": "pass",
    "test_class[product-0.21.19]": "pass",
    f"test_class[product-{RECENT}]": "pass",
    "test_instance[product-0.21.19]": "pass",
    "test_instance[doubling-1.2]": "pass",
    "test_wrong[doubling-1.2]": "mismatch",
    "test_refused[product-0.21.19]": "error",
    f"test_refused[product-{RECENT}]": "error",
}


@pytest.mark.parametrize("mode", ["plain", "n2"])
def test_cells_of_own_targets_are_like_all_others(suite, mode):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(TARGETS + TESTS)
    result = suite.run(
        "--t2n-report=site", CACHE, engines=f"0.21.19,{RECENT}", mode=mode, alone=True, modules=FOR_EXPORTS
    )
    result.assert_outcomes(passed=6, failed=3)
    assert suite.statuses == STATUSES
    wrong = suite.cells["test_wrong[doubling-1.2]"]
    assert (wrong["target"], wrong["version"], wrong["case"].rpartition("::")[2]) == ("doubling", "1.2", "test_wrong")
    assert "this label is refused" in suite.cells[f"test_refused[product-{RECENT}]"]["error"]["message"]
    engines = {f"{engine['target']} {engine['label']}": engine for engine in suite.matrix[0]["engines"]}
    assert list(engines) == ["tract 0.21.19", f"tract {RECENT}", "product 0.21.19", f"product {RECENT}", "doubling 1.2"]
    assert [line["type"] for line in suite.matrix[:2]] == ["run", "plan"]
    for version in ("0.21.19", RECENT):
        assert engines[f"product {version}"] == engines[f"tract {version}"] | {"target": "product"}
    assert engines[f"product {RECENT}"]["sha256"]
    page = (suite.pytester.path / "site" / "index.html").read_text("utf-8")
    assert all(title in page for title in ("product 0.21.19", "doubling 1.2", f"tract {RECENT}"))
    result.stdout.fnmatch_lines(["product 0.21.19 *", "doubling 1.2 *"])


def test_failures_of_own_targets_can_be_expected(suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(TARGETS + TESTS)
    (suite.pytester.path / "known.toml").write_text("")
    for more in (("--t2n-accept",), ()):
        result = suite.run(
            "--t2n-expect=known.toml", *more, CACHE, engines=f"0.21.19,{RECENT}", alone=True, modules=FOR_EXPORTS
        )
    result.assert_outcomes(passed=6, xfailed=3)
    expectations = (suite.pytester.path / "known.toml").read_text("utf-8")
    assert all(specifier in expectations for specifier in ('"doubling==1.2"', '"product"'))


PROVING = """
from pathlib import Path

class Proving(TractNNEF):
    factor = 1.0

    def post_trace(self, nnef_graph, active_custom_extensions):
        super().post_trace(nnef_graph, active_custom_extensions)
        if self.factor != 1.0:
            nnef_graph.operations[-1].name = "exp"

    def post_export(self, *given):
        super().post_export(*given)
        Path(f"proven-{type(self).name}").touch()

class Right(Proving):
    name = "right"

class Wrong(Proving):
    name, factor = "wrong", 2.0

@pytest.mark.nnef_export(target=[Right, Wrong], tolerance="very")
def test_proof():
    return nn.Tanh(), torch.randn(3, 4)
"""


def test_post_export_has_a_proven_archive(suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(TARGETS + PROVING)
    result = suite.run("--t2n-report=site", CACHE, engines=RECENT, alone=True, modules=FOR_EXPORTS)
    result.assert_outcomes(passed=1, failed=1)
    assert suite.statuses == {f"test_proof[right-{RECENT}]": "pass", f"test_proof[wrong-{RECENT}]": "mismatch"}
    assert suite.cells[f"test_proof[wrong-{RECENT}]"]["stage"] == "compare"
    assert [path.name for path in suite.path.glob("proven-*")] == ["proven-right"]


WRONG = """
@pytest.mark.nnef_export(target={target})
def test_wrong():
    return Twice(), torch.randn(3, 4)
"""


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("'tracts'", "unknown target 'tracts'; did you mean `tract`"),
        ("[]", "names no target; write tract, khronos, a subclass of InferenceTarget"),
        ("Twice", "*is not a target; write tract, khronos, a subclass of InferenceTarget"),
        ("3", "target=3 is not a target"),
        ("type('Own', (TractNNEF,), {'name': 'tract'})", "has the name of the built-in target `tract`; give a class"),
        ("type('tract', (InferenceTarget,), {})", "has the name of the built-in target `tract`"),
        ("type('Own', (Doubling,), {'name': 'a b'})", "'a b' cannot be part of a node id"),
        (f"[Product('{RECENT}'), Product('0.21.19')]", "two targets are called `product`; give a class another name"),
        (
            "type('Fixed', (TractNNEF,), {'__init__': lambda self: None})",
            f"target=Fixed: Fixed('{RECENT}', engine=…) does not fit its __init__*give an instance, target=Fixed(…)",
        ),
        (
            "type('Needs', (Doubling,), {'__init__': lambda self, size: None})",
            "target=Needs: Needs() does not fit its __init__*give an instance",
        ),
    ],
)
def test_wrong_targets_are_refused(suite, target, words):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(TARGETS + WRONG.format(target=target))
    result = suite.run(CACHE, engines=RECENT, alone=True, modules=FOR_EXPORTS)
    assert result.ret != 0
    result.stdout.fnmatch_lines([f"*{words.replace('[', '[[]')}*"])


def test_two_classes_of_one_name_are_refused(suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(
        TARGETS
        + WRONG.format(target="Doubling")
        + WRONG.format(target="type('Other', (Doubling,), {'name': 'doubling'})").replace("test_wrong", "test_other")
    )
    result = suite.run(CACHE, engines=RECENT, alone=True, modules=FOR_EXPORTS)
    result.stdout.fnmatch_lines(["*both *.Doubling and *.Other are called `doubling`, which is one column*"])


def test_an_own_target_without_an_engine_of_the_session_is_reported(suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(TARGETS + WRONG.format(target='["khronos", Product]'))
    result = suite.run(CACHE, "-rs", engines=None, alone=True, modules=FOR_EXPORTS)
    result.stdout.fnmatch_lines(
        ["*no engine selected for khronos or product; select with --t2n-khronos or --t2n-tract*"]
    )


def test_an_entry_point_is_named_by_its_name(suite, monkeypatch):
    suite.pytester.makeconftest(
        """
        import importlib.metadata as metadata

        class Point:
            name, value, dist = "shop", "shop:Product", None

            def load(self):
                import test_it
                return test_it.Product

        metadata.entry_points = lambda group: [Point()] if group == "t2n.targets" else []
        """
    )
    suite.pytester.makepyfile(test_it=TARGETS + WRONG.format(target='"shop"'))
    result = suite.run("--t2n-report=site", CACHE, engines=RECENT, alone=True, modules=FOR_EXPORTS)
    result.assert_outcomes(passed=1)
    assert suite.statuses == {f"test_wrong[shop-{RECENT}]": "pass"}
