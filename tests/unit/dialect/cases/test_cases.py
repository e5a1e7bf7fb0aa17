"""Cases are the same in every process, fit the newest release, and have a result."""

from pathlib import Path

import numpy as np
import pytest

from t2n_core.dialect.cases import CASES, Case, cases, name_in, operators
from t2n_core.dialect.cases.draw import SPECIAL, Draw
from t2n_core.dialect.cases.recipes import recipe, with_symbol
from t2n_core.dialect.operators import functions
from t2n_core.dialect.operators import operators as defined
from t2n_core.errors import RegistryError, SpecError
from t2n_core.nnef.signatures import Parameter, Signature
from t2n_core.nnef.spec import known_operators, signatures_of
from tests.each import check_each

WITHOUT_CASES = {
    "tract_core_complex_to_inner_dim": "no graph of one statement has a complex input",
    "tract_core_inner_dim_to_complex": "no graph of one statement has a complex output",
    "external": "the inputs of every case",
    "tract_core_external": "the inputs of every case",
    "variable": "the stored tensors of many cases",
    "update": "no release has it: a run of one graph does not show it",
}
"""Operators that have a definition and no cases of their own, with the reason."""
OF_THE_STANDARD = sorted(set(known_operators("khronos")) & set(operators()))
POSITIVE = {"sqrt", "rsqrt"}
STATIC = {
    *("cast", "constant", "desample", "linear_quantize", "logarithmic_quantize", "min_max_linear_quantize"),
    *("sample", "split", "unstack", "zero_point_linear_quantize"),
}
"""Operators that no release has, or whose results are as many as an extent."""
TENSOR = Parameter("x", "tensor<scalar>")
RESULT = Parameter("y", "tensor<scalar>")
SIGNATURE = Signature("softplus", (TENSOR, Parameter("k", "integer")), (RESULT,), "tract_nnef")


def test_every_operator_that_is_defined_has_cases() -> None:
    assert set(defined()) - set(operators()) == WITHOUT_CASES.keys()
    assert set(operators()) <= set(defined())


def test_the_definition_gives_a_result_for_every_case() -> None:
    def check(op: str) -> None:
        drawn = list(cases(op))
        assert len(drawn) == CASES == 40
        names = {parameter.name for parameter in next(iter(signatures_of(op))).parameters}
        for case in drawn:
            assert set(case.arguments) <= names
            assert all(isinstance(result, np.ndarray) for result in case.expected(functions().get(op)))

    check_each(operators(), check)


def test_the_cases_of_the_standard_are_various() -> None:
    """Extents differ within a case, floats are signed, and axes are symbols in some cases."""
    for op in OF_THE_STANDARD:
        drawn = list(cases(op))
        shapes = {array.shape for case in drawn for _, _, array in case.tensors()}
        assert len(shapes) > 8 or op == "constant", op
        of_inputs = [array for case in drawn for array in case.inputs() if array.dtype.kind == "f"]
        if of_inputs and op not in POSITIVE:
            assert any((array < 0).any() for array in of_inputs), op
        assert any(case.dynamic for case in drawn) == (op not in STATIC), op


def test_cases_differ_and_are_drawn_again() -> None:
    def content(case: Case) -> list[bytes]:
        return [repr(case.arguments).encode(), *(array.tobytes() for _, _, array in case.tensors())]

    def check(op: str) -> None:
        first, again = list(map(content, cases(op, 8))), list(map(content, cases(op, 8)))
        assert first == again
        assert len(set(map(b"".join, first))) > 4

    check_each(operators(), check)


def test_an_operator_without_a_recipe() -> None:
    with pytest.raises(SpecError, match="no cases are drawn for `tract_core_load`"):
        list(cases("tract_core_load"))
    with pytest.raises(RegistryError, match="`tract_core_erf` has two recipes"):
        recipe("tract_core_erf")(lambda draw: {})


def test_the_graph_of_a_case(tmp_path: Path) -> None:
    case = Case("softplus", {"x": np.zeros((2, 3), np.float32), "k": 4}, frozenset())
    text = case.graph(SIGNATURE)
    assert "extension tract_registry tract_core;" in text
    assert "extension tract_registry tract_nnef;" not in text
    assert 'x_ = tract_core_external(datum_type = "f32", shape = [2, 3]);' in text
    assert "out_0 = softplus(x = x_, k = 4);" in text
    assert text.index("graph case(x_) -> (out_0)") < text.index("x_ = ")
    folder = case.write(tmp_path / "case", SIGNATURE)
    assert [file.name for file in folder.iterdir()] == ["graph.nnef"]


