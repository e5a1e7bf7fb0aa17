"""Weights stored as float16, on real engines."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ExportResult, ModelExport, TractNNEF
from t2n_core.engine.pool import engine_for
from t2n_core.nnef.graph import FLOAT16
from t2n_core.nnef.sizes.dims import product
from t2n_core.parity.check import check_parity
from t2n_core.parity.request import CheckRequest
from t2n_core.profiling.profile import profile_archive
from tests.contract.options.exports import every_line
from tests.releases import NEWEST


def normed(norm: nn.Module) -> nn.Module:
    """Give a norm statistics and weights that are no identity."""
    with torch.no_grad():
        for name, tensor in [*norm.named_parameters(), *norm.named_buffers()]:
            if tensor.is_floating_point():
                tensor.copy_(0.5 + torch.rand(tensor.shape) if name != "running_mean" else torch.randn(tensor.shape))
    return norm


class Tied(nn.Module):
    """A weight that two layers share, of which one is behind a product."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(40, 32)
        self.mid = nn.Linear(32, 32)
        self.out = nn.Linear(32, 40, bias=False)
        self.out.weight = self.words.weight

    def forward(self, tokens: Tensor) -> Tensor:
        out: Tensor = self.out(torch.tanh(self.mid(self.words(tokens))))
        return out


class Shared(nn.Module):
    """One kernel with two norms, and without any."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3, padding=1)
        self.first, self.second = normed(nn.BatchNorm2d(8)), normed(nn.BatchNorm2d(8))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.second(self.conv(self.first(self.conv(x)))) + self.conv(x)
        return out


NETS = {
    "linear": (lambda: nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 8)), lambda: torch.randn(3, 64)),
    "conv": (
        lambda: nn.Sequential(nn.Conv2d(8, 16, 3), normed(nn.BatchNorm2d(16)), nn.Conv2d(16, 16, 3, groups=16)),
        lambda: torch.randn(2, 8, 9, 9),
    ),
    "shared": (Shared, lambda: torch.randn(2, 8, 9, 9)),
    "transposed": (lambda: nn.ConvTranspose2d(8, 16, 3, stride=2), lambda: torch.randn(2, 8, 9, 9)),
    "lstm": (lambda: nn.LSTM(32, 24, 2, bidirectional=True), lambda: torch.randn(7, 2, 32)),
    "gru": (lambda: nn.GRU(32, 24), lambda: torch.randn(7, 2, 32)),
    "attention": (
        lambda: nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), lambda: torch.randn(2, 5, 32)
    ),
    "tied": (Tied, lambda: torch.randint(0, 40, (2, 7))),
}  # fmt: skip


def stored(model: nn.Module, args: Tensor, version: str, path: Path) -> ExportResult:
    return ModelExport(model.eval(), args).to(TractNNEF(version, weights="float16"), path / "m")


@every_line
@pytest.mark.parametrize("name", list(NETS))
def test_weights(name: str, version: str, tmp_path: Path) -> None:
    """The engine computes what the model with rounded weights does; that is not what the model itself does."""
    make, inputs = NETS[name]
    torch.manual_seed(1)
    result = stored(make(), inputs(), version, tmp_path)
    assert not [note for note in result.notes if "in a State" not in note]
    result.assert_parity("approximate")
    outcome = check_parity(
        result.target.engine(), CheckRequest(result.archive, result.export.samples, result.output_names)
    )
    assert outcome.level not in ("exact", "close", "approximate")
    matrices = [value for _, value in result.graph.variables() if value.rank > 1 and product(value.shape) > 64]
    assert matrices
    assert {value.dtype for value in matrices} == {FLOAT16}


@pytest.mark.parametrize("capture", ["trace", "program", "script"])
def test_weights_of_other_ways_in(capture: str, tmp_path: Path) -> None:
    model, x = NETS["linear"][0]().eval(), torch.randn(3, 64)
    source, options = model, {}
    if capture == "trace":
        options = {"capture": "trace"}
    elif capture == "program":
        source = torch.export.export(model, (x,))
    else:
        source = torch.jit.trace(model, (x,))
    target = TractNNEF(NEWEST, weights="float16")
    result = ModelExport(source, x, **options).to(target, tmp_path / "m")
    assert {label for label, _ in result.stored} == {"0.weight", "2.weight"}
    result.assert_parity("approximate")


def test_weights_at_other_sizes(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv1d(8, 8, 3, groups=8), normed(nn.BatchNorm1d(8)), nn.Conv1d(8, 9, 3)).eval()
    target = TractNNEF("0.21.19", weights="float16", dynamic_axes={"input": {0: "B", 2: "T"}})
    ModelExport(model, torch.randn(2, 8, 9)).to(target, tmp_path / "m").assert_parity("approximate")


@pytest.mark.parametrize("version", ["0.22.4", "0.23.0", "0.23.3", "0.23.5", NEWEST])
@pytest.mark.parametrize("float16", [False, True])
def test_weights_are_cast_before_the_first_run(float16: bool, version: str, tmp_path: Path) -> None:
    """The optimised graph has no casts but those of input and output, also of a weight of more than 4 MiB."""
    model, x = nn.Conv2d(400, 400, 3).eval(), torch.randn(1, 400, 4, 4)
    if float16:
        target = TractNNEF(version, force_linear_accumulation_in_f32=True)
        result = ModelExport(model.half(), x.half()).to(target, tmp_path / "m")
    else:
        result = stored(model, x, version, tmp_path)
    engine = engine_for(result.target.resolved)  # type: ignore[attr-defined]
    profile = profile_archive(engine, result.archive, result.samples[0].inputs, seconds=0.05)
    nodes = [node for line in profile.lines for node in line.nodes]
    assert nodes.count("Cast") == (2 if float16 else 0)
    assert not {"Concat", "TypedConcat", "Slice"} & {*nodes}
