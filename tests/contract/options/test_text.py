"""Options that add to the text of an archive: properties, extensions, fragments."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from t2n_core import TractNNEF
from t2n_core.errors import InputError, SpecError
from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import Fragment, Value
from tests.contract.options.exports import every_line, exported, own_relu, text_of
from tests.releases import NEWEST


@every_line
def test_specific_properties(version: str, tmp_path: Path) -> None:
    target = TractNNEF(version, specific_properties={"model": "enc-3", "note": 'a "b" \\ {c} 100%'})
    result = exported(nn.Linear(4, 3), torch.randn(2, 4), target, tmp_path)
    assert '"model", "enc-3"' in text_of(result.archive)
    result.assert_parity()


@every_line
def test_dump_identity_properties(version: str, tmp_path: Path) -> None:
    """Off unless asked: then nothing of the machine is in the archive."""
    plain = exported(nn.Linear(4, 3), torch.randn(2, 4), TractNNEF(version), tmp_path)
    assert "properties" not in text_of(plain.archive)
    target = TractNNEF(version, dump_identity_properties=True)
    result = exported(nn.Linear(4, 3), torch.randn(2, 4), target, tmp_path)
    assert all(
        f"export_{word}" in text_of(result.archive) for word in ("user", "host", "os", "date", "python", "torch", "t2n")
    )
    result.assert_parity()


@pytest.mark.parametrize("version", ["0.21.6", "0.21.19", "0.22.4", NEWEST])
def test_custom_extensions(version: str, tmp_path: Path) -> None:
    target = TractNNEF(
        version,
        dynamic_axes={"input": {0: "T"}},
        custom_extensions=["tract_assert T >= 1", "extension tract_assert T < 99;"],
    )
    result = exported(nn.Linear(4, 3), torch.randn(5, 4), target, tmp_path)
    assert str(result.range) == "1 <= T <= 98"
    assert ("extension tract_assert T <= 98" in text_of(result.archive)) == (version != "0.21.6")
    outcome = result.assert_parity()
    assert [dict(sizes) for sizes in outcome.refused_sizes] == [{"T": 99}, {"T": 0}]


def test_custom_extensions_that_a_version_cannot_parse_are_refused(tmp_path: Path) -> None:
    target = TractNNEF("0.20.22", dynamic_axes={"input": {0: "T"}}, custom_extensions=["tract_assert tg: T == 5"])
    with pytest.raises(SpecError, match=r"available since 0\.21\.8"):
        exported(nn.Linear(4, 3), torch.randn(5, 4), target, tmp_path)
    with pytest.raises(InputError, match="is not one extension"):
        TractNNEF(NEWEST, custom_extensions=["a b;\nc d"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tract_assert S <= 4", "S is not a dynamic axis, these are T"),
        ("tract_assert T", "is not one comparison"),
        ("tract_assert T <= 4 ** T", "is not a size"),
        ("tract_assert T < 1", "no size"),
        ("tract_assert T >= 6", "T=5 are outside of the range T >= 6"),
    ],
)
def test_assertions_are_checked_against_the_range(line: str, message: str, tmp_path: Path) -> None:
    target = TractNNEF(NEWEST, dynamic_axes={"input": {0: "T"}}, custom_extensions=[line])
    with pytest.raises(InputError, match=message):
        exported(nn.Linear(4, 3), torch.randn(5, 4), target, tmp_path)


LEAKY = """
fragment leaky(x: tensor<scalar>, slope: scalar) -> (y: tensor<scalar>)
{
    y = select(x > 0.0, x, x * slope);
}
"""


@every_line
def test_custom_fragments(version: str, tmp_path: Path) -> None:
    """A rule calls the fragment by its name, with the arguments it declares."""

    def write(g: Emitter, x: Value) -> Value:
        return g.leaky(x, slope=0.0, out=Expected(x.shape, x.dtype))

    target = TractNNEF(version, custom_fragments=[LEAKY], dynamic_axes={"input": {0: "T"}})
    result = exported(nn.ReLU(), torch.randn(5, 4), target, tmp_path, rules=own_relu(write))
    assert "= leaky(" in text_of(result.archive)
    result.assert_parity("exact")


def test_custom_fragments_that_declare_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no fragment is declared"):
        TractNNEF(NEWEST, custom_fragments=["y = relu(x);"])
    bad = Fragment(
        "bad", "fragment bad(x: tensor<scalar>) -> (y: tensor<scalar>)\n{\n y = nothing(x);\n}", frozenset({"nothing"})
    )
    with pytest.raises(SpecError, match="unknown in every version"):
        exported(nn.ReLU(), torch.randn(2, 3), TractNNEF(NEWEST, custom_fragments=[bad]), tmp_path)
