"""Names of a graph's inputs and outputs, and the pairs of them that hold state."""

from __future__ import annotations

import pytest

from t2n_core.engine.tract.signature import Signature
from t2n_core.errors import InputError

TEXT = r"""version 1.0;
extension tract_registry tract_core;

graph network(ids, i"in.cache/0", in_1) -> (logits, i"out.cache/0", i"out (1, \"last\")",
              out_1)
{
  ids = external(shape = [1, S]);
}
"""


def test_names_are_those_of_the_graph() -> None:
    signature = Signature.of(TEXT)
    assert signature.inputs == ("ids", "in.cache/0", "in_1")
    assert signature.outputs == ("logits", "out.cache/0", 'out (1, "last")', "out_1")
    with pytest.raises(ValueError, match="declares no graph"):
        Signature.of("version 1.0;")


def test_state_is_taken_out_by_its_places() -> None:
    signature = Signature.of(TEXT)
    assert signature.without([]) == (signature.inputs, signature.outputs, [])
    assert signature.without([("in_1", "out_1"), ("in.cache/0", "out.cache/0")]) == (
        ("ids",),
        ("logits", 'out (1, "last")'),
        [(2, 3), (1, 1)],
    )


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ([("nothing", "out_1")], "no input 'nothing'"),
        ([("in_1", "nothing")], "no output 'nothing'"),
        ([("in_1", "out_1"), ("in_1", "logits")], "the input 'in_1' is in two pairs of state"),
        ([("in_1", "out_1"), ("ids", "out_1")], "the output 'out_1' is in two pairs of state"),
    ],
)
def test_wrong_pairs(pairs: list[tuple[str, str]], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Signature.of(TEXT).without(pairs)
