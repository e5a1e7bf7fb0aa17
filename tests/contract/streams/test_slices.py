"""Streams of slices along the time axis: right by single steps and by several, or refused at export with the reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import UnsupportedOpsError
from t2n_core.export.result import ExportResult
from tests.nets import net_of
from tests.releases import NEWEST, OLDEST, on_each_line

VERSIONS = on_each_line(OLDEST, "0.21.19", NEWEST)
every_line = pytest.mark.parametrize("version", VERSIONS)
FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "without the first": lambda x: x[:, 3:] * 2,
    "without the last": lambda x: x[:, :-3] * 2,
    "without both": lambda x: x[:, 2:-3] * 2,
    "the first": lambda x: x[:, :10] * 2,
    "of a slice": lambda x: x[:, 5:][:, 2:] * 2,
    "narrow": lambda x: x.narrow(1, 2, x.shape[1] - 2) * 2,
    "a difference of neighbours": lambda x: x[:, 1:] - x[:, :-1],
}
EVERY_NTH: dict[str, Callable[[Tensor], Tensor]] = {
    "every second": lambda x: x[:, ::2] * 2,
    "every second from the second on": lambda x: x[:, 1::2] * 2,
    "every third": lambda x: x[:, ::3] * 2,
    "every third but the last ones": lambda x: x[:, :-4:3] * 2,
    "of two axes": lambda x: x[:, ::2, ::2] * 2,
    "every second of the first": lambda x: x[:, :10:2] * 2,
    "of the first axis": lambda x: x.transpose(0, 1)[::2] * 2,
    "of the last axis": lambda x: x.mT[:, :, 2::2] * 2,
    "of a line": lambda x: x[0, :, 0][::3] * 2,
    "of a matrix": lambda x: x[:, :, 0][:, ::2] * 2,
    "of an image": lambda x: torch.stack([x, -x], 1)[:, :, 1::3] * 2,
    "of float64": lambda x: x.double()[:, ::2] * 2,
    "twice": lambda x: x[:, ::2][:, ::3] * 2,
}
LAST: dict[str, Callable[[Tensor], Tensor]] = {
    "the last ones": lambda x: x[:, -3:] * 2,
    "the last": lambda x: x[:, -1] * 2,
    "the second half": lambda x: x[:, x.shape[1] // 2 :] * 2,
}


def exported(model: nn.Module, target: TractNNEF, folder: Path, steps: int = 40) -> ExportResult:
    torch.manual_seed(11)
    export = ModelExport(model.eval(), torch.randn(2, steps, 3), input_names=["x"], dynamic_axes={"x": {1: "T"}})
    return export.to(target, folder / "model.nnef.tar")


def recurrent(kind: str, function: Callable[[Tensor], Tensor]) -> nn.Module:
    rnn = getattr(nn, kind)(3, 4, batch_first=True)
    return net_of(lambda self, x: function(self.rnn(x)[0]), rnn=rnn)


@every_line
@pytest.mark.parametrize("pulse", [1, 4])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_slices(name: str, pulse: int, version: str, tmp_path: Path) -> None:
    model = net_of(lambda self, x: FUNCTIONS[name](x))
    exported(model, TractNNEF(version, pulse=pulse), tmp_path).assert_parity("approximate")


@every_line
@pytest.mark.parametrize("pulse", [6, 12])
@pytest.mark.parametrize("name", EVERY_NTH)
def test_every_nth_step(name: str, pulse: int, version: str, tmp_path: Path) -> None:
    model = net_of(lambda self, x: EVERY_NTH[name](x))
    exported(model, TractNNEF(version, pulse=pulse), tmp_path).assert_parity("approximate")


PICKED: dict[str, Callable[[Tensor], Tensor]] = {
    "a flip": lambda x: x.flip(2) * 2,
    "every second": lambda x: x[:, :, ::2] * 2,
    "given ones": lambda x: x[:, :, torch.tensor([2, 0, 1, 1])] * 2,
    "a roll": lambda x: x.roll(1, 2) * 2,
}


@every_line
@pytest.mark.parametrize("name", PICKED)
def test_channels_of_a_stream(name: str, version: str, tmp_path: Path) -> None:
    model = net_of(lambda self, x: PICKED[name](x))
    exported(model, TractNNEF(version, pulse=4), tmp_path).assert_parity("approximate")


@every_line
def test_every_second_step_of_a_convolution(version: str, tmp_path: Path) -> None:
    model = net_of(lambda self, x: self.conv(x.mT)[:, :, ::2], conv=nn.Conv1d(3, 4, 3))
    exported(model, TractNNEF(version, pulse=2), tmp_path).assert_parity("approximate")


@every_line
@pytest.mark.parametrize("pulse", [1, 5])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_outputs_of_recurrent_nets_without_their_first_steps(
    kind: str, pulse: int, version: str, tmp_path: Path
) -> None:
    model = recurrent(kind, FUNCTIONS["without the first"])
    exported(model, TractNNEF(version, pulse=pulse), tmp_path).assert_parity("approximate")


@every_line
@pytest.mark.parametrize("pulse", [1, 4])
def test_outputs_of_a_convolution_without_their_first_steps(pulse: int, version: str, tmp_path: Path) -> None:
    model = net_of(lambda self, x: self.conv(x.mT)[:, :, 2:], conv=nn.Conv1d(3, 4, 3))
    result = exported(model, TractNNEF(version, pulse=pulse), tmp_path)
    assert str(result.range) == "T >= 4"
    result.assert_parity("approximate")


@every_line
@pytest.mark.parametrize("name", LAST)
@pytest.mark.parametrize("kind", ["", "LSTM", "GRU"])
def test_the_last_steps_are_refused(kind: str, name: str, version: str, tmp_path: Path) -> None:
    model = recurrent(kind, LAST[name]) if kind else net_of(lambda self, x: LAST[name](x))
    with pytest.raises(UnsupportedOpsError, match="a stream has no last step to count from: this is a slice from"):
        exported(model, TractNNEF(version, pulse=4), tmp_path)
    assert not list(tmp_path.iterdir())


class Stacked(nn.Module):
    """A layer for four steps at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(12, 5)

    def forward(self, x: Tensor) -> Tensor:
        steps = x.shape[1] // 4
        return self.out(x[:, : steps * 4].reshape(x.shape[0], steps, 12))


@every_line
def test_several_steps_at_a_time(version: str, tmp_path: Path) -> None:
    target = TractNNEF(version, pulse=4)
    if version == NEWEST:
        exported(Stacked(), target, tmp_path).assert_parity("approximate")
    else:
        with pytest.raises(UnsupportedOpsError, match="is not possible in a stream") as refused:
            exported(Stacked(), target, tmp_path)
        assert "tract 0.23.0 and later have it" in str(refused.value)
