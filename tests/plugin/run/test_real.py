"""The plugin on real engines: graphs written by hand that make them panic, and the converter itself."""

from __future__ import annotations

import json

import pytest

from pytest_t2n.collect.markers import OWN_ARGUMENTS
from pytest_t2n.collect.targets import TARGETS, options_of_target
from t2n_core.engine.provision.store import default_cache_dir
from t2n_core.export.options import marker_options
from tests.releases import RECENT
from tests.starter import FOR_EXPORTS

CACHE = f"--t2n-cache-dir={default_cache_dir()}"
"""Looked up now: pytester gives each test a home without engines."""

GRAPHS = '''
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import pytest_t2n.run.exports.converter
from t2n_core.check.mismatch.author import with_author
from t2n_core.parity.check import check_parity
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.engine import engine_for

TEXT = """version 1.0;

extension tract_registry tract_core;

graph net(x) -> (y)
{
    x = external(shape=[2, 3]);
    y = %s;
}
"""


@dataclass
class Result:
    archive: Path
    engine: object
    times: dict = field(default_factory=dict)
    planned_level: str = ""
    drawn: dict = field(default_factory=dict)

    def check_request(self, criteria, timeout=60.0):
        drawn = np.random.default_rng(3).standard_normal((2, 2, 3)).astype(np.float32)
        samples = [Sample((x,), (x * 2,)) for x in drawn]
        return CheckRequest(self.archive, samples, ["y"], criteria, timeout)

    def check_parity(self, criteria, *, timeout=60.0):
        request, engine = self.check_request(criteria, timeout), engine_for(self.engine)
        outcome = check_parity(engine, request)
        return with_author(outcome, engine, request) if outcome.status == "mismatch" else outcome


class ModelExport:
    def __init__(self, model, args, kwargs=None, **options):
        self.model = model

    def to(self, target, path):
        Path(path).with_suffix("").mkdir()
        (Path(path).with_suffix("") / "graph.nnef").write_text(TEXT % self.model)
        return Result(Path(path).with_suffix(""), target)


pytest_t2n.run.exports.converter.load_converter = lambda: pytest_t2n.run.exports.converter.Converter(
    ModelExport, lambda version, *, engine, dynamic_axes: engine, None
)
'''


def test_an_engine_that_aborts_is_one_cell(suite, mode):
    suite.pytester.makeconftest(GRAPHS)
    suite.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.nnef_export
        @pytest.mark.parametrize("graph", [
            pytest.param("x * 2.0", id="right"),
            pytest.param("unsqueeze(x * 2.0, axes=[-1])", id="panics"),
            pytest.param("x * 2.01", id="wrong"),
            pytest.param("nothing(x)", id="unknown"),
            pytest.param("x + x", id="right_too"),
        ])
        def test_graph(graph):
            return graph, (1,)
        """
    )
    result = suite.run("--t2n-report=site", CACHE, engines=f"0.21.19,{RECENT}", mode=mode, alone=True)
    result.assert_outcomes(passed=4, failed=6)
    statuses = {name[len("test_graph[") : -1]: status for name, status in suite.statuses.items()}
    assert statuses == {
        "right-tract-0.21.19": "pass",
        f"right-tract-{RECENT}": "pass",
        "panics-tract-0.21.19": "crash",
        f"panics-tract-{RECENT}": "error",
        "wrong-tract-0.21.19": "mismatch",
        f"wrong-tract-{RECENT}": "mismatch",
        "unknown-tract-0.21.19": "error",
        f"unknown-tract-{RECENT}": "error",
        "right_too-tract-0.21.19": "pass",
        f"right_too-tract-{RECENT}": "pass",
    }
    crash = suite.cells["test_graph[panics-tract-0.21.19]"]["error"]
    assert crash["error_class"] == "EngineCrash"
    assert "panicked at" in crash["message"]
    assert crash["message"].splitlines()[0] in result.stdout.str()
    assert "nothing" in suite.cells[f"test_graph[unknown-tract-{RECENT}]"]["error"]["message"]


def test_an_unknown_version_of_the_real_index(suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile("def test_it(): pass")
    result = suite.run("--t2n-offline", CACHE, engines="0.99", alone=True)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --t2n-tract=0.99: *"])
    result.stderr.no_fnmatch_line("*Traceback*")


ENCODER = """
    import pytest
    import torch

    class Encoder(torch.nn.Module):
        def __init__(self, bidirectional):
            super().__init__()
            self.rnn = torch.nn.GRU(6, 5, bidirectional=bidirectional, batch_first=True)

        def forward(self, audio):
            return torch.relu(self.rnn(audio)[0])

    @pytest.mark.nnef_export(target="tract", dynamic_axes={"audio": {1: "T"}}, tolerance="approximate")
    @pytest.mark.parametrize("bidirectional", [False, True])
    def test_encoder(bidirectional):
        return Encoder(bidirectional).eval(), {"audio": torch.randn(2, 9, 6)}

    def test_by_hand(nnef_export):
        result = nnef_export(torch.nn.Tanh().eval(), torch.randn(2, 3))
        assert result.assert_parity("approximate").passed

    @pytest.mark.nnef_export(training="refuse")
    def test_training():
        return torch.nn.Dropout(0.5), torch.randn(3, 4)
