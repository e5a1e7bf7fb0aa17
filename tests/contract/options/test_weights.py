"""Weights in blocks of 4 bits, on real engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.check.parity import check_parity
from t2n_core.errors import InputError, UnsupportedOpsError
from t2n_core.op.compression import Q40Weight
from tests.contract.options.exports import exported


class Tagger(nn.Module):
    """An embedding, linear layers with and without whole blocks, one weight that something else reads too."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 64)
        self.up = nn.Linear(64, 96)
        self.down = nn.Linear(96, 64, bias=False)
        self.odd = nn.Linear(64, 33)
        self.last = nn.Linear(33, 5)
        self.shared = nn.Parameter(torch.randn(5, 32))

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        x = self.words(tokens)
        x = x + self.down(F.relu(self.up(x)))
        return self.last(torch.tanh(self.odd(x))), F.linear(x[..., :32], self.shared) + self.shared.sum()


BLOCKS = {"q4_0": {"up", "down", "odd"}, "q4_0_with_embeddings": {"up", "down", "odd", "words"}}


@pytest.mark.parametrize("compression", list(BLOCKS))
@pytest.mark.parametrize("version", ["0.21.6", "0.21.10", "0.21.11", "0.21.19", "0.22.4", "0.23.0", "0.23.9"])
def test_weight_compression(version: str, compression: Any, tmp_path: Path) -> None:
    """Each version reads its own layout; what it computes is what the dequantised model computes, at all sizes."""
    model, tokens = Tagger().eval(), torch.randint(0, 11, (2, 7))
    target = TractNNEF(version, weight_compression=compression, dynamic_axes={"tokens": {0: "B", 1: "T"}})
    export = ModelExport(model, tokens)
    if compression != "q4_0" and version in ("0.21.6", "0.21.10"):
        with pytest.raises(UnsupportedOpsError, match="has no argument `datum_type`"):
            export.to(target, tmp_path / "m")
        return
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    result = export.to(target, tmp_path / "m")
    item_type = 0x2040 if version in ("0.21.6", "0.21.10") else 0x3040
    types = {path.stem: int.from_bytes(path.read_bytes()[48:50], "little") for path in (tmp_path / "m").glob("*.dat")}
    assert {name.partition(".")[0] for name, found in types.items() if found == item_type} == BLOCKS[compression]
    assert (tmp_path / "m" / "up.weight.dat").stat().st_size == 128 + 64 * 96 // 32 * 18
    outcome = result.assert_parity("approximate")
    assert len(outcome.sizes) >= 7
    plain = check_parity(target.engine(), result.archive, export.samples, output_names=result.output_names)
    assert not plain.passed, "4 bits are not what the model has"
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


@pytest.mark.parametrize("version", ["0.21.6", "0.21.19", "0.23.9"])
def test_weight_compression_of_halves_and_ties(version: str, tmp_path: Path) -> None:
    """A tied weight is one file, and is left as it is where one of its readers cannot take blocks."""

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(11, 64)
            nn.init.normal_(self.words.weight, std=0.1)  # long sums of halves that cancel would test rounding only
            self.out = nn.Linear(64, 11, bias=False)
            self.out.weight = self.words.weight
            self.mid = nn.Linear(64, 64)

        def forward(self, tokens: Tensor) -> Tensor:
            return self.out(torch.tanh(self.mid(self.words(tokens))))

    model, tokens = Tied().half(), torch.randint(0, 11, (2, 7))
    target = TractNNEF(version, weight_compression="q4_0")
    result = exported(model, tokens, target, tmp_path)
    assert {v.name for _, v in result.graph.variables() if isinstance(v.weight, Q40Weight)} == {"mid_weight_1"}
    result.assert_parity("approximate")
    if version != "0.21.6":
        target = TractNNEF(version, weight_compression="q4_0_with_embeddings")
        result = exported(model, tokens, target, tmp_path)
        blocks = [v for _, v in result.graph.variables() if isinstance(v.weight, Q40Weight)]
        assert len(blocks) == 2
        result.assert_parity("approximate")


def test_weight_compression_is_refused_where_it_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOpsError, match=r"are read since tract 0\.21\.6"):
        exported(nn.Linear(64, 5), torch.randn(3, 64), TractNNEF("0.20.22", weight_compression="q4_0"), tmp_path)
    with pytest.raises(InputError, match="none of q4_0, q4_0_with_embeddings"):
        TractNNEF("0.23.9", weight_compression="q8")  # type: ignore[arg-type]


@pytest.mark.parametrize("compression", [None, "q4_0"])
def test_a_weight_that_two_layers_share_is_one_file(compression: Any, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(1, 32, bias=False), nn.Linear(32, 32, bias=False), nn.Linear(32, 32, bias=False))
    model[1].weight = model[2].weight
    target = TractNNEF("0.23.9", weight_compression=compression, dynamic_axes={"input": {0: "S"}})
    result = ModelExport(model, torch.rand(10, 1)).to(target, tmp_path / "m")
    assert sorted(path.name for path in (tmp_path / "m").glob("*.dat")) == ["0.weight.dat", "1.weight.dat"]
    result.assert_parity("approximate")
