"""Weights of 8 bits: integers, scales by channel, and scales of the user's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from t2n_core import ModelExport, StoredAs, TractNNEF
from t2n_core.errors import InputError
from t2n_core.op.stored.int8 import ByteWeight, as_bytes
from t2n_core.op.stored.scales import least_error, percentile
from tests.releases import NEWEST

KERNEL = torch.randn(6, 4, 3, generator=torch.Generator().manual_seed(1)) * torch.logspace(-4, 3, 6)[:, None, None]


@pytest.mark.parametrize("channels", [(0,), (1,), (0, 1), (0, 2)])
def test_each_number_is_within_half_a_step(channels: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    stored = as_bytes(KERNEL, channels)
    assert stored.scales is not None
    assert stored.scales.shape == tuple(n if axis in channels else 1 for axis, n in enumerate(KERNEL.shape))
    assert ((stored.values - KERNEL).abs() <= 0.5001 * stored.scales).all()
    steps = np.frombuffer(b"".join(ByteWeight(stored).chunks()), np.int8).reshape(KERNEL.shape)
    np.testing.assert_array_equal(steps.astype(np.float32) * stored.scales.numpy(), stored.values)
    others = [axis for axis in range(3) if axis not in channels]
    assert (np.abs(steps).max(axis=tuple(others)) == 127).all()
    monkeypatch.setattr("t2n_core.op.stored.chunks.AT_A_TIME", 13)
    assert torch.equal(as_bytes(KERNEL, channels).values, stored.values)
    assert b"".join(ByteWeight(stored).chunks()) == steps.tobytes()


def test_zeros_stay_zeros() -> None:
    stored = as_bytes(torch.zeros(3, 32), (0,))
    assert torch.equal(stored.values, torch.zeros(3, 32))


def test_other_scales() -> None:
    rows = torch.randn(16, 4000, generator=torch.Generator().manual_seed(2))
    rows[:, 0] = 40.0
    cut, best, plain = (as_bytes(rows, (0,), scales) for scales in (percentile(0.999), least_error, None))
    assert cut.values.max() < 5
    errors = [((variant.values - rows)[:, 1:] ** 2).mean().item() for variant in (cut, plain)]
    assert errors[0] < errors[1] / 50
    assert ((best.values - rows) ** 2).sum() <= ((plain.values - rows) ** 2).sum()


WRONG = {
    "one for all": (lambda rows, low, high: torch.tensor(1.0), "scales of 4 rows have shape [], not [4]"),
    "infinite": (lambda rows, low, high: torch.full((len(rows),), torch.inf), "a scale is not finite"),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_what_is_no_scale_is_refused(name: str) -> None:
    scales, message = WRONG[name]
    target = TractNNEF(NEWEST, check_io=False, weights=StoredAs("int8", scales=scales))
    with pytest.raises(InputError) as refused:
        ModelExport(nn.Linear(64, 4).eval(), torch.randn(2, 64)).lower(target)
    assert f"weights: `weight` as int8: {message}" in str(refused.value)
    with pytest.raises(InputError, match="above 0 and at most 1"):
        percentile(0)


def test_a_function_chooses_and_brings_scales() -> None:
    model = nn.Sequential(nn.Linear(64, 4), nn.Linear(4, 64), nn.Linear(64, 3)).eval()
    mine = {"0.weight": torch.full((4,), 0.25)}

    def choice(name: str, weight: torch.Tensor) -> StoredAs | str | None:
        if name in mine:
            return StoredAs("int8", scales=lambda rows, low, high: mine[name])
        return "float16" if weight.shape[1] == 64 else None

    graph = ModelExport(model, torch.randn(2, 64)).lower(TractNNEF(NEWEST, check_io=False, weights=choice))
    formats = {label: stored.format for label, stored in graph.stored.items()}
    assert formats == {"0.weight": "int8", "2.weight": "float16"}
    assert set((graph.stored["0.weight"].values / 0.25).unique().tolist()) <= {-1.0, 0.0, 1.0}


def test_the_channels_are_those_of_the_outputs() -> None:
    """Rows of a linear layer, the second axis of what is multiplied plainly, or transposed; each row of an expert."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows, self.up = nn.Linear(8, 8), nn.ConvTranspose1d(8, 16, 3)
            self.plain, self.experts = nn.Parameter(torch.randn(8, 12)), nn.Parameter(torch.randn(5, 8, 12))

        def forward(self, x: torch.Tensor, picks: torch.Tensor) -> torch.Tensor:
            y = self.rows(x) @ self.plain
            return (self.experts[picks] @ y.mT)[..., :2] + self.up(x.mT)[..., :2].sum()

    graph = ModelExport(Net().eval(), (torch.randn(3, 8, 8), torch.tensor([4, 0, 2]))).lower(
        TractNNEF(NEWEST, check_io=False, weights="int8")
    )
    assert {label: tuple(stored.scales.shape) for label, stored in graph.stored.items()} == {
        "rows.weight": (8, 1),
        "up.weight": (1, 16, 1),
        "plain": (1, 12),
        "experts": (5, 8, 1),
    }