"""


def test_the_first_example_of_the_documentation(suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(ENCODER)
    archives = []
    for mode in ("plain", "n2"):
        result = suite.run(
            "--t2n-report=site", CACHE, engines=f"0.21.19,{RECENT}", mode=mode, alone=True, modules=FOR_EXPORTS
        )
        result.assert_outcomes(passed=6, failed=2)
        cells = suite.cells
        encoder = cells["test_encoder[True-tract-0.21.19]"]
        assert [sizes["T"] for sizes in encoder["sizes"]][:2] == [9, 1]
        assert len(encoder["sizes"]) >= 4
        assert (encoder["ops"], encoder["dtype"]) == (["aten::gru.input", "aten::relu"], "float32")
        graphs = {line["key"]: line["text"] for line in suite.matrix if line["type"] == "graph"}
        assert "audio = external(shape = [2, T, 6]);" in graphs[encoder["graph"]]
        assert {cell["graph"] for cell in cells.values() if "graph" in cell} == set(graphs), "each once"
        assert "call model.eval() before exporting" in result.stdout.str()
        assert "torch.__trace" not in result.stdout.str()
        archives.append({name: cell.get("archive_sha256") for name, cell in cells.items() if "encoder" in name})
    assert archives[0] == archives[1], "the weights of a case are drawn the same in each session"


ALL_OPTIONS = """
    import pytest
    import torch

    LEAKY = "fragment leaky(x: tensor<scalar>) -> (y: tensor<scalar>)\\n{\\n  y = max(x, x * 0.5);\\n}"

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.linear = torch.nn.BatchNorm1d(6), torch.nn.Linear(8, 8)

        def forward(self, x):
            y = self.linear(torch.nn.functional.interpolate(self.norm(x), scale_factor=2.0))
            return torch.nn.functional.scaled_dot_product_attention(y, y, y)

    @pytest.mark.nnef_export(
        target="tract", version="0.23", check_io=True, check_io_tolerance="approximate", dynamic_axes={"x": [0]},
        registries=["transformers"], feature_flags=["pulse"], specific_properties={"a": "b"},
        dump_identity_properties=True,
        force_attention_inner_in_f32=True, force_linear_accumulation_in_f32=True, force_norm_in_f32=True,
        reify_sdpa_operator=True, upsample_with_debox=True, weights="q4_0",
        custom_extensions=["tract_assert x_dim0 >= 1"], custom_fragments=[LEAKY],
    )
    def test_all(nnef_export):
        result = nnef_export(Net().eval().half(), {"x": torch.randn(3, 6, 4).half()})
        written = {operation.name for operation in result.graph.operations}
        assert {"debox", "tract_transformers_sdpa"} <= written
        assert {"a", "export_user", "export_host", "export_date"} < set(result.graph.properties)
        assert "leaky" in result.graph.fragments
        assert len(result.assert_parity().sizes) >= 3
"""


def test_every_option_of_the_target_is_an_argument_of_the_marker(suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(ALL_OPTIONS)
    result = suite.run("--t2n-report=site", CACHE, engines=f"0.22.4,{RECENT}", alone=True, modules=FOR_EXPORTS)
    result.assert_outcomes(passed=1)
    assert list(suite.statuses) == [f"test_all[tract-{RECENT}]"]


def test_no_option_of_a_target_is_one_of_the_export_or_of_the_marker():
    for target in TARGETS:
        assert not set(options_of_target(target)) & {*OWN_ARGUMENTS, *marker_options()}


WRONG_TANH = """
import pytest, torch
from torch import nn

from t2n_core.export.model import ModelExport
from t2n_core.op.registry import Rule, load_default


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(5, 7)

    def forward(self, audio):
        hidden = torch.tanh(self.line(audio))
        return hidden * 2 + 1


def wrong_tanh(g, self):
    return g.mul(g.tanh(self), 1.01)


@pytest.mark.nnef_export
def test_encoder(nnef_export):
    rules = load_default().copy()
    rules.remove("aten::tanh")
    rules.add(Rule("aten::tanh", wrong_tanh, parameters=frozenset({"self"})))
    nnef_export(ModelExport(Encoder().eval(), torch.randn(2, 5), rules=rules)).assert_parity()
"""


def test_bisect_names_the_first_wrong_node(suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(test_wrong=WRONG_TANH)
    result = suite.run("--t2n-bisect", CACHE, engines="0.21.19", alone=True, modules=FOR_EXPORTS)
    result.stdout.fnmatch_lines(
        [
            "*first wrong node: aten::tanh*test_wrong.py:* in forward: `hidden = torch.tanh(self.line(audio))`*",
            "*= mul(*",
            "*to blame: the graph as exported: wrong before the engine changes anything*",
            "*raw: wrong, declutter: wrong, optimise: wrong*",
        ]
    )


DRAWN = """
import numpy as np
import pytest, torch
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