def test_the_only_argument_may_have_another_name_in_a_release() -> None:
    other = Signature("softplus", (Parameter("input", "tensor<scalar>"),), (RESULT,), "tract_nnef")
    assert "out_0 = softplus(input = x_);" in Case("softplus", {"x": np.zeros(2, np.float32)}).graph(other)
    assert name_in("k", SIGNATURE) == "k"
    assert name_in("z", SIGNATURE) is None


def test_a_stored_tensor_is_a_variable_with_a_file(tmp_path: Path) -> None:
    case = Case("softplus", {"x": np.asarray([True, False, True]), "k": 4}, frozenset({"x"}))
    assert 'x_ = variable<scalar>(label = "x_", shape = [3]);' in case.graph(SIGNATURE)
    assert case.inputs() == []
    content = (case.write(tmp_path / "case", SIGNATURE) / "x_.dat").read_bytes()
    assert content[128:] == bytes([0b10100000])


def test_lists_of_tensors_and_sizes() -> None:
    pair = [np.zeros(2, np.int64), np.zeros(3, np.float16)]
    case = Case("tract_core_shape_of", {"x": pair}, frozenset())
    text = case.graph(SIGNATURE)
    assert "out_0 = tract_core_shape_of(x = [x_0, x_1]);" in text
    assert 'out_0_shown = tract_core_cast(out_0, to = "i64");' in text
    assert "graph case(x_0, x_1) -> (out_0_shown)" in text


def test_floats_reach_a_definition_in_float64() -> None:
    case = Case("tract_core_is_nan", {"x": np.asarray([0.1], np.float16)}, frozenset())
    (plain,) = Case("tract_core_silu", case.arguments).expected(functions()["tract_core_silu"])
    assert plain.dtype == np.float64
    (raw,) = Case(
        "tract_core_scaled_rms_norm", {"input": case.arguments["x"], "scale": np.ones(1, np.float32), "axis": 0}
    ).expected(functions()["tract_core_scaled_rms_norm"])
    assert raw.dtype == np.float16


def test_draws() -> None:
    draw = Draw("op", 3)
    assert draw.turn("abcd") == "d"
    assert len(set(draw.shape(4))) == 4
    values = Draw("op", 0).with_special([40, 10])
    assert {float(value) for value in SPECIAL if not np.isnan(value)} <= {float(value) for value in values.ravel()} | {
        1e-30
    }
    assert np.isnan(values).any()
    indices = Draw("op", 0).indices([200], 3)
    assert set(indices.tolist()) == {-3, -2, -1, 0, 1, 2}
    assert set(Draw("op", 0).indices([200], 3, negative=False).tolist()) == {0, 1, 2}


def test_a_dynamic_axis_is_a_symbol() -> None:
    case = Case("softplus", {"x": np.zeros((2, 3), np.float32)}, dynamic={"x": 1})
    text = case.graph(SIGNATURE)
    assert "extension tract_symbol S;" in text
    assert "shape = [2, S]" in text
    assert "tract_symbol" not in Case("softplus", {"x": np.zeros((2, 3), np.float32)}).graph(SIGNATURE)


def test_inputs_of_the_same_extent_share_the_symbol() -> None:
    pair = {"x": np.zeros((2, 3), np.float32), "y": np.zeros((2, 1), np.float32), "k": np.zeros(1, np.float32)}
    axes = {with_symbol(Case("add", pair), Draw("add", number), "any").dynamic["x"] for number in range(9)}
    assert axes == {0, 1}
    first = with_symbol(Case("add", pair, frozenset({"k"})), Draw("add", 0), "first")
    assert first.dynamic == {"x": 0, "y": 0}


def test_a_name_that_begins_like_a_literal() -> None:
    case = Case("select", {"true_value": np.zeros(2, np.float32)})
    assert "true_value = a_true_value_" in case.statement(next(iter(signatures_of("select"))))


def test_results_in_a_list_and_a_type_in_angle_brackets() -> None:
    split = Case("split", {"value": np.arange(6.0).reshape(6), "axis": 0, "ratios": [1, 2]})
    assert split.statement(next(iter(signatures_of("split")))).startswith("[out_0, out_1] = split(")
    assert [len(part) for part in split.expected(functions()["split"])] == [2, 4]
    cast = Case("cast", {"input": np.asarray([1.5, -1.5], np.float32)}, dtype="integer")
    assert "cast<integer>(" in cast.statement(next(iter(signatures_of("cast"))))
    (integers,) = cast.expected(None)
    assert integers.tolist() == [1, -1]


def test_a_loop_names_its_body() -> None:
    case = next(cases("tract_core_scan"))
    text = case.graph(next(iter(signatures_of("tract_core_scan"))))
    assert "fragment decay( chunk" in text
    assert '("chunk", scan_0, ' in text
    assert len(case.expected(None)) == len(case.arguments["output"])
