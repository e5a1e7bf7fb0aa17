"""Fragments: which form is taken for a version, a dtype and a batch, and what a form may ask for."""

from __future__ import annotations

import copy
import re

import numpy as np
import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.nnef.dialects import emitter_for
from t2n_core.nnef.sizes.dims import symbol
from t2n_core.nnef.spec import spec_for
from t2n_core.op.fragment import add_fragment, find_fragment, fragment_files, variants_of
from tests.releases import NEWEST

NAMES = sorted({f.name.split(".nnef")[0].split("__")[0] for f in fragment_files() if ".nnef" in f.name})


@pytest.mark.parametrize(
    ("version", "dtype", "batch", "parameters"),
    [
        ("0.20.18", "float32", 1, "x_i x_f x_g x_o h c w_ifgo"),
        ("0.20.19", "float32", 1, "x_ifgo h c w_ifgo"),
        ("0.23.1", "float32", 4, "x_i x_f x_g x_o h c w_ifgo"),
        ("0.23.1", "float32", 1, "x_ifgo h c w_ifgo"),
        ("0.23.1", "float32", "B", "x_i x_f x_g x_o h c w_ifgo"),
        ("0.23.2", "float32", 4, "x_iofg h c w_iofg"),
        ("0.23.2", "float32", 1, "x_iofg h c w_iofg"),
        (NEWEST, "float64", 1, "x_i x_f x_g x_o h c lifted_ifgo"),
    ],
)
def test_form_of_an_lstm_step(version: str, dtype: str, batch: int | str, parameters: str) -> None:
    g = emitter_for(spec_for("tract", version))
    name, parameter_names = add_fragment(
        g, "lstm_step", np.dtype(dtype), 7, symbol(batch) if isinstance(batch, str) else batch
    )
    assert (name, " ".join(parameter_names)) == ("lstm_step_7", parameters)


def test_a_whole_sequence_only_where_the_engine_has_it() -> None:
    words = {"way": "", "pace": "1"}
    cases = [("0.23.7", 1, False), ("0.23.8", 1, True), ("0.23.8", 54, True), ("0.23.8", 55, False)]
    for version, batch, there in [*cases, ("0.23.8", symbol("B"), False)]:
        g = emitter_for(spec_for("tract", version))
        fragment = find_fragment(g, "gru_sequence", np.dtype(np.float32), 7, batch, words)
        assert (fragment is not None) == there == bool(g.graph.fragments)


def test_two_forms_in_one_graph_have_names_of_their_own() -> None:
    g = emitter_for(spec_for("tract", "0.22.4"))
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    names = [add_fragment(g, "lstm_step", d, 7, batch)[0] for d, batch in ((single, 1), (single, 4), (double, 4))]
    assert names == ["lstm_step_7", "lstm_step_7_2", "lstm_step_7_3"]
    assert add_fragment(g, "lstm_step", single, 7, 4)[0] == names[1]
    called = [re.findall(r"(lstm_gates\w*)\(", g.graph.fragments[name].text) for name in names]
    assert called == [["lstm_gates"], ["lstm_gates"], ["lstm_gates_2"]]
    assert all(f"fragment {name}(" in fragment.text for name, fragment in g.graph.fragments.items())


@pytest.mark.parametrize("name", NAMES)
def test_forms_say_what_they_use(name: str) -> None:
    """Used fragments exist, and a body gives nothing that is not written in it."""
    for form in variants_of(name):
        body = form.text[form.text.index("{\n") :]
        written = set(re.findall(r"^ *\(?([\w, ]+?)\)? =", body, re.MULTILINE))
        names = {n.strip() for group in written for n in group.split(",")}
        results = re.findall(r"(\w+):", form.text.partition("-> (")[2].partition("\n")[0])
        assert results
        assert set(results) <= names


@pytest.mark.parametrize("version", ["0.19.2", "0.21.7", "0.21.13", NEWEST])
@pytest.mark.parametrize("net", [nn.GRU(5, 7), nn.LSTMCell(5, 7)], ids=["net", "cell"])
def test_float16_is_computed_in_float32(net: nn.Module, version: str) -> None:
    model = copy.deepcopy(net).eval().half()
    graph = ModelExport(model, (torch.randn(6, 5).half(),)).lower(TractNNEF(version, check_io=False))
    computing = [
        o for o in graph.operations if o.name in {"matmul", "tract_core_scan", "tract_core_gru_seq", *graph.fragments}
    ]
    assert computing
    assert {v.dtype.name for o in computing for v in o.inputs()} == {"float32"}
    assert {v.dtype.name for v in graph.outputs} == {"float16"}


@pytest.mark.parametrize(("version", "rank"), [("0.19.15", 2), ("0.20.3", 3)])
def test_steps_of_a_dynamic_axis_are_one_product(version: str, rank: int) -> None:
    """The releases before 0.20 would multiply once per step."""
    export = ModelExport(nn.GRU(5, 7).eval(), (torch.randn(6, 4, 5),), dynamic_axes={"input": {0: "T"}})
    graph = export.lower(TractNNEF(version, check_io=False))
    products = [o for o in graph.operations if o.name == "matmul"]
    assert products
    assert {o.outputs[0].rank for o in products} == {rank}