frames = st.integers(1, 9).flatmap(lambda t: hnp.arrays(np.float32, (t, 5), elements=st.floats(-9, 9, width=32)))


@pytest.mark.nnef_export(dynamic_axes={"input": {0: "T"}}, inputs=frames)
def test_linear():
    return torch.nn.Linear(5, 3).eval(), {"input": torch.randn(4, 5)}


@pytest.mark.nnef_export(dynamic_axes={"input": {0: "T"}})
def test_alone():
    return test_linear()
"""


def test_inputs_can_be_a_strategy_of_hypothesis(suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(test_drawn=DRAWN)
    result = suite.run("--t2n-report=site", CACHE, engines=RECENT, alone=True, modules=FOR_EXPORTS)
    result.assert_outcomes(passed=2)
    drawn, alone = ({size["T"] for size in cell["sizes"]} for cell in suite.cells.values())
    assert {size for size in drawn - alone if size < 10}, "sizes that only the strategy has"
    assert drawn >= alone


WAYS_IN = """
import pytest, torch
from torch import nn


class Net(nn.Module):
    def encode(self, x):
        return x * 2 if x.sum() > 0 else x


@pytest.mark.nnef_export(fn_name="encode", capture="trace", nnef_variable_naming_scheme="numeric")
def test_marked():
    return Net(), torch.ones(2, 3)


@pytest.mark.nnef_export(fn_name="encode")
def test_called(nnef_export):
    result = nnef_export(Net(), torch.ones(2, 3), capture="trace", nnef_variable_naming_scheme="numeric")
    result.assert_parity()


@pytest.mark.nnef_export
def test_program():
    program = torch.export.export(nn.Linear(3, 2), (torch.ones(4, 3),))
    return program, torch.ones(4, 3)
"""


def test_ways_in_are_options_of_marker_and_fixture(suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(test_ways=WAYS_IN)
    result = suite.run("--t2n-report=site", CACHE, engines=RECENT, alone=True, modules=FOR_EXPORTS)
    result.assert_outcomes(passed=3)


NOTES = """
import pytest, torch
from torch import nn


class Named(nn.Module):
    def forward(self, x):
        return torch.relu(x), "name"


@pytest.mark.nnef_export(target="tract", reify_sdpa_operator=True)
def test_told():
    return Named(), (torch.randn(2, 3),)


@pytest.mark.nnef_export(target="tract")
def test_nothing_to_tell():
    return nn.ReLU(), (torch.randn(2, 3),)


@pytest.mark.nnef_export(target="tract")
def test_refused():
    return nn.Linear(3, 4).double(), (torch.randn(2, 3),)
"""


def test_notes_on_an_export_and_refusals_of_pytorch_stand_in_the_record(suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(test_notes=NOTES)
    result = suite.run("--t2n-report=site", CACHE, engines=RECENT, alone=True, modules=FOR_EXPORTS)
    result.assert_outcomes(passed=2, failed=1)
    cells = {name.partition("[")[0]: cell for name, cell in suite.cells.items()}
    assert cells["test_told"]["notes"] == [
        "results that are neither tensors nor numbers are not in the archive: [1]: str",
        "reify_sdpa_operator had no effect: no attention of the model can be written as that operator",
    ]
    assert "notes" not in cells["test_nothing_to_tell"]
    refused = cells["test_refused"]
    assert (refused["status"], refused["stage"], refused["error"]["error_class"]) == ("error", "input", "InputError")
    assert "must have the same dtype" in refused["error"]["message"]
    text = result.stdout.str()
    assert "DroppedResultWarning" in text
    assert "OptionWarning" in text


def test_the_page_of_a_failure_shows_each_tensor(suite):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(test_wrong=WRONG_TANH)
    options = ("--t2n-bisect", "--t2n-bundle-failures=failures", CACHE)
    result = suite.run(*options, engines="0.21.19", alone=True, modules=FOR_EXPORTS)
    result.stdout.fnmatch_lines(["*page: *page.html*"])
    (page,) = (suite.path / "failures").glob("*/page.html")
    text = page.read_text("utf-8")
    rows = text.partition("<tbody>")[2].split("<tr")[1:]
    assert ["bad" in row.partition(">")[0] for row in rows] == [False, True, True, True]
    assert "<code>aten::linear</code>" in rows[0]
    assert "<code>aten::tanh</code>" in rows[1]
    assert "hidden = torch.tanh(self.line(audio))" in rows[1]
    assert "= tanh(" in rows[1]
    assert '<summary class="bad">(model)' in text
    assert "<summary>line" in text
    (model,) = json.loads((page.parent / "model.graph.json").read_text("utf-8"))["graphs"]
    errors = json.loads((page.parent / "errors.data.json").read_text("utf-8"))[model["id"]]["results"]
    assert errors.keys() <= {node["id"] for node in model["nodes"]}
    assert errors["tanh_mul"]["value"] > 1e-3 > errors["line_linear_add"]["value"]
