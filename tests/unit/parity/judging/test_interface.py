"""The interface of an archive: what text and facts state of it, and how it may differ from a declared one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2n_core.engine.protocol import EngineReply
from t2n_core.errors import InterfaceError
from t2n_core.parity.check import check_parity
from t2n_core.parity.judging.interface import Interface, Port, check_facts, check_text, interface_of
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample

TEXT = """version 1.0;

extension tract_registry tract_core;
extension tract_symbol T;

fragment double(x) -> (y)
{
  y = mul(x, 2.0);
}

graph network(x, mask, n) -> (y, z)
{
  x = external(shape = [T, 8]);
  mask = tract_core_external(datum_type = "bool", shape = [max(1,T), (T*2)]);
  n = tract_core_external(datum_type = "i64", shape = []);
  y = double(x);
  z = neg(x);
}
"""
DECLARED = Interface(
    (Port("x", "float32", ("T", "8")), Port("mask", "bool", ("Max(1, T)", "2*T")), Port("n", "int64", ())),
    (Port("y", "float32", ("T", "8")), Port("z", "float32", ("T", "8"))),
)
FACTS: dict[str, Any] = {
    "input": [["x", "T,8,F32"], ["mask", "max(1,T),2*T,Bool"], ["n", ",I64"]],
    "output": [["y_1", "T,8,f32"], ["x_neg", "T,8,f32"]],
}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "graph.nnef").write_text(TEXT)
    return tmp_path


def edit(archive: Path, old: str, new: str) -> Path:
    graph = archive / "graph.nnef"
    text = graph.read_text()
    assert old in text
    graph.write_text(text.replace(old, new))
    return archive


def test_text_states_inputs_and_the_names_of_outputs(archive: Path) -> None:
    interface = interface_of(archive)
    assert interface is not None
    assert interface.inputs == (
        Port("x", "float", ("T", "8")),
        Port("mask", "bool", ("max(1,T)", "(T*2)")),
        Port("n", "int64", ()),
    )
    assert interface.outputs == (Port("y"), Port("z"))


def test_quotes_of_either_kind(archive: Path) -> None:
    graph = archive / "graph.nnef"
    graph.write_text(
        'graph g(i"x 1") -> (i"y.0") {\n i"x 1" = tract_core_external(shape = [2], datum_type = \'I8\');\n}'
    )
    interface = interface_of(archive)
    assert interface is not None
    assert (interface.inputs, interface.outputs) == ((Port("x 1", "int8", ("2",)),), (Port("y.0"),))


@pytest.mark.parametrize(
    ("fact", "dtype", "shape"),
    [
        ("3,8,F32", "float32", ("3", "8")),
        (",I64", "int64", ()),
        ("I64", "int64", ()),
        (",I64 2", "int64", ()),
        ("3,f32 1, 2, 3", "float32", ("3",)),
        ("-1+(S)/2,max(1,T),bool", "bool", ("-1+(S)/2", "max(1,T)")),
        ("2,TDim", "", ("2",)),
        ("2,QI8(Z:0 S:1)", "", ("2",)),
    ],
)
def test_a_fact_states_type_and_shape(fact: str, dtype: str, shape: tuple[str, ...]) -> None:
    assert Port.of_fact("x", fact) == Port("x", dtype, shape)


def test_equal_interfaces_pass(archive: Path) -> None:
    check_text(DECLARED, archive)
    check_facts(DECLARED, FACTS, "tract")
    check_facts(DECLARED, {"registries": ["tract_core"]}, "tract")
    check_facts(Interface.of_text(TEXT), FACTS, "tract")


def test_what_cannot_be_read_is_not_compared(tmp_path: Path) -> None:
    (tmp_path / "graph.nnef").write_text("version 1.0;")
    (tmp_path / "model.tar").write_bytes(b"no archive")
    for archive in (tmp_path, tmp_path / "model.tar", tmp_path / "missing"):
        check_text(DECLARED, archive)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(x, mask, n)", "(mask, x, n)", "the archive's inputs are `mask`, `x`, `n`, and the export declared `x`, "),
        ("(y, z)", "(z, y)", "the archive's outputs are `z`, `y`, and the export declared `y`, `z`"),
        ("(y, z)", "(y)", "the archive's outputs are `y`, and the export declared `y`, `z`"),
        ("(x, mask, n)", "(x, mask)", "the archive's inputs are `x`, `mask`, and the export declared"),
        ('"i64"', '"i32"', "the archive states the input `n` as int32[], and the export declared int64[]"),
        ('"bool"', '"f16"', "the archive states the input `mask` as float16"),
        ("[T, 8]", "[8, T]", "the input `x` as float[8, T], and the export declared float32[T, 8]"),
        ("[T, 8]", "[S, 8]", "the input `x` as float[S, 8]"),
        ("[T, 8]", "[5, 8]", "the input `x` as float[5, 8]"),
        ("[T, 8]", "[T, 8, 1]", "the input `x` as float[T, 8, 1]"),
        ("external(shape = [T", "external<integer>(shape = [T", "the input `x` as int[T, 8]"),
    ],
)
def test_another_text_is_an_error(archive: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InterfaceError) as caught:
        check_text(DECLARED, edit(archive, old, new))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "place", "fact", "message"),
    [
        ("input", 2, ["n", "I32"], "tract loaded the input `n` as int32[], and the export declared int64[]"),
        ("output", 1, ["z", "S,8,f32"], "tract loaded the output `z` as float32[S, 8], and the export declared"),
        ("output", 1, ["z", "T,8,f16"], "tract loaded the output `z` as float16[T, 8]"),
    ],
)
def test_another_loaded_model_is_an_error(kind: str, place: int, fact: list[str], message: str) -> None:
    ports = list(FACTS[kind])
    ports[place] = fact
    with pytest.raises(InterfaceError) as caught:
        check_facts(DECLARED, {**FACTS, kind: ports}, "tract")
    assert message in str(caught.value)


def test_a_symbol_with_a_single_size_is_that_size() -> None:
    fixed = {**FACTS, "output": [["y", "5,8,f32"], FACTS["output"][1]]}
    check_facts(replace(DECLARED, only_sizes={"T": 5}), fixed, "tract")
    with pytest.raises(InterfaceError, match="output `y`"):
        check_facts(replace(DECLARED, only_sizes={"T": 6}), fixed, "tract")
    with pytest.raises(InterfaceError, match="output `y`"):
        check_facts(DECLARED, fixed, "tract")


def test_an_output_that_is_missing_is_an_error() -> None:
    with pytest.raises(InterfaceError, match="tract loaded 1 outputs, and its text declared 2"):
        check_facts(Interface.of_text(TEXT), {"output": FACTS["output"][:1]}, "tract")


OUTPUTS = (np.zeros(2, np.float32), np.ones(3, np.float32))


class Loads:
    """An engine that reports the same facts for each archive."""

    name, version, kept_states = "tract", "0.99.1", None

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts
        self.calls = 0

    def run(self, archive: Path, batches: Any, *, timeout: float = 60.0) -> EngineReply:
        self.calls += 1
        return EngineReply("ok", "run", outputs=tuple(() for _ in batches), facts=self.facts)

    def close(self) -> None:
        pass


def test_a_check_compares_the_text_before_the_engine_runs(archive: Path) -> None:
    engine = Loads(FACTS)
    edit(archive, "(y, z)", "(z, y)")
    outcome = check_parity(engine, CheckRequest(archive, [Sample((), OUTPUTS)], ["y", "z"], interface=DECLARED))
    assert (outcome.status, outcome.stage) == ("error", "load")
    assert outcome.error is not None
    assert outcome.error.error_class == "InterfaceError"
    assert engine.calls == 0
    with pytest.raises(InterfaceError, match="the archive's outputs are `z`, `y`"):
        outcome.raise_for_failure()


def test_a_check_compares_the_facts(archive: Path) -> None:
    swapped = {**FACTS, "input": [FACTS["input"][1], FACTS["input"][0], FACTS["input"][2]]}
    outcome = check_parity(Loads(swapped), CheckRequest(archive, [Sample((), OUTPUTS)], ["y", "z"], interface=DECLARED))
    assert (outcome.status, outcome.stage) == ("error", "load")
    assert outcome.error is not None
    assert outcome.error.message.startswith("the inputs that tract loaded are `mask`, `x`, `n`, and the export ")
