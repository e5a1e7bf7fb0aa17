"""Archives are read back as they were written: text, weights of each type, and what other exporters write."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest

from t2n_core.errors import InputError
from t2n_core.nnef.archive import write_archive
from t2n_core.nnef.reading.archive import StoredTensor, read_archive, tensor_bytes, tensor_of
from t2n_core.nnef.reading.document import Argument, Assignment, Expression, Name, replace_names, value_text
from t2n_core.nnef.reading.parser import read_text
from t2n_core.nnef.spec import spec_for
from tests.releases import NEWEST

TEXT = """version 1.0;

extension tract_registry tract_core;
extension tract_symbol T;

fragment twice(x: tensor<scalar>, by: scalar = 2.0) -> (y: tensor<scalar>)
{
  y = mul(x, by);
}

graph network(a, b) -> (o, last)
{
  a = external<scalar>(shape = [1, (T+1)/2, 3]);
  b = tract_core_external(shape = [], datum_type = "i64");
  w = variable<scalar>(shape = [1, 3], label = "net.w");
  o = twice(add(a, -1.5e-3), by = 3.0);
  (first, last) = topk_like(o, [w, b], scan = [("x", o, 0, -1)], keep = true); # a comment
}
"""


def test_a_text_is_read() -> None:
    read = read_text(TEXT)
    assert (read.name, read.inputs, read.outputs) == ("network", ("a", "b"), ("o", "last"))
    assert read.extensions == ("tract_registry tract_core", "tract_symbol T")
    a, _, w, inner, twice, last = read.assignments
    assert a.get("shape") == [1, Expression("( T + 1 ) / 2", (Name("T"),)), 3]
    assert a.text() == "a = external<scalar>(shape = [1, (T+1)/2, 3])"
    assert w.get("label") == "net.w"
    assert inner == Assignment(("add_0",), "add", (Argument("", Name("a")), Argument("", -0.0015)))
    assert twice.text() == "o = twice(add_0, by = 3.0)"
    assert list(last.names()) == ["o", "w", "b", "o"]
    assert last.results == ("first", "last")
    assert last.get("keep") is True
    fragment = read.fragments["twice"]
    assert fragment.parameters == ("x", "by")
    assert fragment.results == ("y",)
    assert fragment.body is not None
    assert fragment.body[0].text() == "y = mul(x, by)"


def test_several_results_need_no_parentheses() -> None:
    read = read_text("version 1.0; graph g(x) -> (a) { x = external(shape = [2]); a, b, c = unstack(x, axis = 0); }")
    assert read.assignments[1].results == ("a", "b", "c")
    assert read.assignments[1].text() == "(a, b, c) = unstack(x, axis = 0)"
    with pytest.raises(InputError, match="a name is expected, not '='"):
        read_text("version 1.0; graph g(x) -> (a) { x = external(shape = [2]); a, = unstack(x, axis = 0); }")


def test_names_are_renamed_in_lists_and_expressions() -> None:
    value = [Name("T"), (Name("x"), 1), Expression("( T + 1 )", (Name("T"),))]
    assert replace_names(value, {"T": "S", "x": "x"}.__getitem__) == [
        "S",
        ("x", 1),
        Expression("( S + 1 )", (Name("S"),)),
    ]


def test_a_call_of_min_or_max_is_part_of_an_expression_of_sizes() -> None:
    text = "version 1.0;\ngraph g(x) -> (y) {\n  y = tile(x, repeats = [(max(T-1,min(S,2))+1)]);\n}"
    value = read_text(text).assignments[0].get("repeats")[0]
    assert value == Expression("( max ( T - 1 , min ( S , 2 ) ) + 1 )", (Name("T"), Name("S")))
    assert value_text(replace_names(value, {"T": "A", "S": "S"}.__getitem__)) == "(max(A-1,min(S,2))+1)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("graph n(x) -> (y) { y = relu(x) }", "line 1, column 33 of the graph: `;` is expected, not '}'"),
        (
            "graph n(x) -> (y)\n{\n y = relu(x,  $);\n}",
            "line 3, column 15 of the graph: '$);\\n}' cannot be read as NNEF",
        ),
        ("graph n(x) -> (y) { y = relu(", "line 1, column 30 of the graph: the text ends too early"),
        ("graph n(x) -> (y) { y = (1, 2); }", "column 21 of the graph: `y` is assigned an expression that is neither"),
        ("graph n(x) -> (y) { y = relu(x[0:2]); }", "column 21 of the graph: a subscript is not supported"),
        ("graph n(x) -> (y) { y = relu(x)[0]; }", "one of the results of `relu` is not supported as an expression"),
        ("graph n(x) -> (y) { y, z = [z, y]; }", "`y` is assigned an expression that is neither"),
        ("graph n(x) -> (y) { y = x if c else z; }", "a conditional is not supported"),
        ("graph n(x) -> (y) { y = f([for i in x yield i]); }", "a comprehension is not supported"),
        ("graph n(x) -> (y) { y = x in z; }", "`in` is not supported between tensors"),
        ("graph n(x) -> (y) { y = f(x + [1] in z); }", "`in` is not supported in a size"),
        (f"graph n(x) -> (y) {{ y = f({'1' * 401}); }}", "a number of 401 digits"),
        (f"graph n(x) -> (y) {{ y = f({'(' * 9999}", "nested too deeply"),
        (
            "hello",
            "line 1, column 1 of the graph: `version`, `extension`, `fragment` or `graph` is expected, not 'hello'",
        ),
    ],
)
def test_what_is_no_nnef_is_refused_with_its_line(text: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        read_text(text)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("text", "assignments"),
    [
        ("y = a + b * 2;", ["mul_0 = mul(b, 2)", "y = add(a, mul_0)"]),
        ("y = (a + b) * -2.0 ^ a;", ["add_0 = add(a, b)", "pow_0 = pow(-2.0, a)", "y = mul(add_0, pow_0)"]),
        ("y = a - b - a;", ["sub_0 = sub(a, b)", "y = sub(sub_0, a)"]),
        ("y = -a < b || !a;", ["neg_0 = neg(a)", "lt_0 = lt(neg_0, b)", "not_0 = not(a)", "y = or(lt_0, not_0)"]),
        ("y = a * (T + 1);", ["y = mul(a, (T+1))"]),
        ("y = max(a, b) / 2;", ["max_0 = max(a, b)", "y = div(max_0, 2)"]),
        ("y = relu(a + exp(b));", ["exp_0 = exp(b)", "add_0 = add(a, exp_0)", "y = relu(add_0)"]),
        ("y = pad(a, [(0, 2 * -T), (-T, - -T)]);", ["y = pad(a, [(0, 2*(0-T)), (0-T, 0-(0-T))])"]),
        ("y = b;", ["y = b"]),
        ("y = [[1.0, -inf], [a, 2.0]];", ["y = [[1.0, -inf], [a, 2.0]]"]),
        ("y = 2;", ["y = 2"]),
        ("y = a[T + 1];", ["y = a[T+1]"]),
        ("y, z = [a, 2.0];", ["y = a", "z = 2.0"]),
        ("y = tile(a, [s(a)[0], b[1] * 2]);", ["s_0 = s(a)", "y = tile(a, [s_0[0], b[1]*2])"]),
        ("y = add(a, s(a)[0] + 1);", ["s_0 = s(a)", "add_0 = add(s_0[0], 1)", "y = add(a, add_0)"]),
    ],
)
def test_operators_between_tensors_are_operations(text: str, assignments: list[str]) -> None:
    shape_of = "tract_core_shape_of"
    read = read_text(f"version 1.0;\ngraph g(a, b) -> (y) {{ {text.replace('s(', f'{shape_of}(')} }}")
    assert [assignment.text().replace(shape_of, "s") for assignment in read.assignments] == assignments


def test_a_name_has_one_value() -> None:
    text = "(y, y_0) = f(a); z = [y, y_0, T + 1]; y = relu(y); y = mul(y, b); a = y;"
    read = read_text(f"version 1.0; graph g(a, b) -> (y, a) {{ a = external(shape = [1]); {text} }}")
    assert [assignment.text() for assignment in read.assignments[1:]] == [
        "(y_1, y_0) = f(a)",
        "z = [y_1, y_0, T+1]",
        "y_2 = relu(y_1)",
        "y = mul(y_2, b)",
        "a = y",
    ]


def test_the_body_of_a_fragment_may_have_operators() -> None:
    fragment = "fragment f(x: tensor<scalar>, by: scalar = 2.0) -> (y: tensor<scalar>) { y = 0.5 * (x + by); }"
    body = read_text(f"version 1.0;\n{fragment}\ngraph g(a) -> (y) {{ y = f(a); }}").fragments["f"].body
    assert body is not None
    assert [assignment.text() for assignment in body] == ["add_0 = add(x, by)", "y = mul(0.5, add_0)"]


@pytest.mark.parametrize("name", ["folder", "archive.tar", "archive.tgz"])
def test_an_archive_is_read_as_it_was_written(build, tmp_path: Path, name: str) -> None:
    arrays = {
        "net.f32": np.arange(6, dtype=np.float32).reshape(2, 3),
        "net.f16": np.full((2, 3), 0.5, np.float16),
        "net.i64": np.array([[1, -2, 3], [4, 5, -6]]),
        "net.bool": np.array([[True, False, True], [False, False, True]]),
        "net.u8": np.array([[1, 2, 255], [0, 0, 7]], np.uint8),
    }
    x = build.input("x", (2, 3))
    for label, array in arrays.items():
        build.variable(label, array)
    graph = build.outputs(build.op("add", "y", (2, 3), x=x, y=1.0))
    path = write_archive(graph, tmp_path / name, spec=spec_for("tract", NEWEST))
    read = read_archive(path)
    assert read.document.outputs == ("y",)
    assert read.tensors.keys() == arrays.keys()
    for label, array in arrays.items():
        tensor = read.tensors[label]
        assert isinstance(tensor, np.ndarray)
        assert tensor.dtype == array.dtype
        np.testing.assert_array_equal(tensor, array)
        assert tensor_of(tensor_bytes(tensor), label).shape == array.shape


def with_items_of(item_type: int, data: bytes) -> bytes:
    return data[:48] + item_type.to_bytes(4, "little") + data[52:]


@pytest.mark.parametrize(("item_type", "dtype"), [(2, np.uint8), (2, np.uint64), (3, np.int8), (3, np.int64)])
def test_integers_are_read_as_tract_writes_them(item_type: int, dtype: type[np.generic]) -> None:
    array = np.array([[1, 2, 255]]).astype(dtype)
    tensor = tensor_of(with_items_of(item_type, tensor_bytes(array)), "w.dat")
    assert isinstance(tensor, np.ndarray)
    assert tensor.dtype == dtype
    np.testing.assert_array_equal(tensor, array)


def test_booleans_of_a_byte_are_true_where_it_is_not_0() -> None:
    tensor = tensor_of(with_items_of(5, tensor_bytes(np.array([0, 1, 2, 0], np.uint8))), "w.dat")
    np.testing.assert_array_equal(tensor, [False, True, True, False], strict=True)


def test_items_without_a_numpy_form_are_kept_as_they_are() -> None:
    data = with_items_of(0x54522040, tensor_bytes(np.zeros((2, 32), np.float32)))
    tensor = tensor_of(data, "w.dat")
    assert isinstance(tensor, StoredTensor)
    assert tensor.shape == (2, 32)
    assert tensor_bytes(tensor) == data


@pytest.mark.parametrize("data", [b"", b"N\xef" + bytes(126), b"no" + bytes(200)])
def test_a_damaged_tensor_is_refused(data: bytes, tmp_path: Path) -> None:
    if data.startswith(b"N"):
        data = tensor_bytes(np.zeros((2, 3), np.float32))[:-1]
    with pytest.raises(InputError):
        tensor_of(data, "w.dat")


def test_a_fragment_without_a_body_declares_an_operator() -> None:
    head = "fragment f(x: tensor<scalar>) -> (y: tensor<scalar>);\nfragment g(x: tensor<scalar>) -> (y: tensor<scalar>)"
    read = read_text(f"version 1.0;\n{head} {{ y = f(x); }}\ngraph h(a) -> (y) {{ y = g(a); }}")
    assert list(read.fragments) == ["g"]


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tgz").write_bytes(b"nothing")
    with tarfile.open(tmp_path / "empty.tar", "w"):
        pass
    for path in ("x.tgz", "empty.tar", "absent.tgz"):
        with pytest.raises(InputError):
            read_archive(tmp_path / path)


def test_a_graph_without_outputs_is_refused() -> None:
    text = "version 1.0;\ngraph none(x) -> ()\n{\n  x = external(shape = [2]);\n}\n"
    with pytest.raises(InputError, match="the graph none has no output"):
        read_text(text)
