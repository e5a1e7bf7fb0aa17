"""Data types, fragments, weights and errors of the evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.errors import MalformedArchiveError, MeaningError, UndefinedOperatorError
from tests.unit.dialect.graphs import outputs_of

X = np.array([0.25, -1.5, 3.0], np.float32)


def test_a_float_stays_in_float64_with_its_data_type() -> None:
    y = outputs_of("y = div(x, 3.0);", {"x": X})["y"]
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y.array, X.astype(np.float64) / 3)


def test_it_is_rounded_to_its_data_type_on_request() -> None:
    y = outputs_of("y = mul(div(x, 3.0), 3.0);", {"x": X}, round_to_storage=True)["y"]
    np.testing.assert_array_equal(y.array, (X / np.float32(3)) * np.float32(3))


def test_a_number_with_a_point_is_a_float32() -> None:
    y = outputs_of("y = add(x, 0.1);", {"x": np.zeros(1, np.float32)})["y"]
    assert y.array.item() == float(np.float32(0.1))


def test_a_constant_takes_the_type_of_the_other_operand() -> None:
    tensors = {"w": np.array([5, -6], np.int64), "h": np.array([1.5, 2.5], np.float16)}
    y = outputs_of(
        'w = variable<integer>(label = "w", shape = [2]);\nh = variable<scalar>(label = "h", shape = [2]);\n'
        "y = add(w, 1.75);\nz = mul(h, 0.1);",
        {"x": X},
        outputs="y, z",
        tensors=tensors,
    )
    assert (y["y"].dtype, y["y"].array.tolist()) == (np.int64, [6, -5])
    assert y["z"].dtype == np.float16
    np.testing.assert_array_equal(y["z"].array, np.array([1.5, 2.5]) * float(np.float16(0.1)))


def test_operands_of_different_kinds_are_refused() -> None:
    body = "i = tract_core_external(datum_type = 'I32', shape = [3]);\ny = add(x, i);"
    with pytest.raises(MeaningError, match="float32 and int32 have no common type"):
        outputs_of(body, {"x": X, "i": np.arange(3, dtype=np.int32)})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("k = [[1.0, 2.0, -1.0]]; y = mul(x, k[0]);", [0.25, -3, -3]),
        ("k = 2.0; y = mul(x, k);", [0.5, -3, 6]),
        ("k = [2]; y = mul(x, k);", [0.5, -3, 6]),
        ("y = select(gt(x, 0.0), x, -inf);", [0.25, -np.inf, 3]),
        ("y = tile(x, repeats = [tract_core_shape_of(x)[0] - 1]);", [0.25, -1.5, 3, 0.25, -1.5, 3]),
        ("k, n = [2.0, tract_core_shape_of(x)[0]]; y = tile(mul(x, k), repeats = [n / 3]);", [0.5, -3, 6]),
        ("y = [x[0], 1.0, x[2]];", [0.25, 1, 3]),
        ("k = [1, 3]; y = squeeze(reshape(x, shape = [k, 1]), axes = [0, 2]);", [0.25, -1.5, 3]),
        ('i"y.1" = mul(x, 2.0); y = i"y.1";', [0.5, -3, 6]),
    ],
)
def test_forms_that_tract_reads(body: str, expected: list[float]) -> None:
    y = outputs_of(body, {"x": X})["y"]
    assert (y.dtype, y.array.tolist()) == (np.float32, expected)


@pytest.mark.parametrize(
    ("arguments", "dtype", "expected"),
    [
        ("0, tract_core_shape_of(x)[0], 1", np.int64, [0, 1, 2]),
        ("tract_core_cast(3, to = 'i32'), tract_core_cast(0, to = 'i32'), n", np.int32, [3, 1]),
        ("0.5, 2.0, 0.5", np.float32, [0.5, 1, 1.5]),
    ],
)
def test_a_range_has_the_type_of_its_bounds(arguments: str, dtype: type, expected: list[float]) -> None:
    body = f"n = tract_core_cast(-2, to = 'i32'); y = tract_core_range({arguments});"
    y = outputs_of(body, {"x": X})["y"]
    assert (y.dtype, y.array.tolist()) == (dtype, expected)


def test_a_zero_point_may_differ_from_filter_to_filter() -> None:
    grids = "a0 = [0, 1], a_scale = 1.0, b0 = 0, b_scale = 1.0, c0 = 0, c_scale = 1.0"
    body = (
        "i = tract_core_cast(x, to = 'i8'); w = tract_core_cast([[[2]], [[3]]], to = 'i8');\n"
        "y = tract_core_qconv(i, w, dilation = [1], stride = [1], border = 'constant', groups = 1, padding = [(0, 0)], "
        f"{grids}, output_dt = 'i32');"
    )
    assert outputs_of(body, {"x": np.array([[[4]]], np.float32)})["y"].array.tolist() == [[[8], [8]]]


def test_groups_of_a_quantised_convolution_have_the_name_that_tract_writes() -> None:
    scales = ", ".join(f"{name}0 = 0, {name}_scale = 1.0" for name in "abc")
    body = (
        "i = tract_core_cast(x, to = 'i8'); w = tract_core_cast([[[2]], [[3]], [[1]]], to = 'i8');\n"
        "y = tract_core_qconv(i, w, dilation = [1], stride = [1], border = 'constant', groups = 3, padding = [(0, 0)], "
        f"{scales}, output_dt = 'i32');"
    )
    y = outputs_of(body, {"x": np.array([[[1], [2], [3]]], np.float32)})["y"]
    assert (y.dtype, y.array.tolist()) == (np.int32, [[[2], [6], [3]]])


def test_a_weight_is_cast_to_the_type_of_what_is_computed() -> None:
    tensors = {"h": np.array([0.1, 2.5, 3.0], np.float16)}
    y = outputs_of('h = variable<scalar>(label = "h", shape = [3]);\ny = add(x, h);', {"x": X}, tensors=tensors)["y"]
    assert y.dtype == np.float32


def test_an_argument_that_no_release_has_is_left_out_if_all_others_are_given() -> None:
    outputs = outputs_of("y = sigmoid(x, axes = [0]);\nz = sigmoid(x);", {"x": X}, outputs="y, z")
    np.testing.assert_array_equal(outputs["y"].array, outputs["z"].array)


def test_one_value_is_a_list_of_one() -> None:
    outputs = outputs_of("y = softmax(x, 0);\nz = softmax(x, axes = [0]);", {"x": X}, outputs="y, z")
    np.testing.assert_array_equal(outputs["y"].array, outputs["z"].array)
    assert outputs["y"].array.sum() == pytest.approx(1)


def test_comparisons_are_booleans_and_places_integers() -> None:
    outputs = outputs_of(
        "y = lt(x, 0.0);\n(v, i) = max_pool_with_index(x, size = [2], padding = [(0, 0)]);", {"x": X}, outputs="y, v, i"
    )
    assert [tensor.dtype for tensor in outputs.values()] == [np.bool_, np.float32, np.int64]


def test_a_choice_has_the_type_of_what_is_chosen() -> None:
    y = outputs_of(
        "i = tract_core_external(datum_type = 'I32', shape = [3]);\ny = select(lt(x, 0.0), i, i);",
        {"x": X, "i": np.arange(3, dtype=np.int32)},
    )["y"]
    assert (y.dtype, y.array.tolist()) == (np.int32, [0, 1, 2])


def test_a_fragment_sees_its_parameters_only() -> None:
    head = """
