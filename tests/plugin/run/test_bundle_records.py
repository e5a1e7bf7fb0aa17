"""A bundle is judged as its session was: with the same evidence in the records, and with nothing of one machine."""

from __future__ import annotations

from pytest_t2n.cli import main
from t2n_core.engine.provision.store import default_cache_dir
from tests.releases import RECENT
from tests.starter import FOR_EXPORTS

CACHE = str(default_cache_dir())
"""Looked up now: pytester gives each test a home without engines."""

MODELS = """
    import pytest
    import torch
    from torch import nn

    @pytest.mark.nnef_export(dynamic_axes={"input": {0: "N"}})
    def test_layer(record_property):
        record_property("t2n_op", "aten::linear")
        return nn.Sequential(nn.Linear(3, 4), nn.Tanh()), {"input": torch.randn(2, 3)}

    class Halves(nn.Module):
        def forward(self, x):
            return x.reshape(-1, 2, 3).sum(1)

    @pytest.mark.nnef_export(dynamic_axes={"x": {0: "N"}})
    def test_range():
        return Halves(), {"x": torch.randn(4, 3)}

    @pytest.mark.nnef_export(tolerance="exact")
    def test_mismatch():
        return nn.Sequential(nn.Linear(300, 40), nn.Softmax(-1)), (torch.randn(2, 300),)

    @pytest.mark.nnef_export
    def test_two(nnef_export):
        for module in (nn.Tanh(), nn.Sigmoid()):
            nnef_export(module, (torch.randn(2, 3),)).assert_parity("approximate")
"""


def evidence(cell):
    """What does not depend on where and when a cell was judged, nor on torch."""
    fields = {name: value for name, value in cell.items() if name not in ("times", "reads")}
    if "error" in fields:
        fields["error"] = {name: text for name, text in fields["error"].items() if name != "details"}
    return fields


def test_records_of_a_bundle_have_all_that_those_of_its_session_have(suite, capsys):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(test_models=MODELS)
    options = ("--t2n-report=site", "--t2n-bundle=bundle", f"--t2n-cache-dir={CACHE}", "--t2n-offline")
    suite.run(*options, engines=f"0.21.19,{RECENT}", alone=True, modules=FOR_EXPORTS)
    session = suite.cells
    assert session[f"test_range[tract-{RECENT}]"]["range"] == "N >= 2, N % 2 == 0"
    select = ["--tract", f"0.21.19,{RECENT}", "--offline", "--cache-dir", CACHE, "--report", str(suite.path / "site")]
    main(["matrix", "run", "--bundle", str(suite.path / "bundle"), *select])
    judged = suite.cells
    assert [evidence(cell) for cell in judged.values()] == [evidence(session[name]) for name in judged]
    assert judged.keys() == session.keys()
    ops = {name.partition("[")[0]: cell["ops"] for name, cell in judged.items()}
    assert ops["test_two"] == ["aten::tanh", "aten::sigmoid"]
    assert judged["test_layer[tract-0.21.19]"]["op"] == "aten::linear"
    assert judged["test_layer[tract-0.21.19]"]["dtype"] == "float32"
    assert judged[f"test_range[tract-{RECENT}]"]["refused_sizes"], "the engine has to refuse what is outside"


def test_messages_name_no_folder_of_the_machine(suite, capsys):
    """An engine that names the file which it cannot load names its whole path."""
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(test_models=MODELS)
    options = ("--t2n-bundle=bundle", f"--t2n-cache-dir={CACHE}", "--t2n-offline", "-k", "layer")
    suite.run(*options, engines=RECENT, alone=True, modules=FOR_EXPORTS)
    (archive,) = (suite.path / "bundle" / "archives").iterdir()
    manifest = suite.path / "bundle" / "manifest.json"
    manifest.write_text(manifest.read_text().replace(archive.name, "model.tgz"))
    archive.with_name("model.tgz").write_bytes(b"no archive")
    capsys.readouterr()
    select = ["--tract", RECENT, "--offline", "--cache-dir", CACHE, "--report", str(suite.path / "site")]
    assert main(["matrix", "run", "--bundle", str(suite.path / "bundle"), *select]) == 1
    (cell,) = suite.cells.values()
    assert (cell["status"], cell["stage"]) == ("error", "load")
    assert str(suite.path) not in str(cell)
    assert str(suite.path) not in capsys.readouterr().out
