"""Quoted identifiers become plain ones, in the graph and in its fragments."""

from __future__ import annotations

import pytest

from t2n_core.nnef.reading.identifiers import with_plain_identifiers
from t2n_core.nnef.reading.parser import read_text


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ('i"y.out" = mul(x, 2.0);', "y_out = mul(x, 2.0);"),
        ('i\'y.out\' = f(i"y.out", i"y/out", y_out_0);', "y_out = f(y_out, y_out_1, y_out_0);"),
        ('y_out = f(i"y.out", i"1");', "y_out = f(y_out_0, _1);"),
        (r'i"a\"b\\c" = x;', "a_b_c = x;"),
        ('i"graph" = f(i"x", i"in", i"info", x);', "_graph = f(x, _in, _info, x);"),
        ('w = variable(label = "i.w", shape = [1]); # i"not this"', None),
        ("w = f('a', \"i'b'\");", None),
        ('bi = f(label = "a.bi", "c");', None),
        ('y = f("a.b", i"a.b");', 'y = f("a.b", a_b);'),
    ],
)
def test_each_name_has_an_identifier_of_its_own(text: str, plain: str | None) -> None:
    assert with_plain_identifiers(text) == (text if plain is None else plain)


def test_a_text_with_quoted_identifiers_is_read() -> None:
    text = """version 1.0;
fragment i"my f"(i"a.b": tensor<scalar>, by: scalar = -inf) -> (i"c(d": tensor<scalar>)
{
  i"c(d" = max(i"a.b", by);
}
graph net(i"x 1") -> (i"y.out")
{
  i"x 1" = external(shape = [2]);
  i"y.out" = i"my f"(i"x 1");
}"""
    read = read_text(text)
    assert (read.inputs, read.outputs) == (("x_1",), ("y_out",))
    assert read.fragments["my_f"].parameters == ("a_b", "by")
    assert [assignment.text() for assignment in read.assignments] == [
        "x_1 = external(shape = [2])",
        "y_out = my_f(x_1)",
    ]