fragment scaled( a: tensor<scalar>, by: scalar = 2.0 ) -> ( b: tensor<scalar>, c: tensor<scalar> )
{
    b = a * by - 1.0;
    c = -b if by > 2.5 else b + 0.5;
}
fragment leak( a: tensor<scalar> ) -> ( b: tensor<scalar> )
{
    b = a + x;
}
"""
    outputs = outputs_of(
        "(y, z) = scaled(x);\n(u, v) = scaled(x, by = 3.0);", {"x": X}, head=head, outputs="y, z, u, v"
    )
    wide = X.astype(np.float64)
    for tensor, expected in zip(
        outputs.values(), (wide * 2 - 1, wide * 2 - 0.5, wide * 3 - 1, 1 - wide * 3), strict=True
    ):
        np.testing.assert_array_equal(tensor.array, expected)
    with pytest.raises(MeaningError, match="no statement defines `x`, in `b = a \\+ x`"):
        outputs_of("y = leak(x);", {"x": X}, head=head)


def test_a_fragment_of_lists_and_of_itself() -> None:
    head = """
fragment total( xs: tensor<scalar>[] ) -> ( y: tensor<scalar> )
{
    y = xs[0] + total(xs[1:]) if length_of(xs) > 1 else xs[0];
}
fragment tripled( x: tensor<scalar>, factors: scalar[] ) -> ( y: tensor<scalar>[] )
{
    y = [for i in range_of(factors) yield x * factors[i]];
}
"""
    outputs = outputs_of(
        "[a, b, c] = tripled(x, factors = [1.0, 2.0, 4.0]);\ny = total([a, b, c]);", {"x": X}, head=head
    )
    np.testing.assert_array_equal(outputs["y"].array, X.astype(np.float64) * 7)


def test_a_fragment_of_the_archive_comes_before_the_operator_of_its_name() -> None:
    head = "fragment relu( x: tensor<scalar> ) -> ( y: tensor<scalar> ) { y = x * 10.0; }"
    np.testing.assert_array_equal(outputs_of("y = relu(x);", {"x": X}, head=head)["y"].array, X.astype(float) * 10)


def test_what_is_read_no_more_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    from t2n_core.dialect.evaluator import Evaluation

    alive = []
    assign = Evaluation._assign

    def counted(self: Evaluation, statement: object, value: object, values: dict[str, object]) -> None:
        assign(self, statement, value, values)  # type: ignore[arg-type]
        alive.append(sorted(values))

    monkeypatch.setattr(Evaluation, "_assign", counted)
    outputs_of("a = neg(x);\nb = neg(a);\nunused = neg(b);\nc = neg(b);\ny = neg(c);", {"x": X})
    assert alive == [["a", "x"], ["a", "b"], ["b", "unused"], ["b", "c"], ["c", "y"]]


def test_the_reason_of_a_missing_definition_is_named() -> None:
    with pytest.raises(UndefinedOperatorError, match="`tract_onnx_random` has no definition: it draws random numbers"):
        outputs_of("y = tract_onnx_random(x);", {"x": X})
    with pytest.raises(UndefinedOperatorError, match="`max_roi_pool` has no definition: it is declared, but no"):
        outputs_of("y = max_roi_pool(x, x, x, output_size = [2, 2]);", {"x": X})


def test_an_operator_without_a_definition_is_named_with_its_line() -> None:
    with pytest.raises(UndefinedOperatorError, match=r"`no_such` has no definition, in `y = no_such\(x\)`") as caught:
        outputs_of("y = no_such(x);", {"x": X})
    assert (caught.value.op, caught.value.statement) == ("no_such", "y = no_such(x)")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("y = reshape(x, shape = [2, 2]);", r"\[3\] cannot become \[2, 2\], in `y = reshape"),
        ("y = relu(x, x);", "takes 1 arguments"),
        ("y = softmax(x, axis = [0]);", "no argument `axis`"),
        ("y = relu(z);", "no statement defines `z`"),
        ("(y, z) = relu(x);", "2 names are assigned 1 results"),
        ('y = variable<scalar>(label = "w", shape = [2]);', r"has the shape \[3\], not \[2\]"),
        ('y = variable<scalar>(label = "v", shape = [3]);', "the archive has no tensor 'v'"),
    ],
)
def test_a_statement_that_cannot_be_computed_is_named(body: str, message: str) -> None:
    with pytest.raises(MeaningError, match=message):
        outputs_of(body, {"x": X}, tensors={"w": X})


@pytest.mark.parametrize(
    ("body", "statement", "message"),
    [
        (
            "a = neg(x);\ny = tile(a, repeats = [size0]);",
            "y = tile(a, repeats = [size0])",
            "no statement defines `size0`",
        ),
        ("y = neg(x);\nz = neg(w);", "z = neg(w)", "no statement defines `w`"),
        ('y = variable<scalar>(label = "v", shape = [3]);', 'y = variable<scalar>(label = "v", shape = [3])', "'v'"),
        ("z = neg(x);", "", "no statement defines the result `y`"),
    ],
)
def test_a_malformed_archive_is_one_that_reads_what_is_not_defined(body: str, statement: str, message: str) -> None:
    with pytest.raises(MalformedArchiveError, match=message) as caught:
        outputs_of(body, {"x": X})
    assert caught.value.statement.replace(" ", "") == statement.replace(" ", "")


def test_a_symbol_that_no_input_determines_is_no_error_of_the_archive() -> None:
    with pytest.raises(MeaningError, match="no input determines the size `S`, in `y = ") as caught:
        outputs_of("y = tile(x, repeats = [S]);", {"x": X}, head="extension tract_symbol S;")
    assert not isinstance(caught.value, MalformedArchiveError)


def test_intermediate_values_can_be_asked_for() -> None:
    results = outputs_of("a = neg(x);\ny = neg(a);", {"x": X}, results=["a", "y"])
    np.testing.assert_array_equal(results["a"].array, -X)


def test_each_of_several_results_has_its_own_type() -> None:
    outputs = outputs_of("[y, z] = tract_core_topk(x, k = 2, axis = 0, largest = true);", {"x": X}, outputs="y, z")
    assert [(tensor.dtype.name, tensor.array.tolist()) for tensor in outputs.values()] == [
        ("float32", [3.0, 0.25]),
        ("int64", [2, 0]),
    ]


def test_a_state_keeps_its_type() -> None:
    half = {"input": np.ones((1, 2, 3), np.float16), "weight": np.ones((2, 2), np.float16)}
    body = "[y, z] = tract_transformers_causal_conv1d_update(input, weight, state);"
    state = {"state": np.zeros((1, 2, 2), np.float32)}
    outputs = outputs_of(
        f"state = external<scalar>(shape = [1, 2, 2]);\n{_halves(half)}{body}", {**half, **state}, outputs="y, z"
    )
    assert [tensor.dtype.name for tensor in outputs.values()] == ["float16", "float32"]


def test_the_dialect_decides_how_a_filter_is_read() -> None:
    x = {"x": np.asarray([[[1.0], [10.0]]], np.float32)}
    body = 'w = variable<scalar>(label = "w", shape = [2, 2, 1]);\ny = deconv(x, w);'
    tensors = {"w": np.asarray([[[1.0], [2.0]], [[3.0], [4.0]]], np.float32)}
    assert outputs_of(body, x, tensors=tensors)["y"].array.ravel().tolist() == [21.0, 43.0]
    assert outputs_of(body, x, tensors=tensors, standard=True)["y"].array.ravel().tolist() == [31.0, 42.0]


def _halves(arrays: dict[str, np.ndarray]) -> str:
    """Return statements that declare inputs of float16."""
    return "".join(f'{name} = tract_core_external("F16", {list(array.shape)});\n' for name, array in arrays.items())
