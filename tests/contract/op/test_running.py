"""Running sums, products and extremes along a dynamic axis are PyTorch's, however long it is.

Lengths are around the size of a block, 1, and 100,000, at which a square of the axis would take 40 GB.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.export import Dim

from t2n_core import ExportResult, ModelExport, TractNNEF
from tests.nets import OfFunction
from tests.releases import NEWEST, OLDEST, on_each_line

VERSIONS = on_each_line(OLDEST, NEWEST)
LENGTHS = (1, 2, 63, 64, 65, 128, 1_000, 100_000)
Net = Callable[[Tensor], Any]


def drawn(*shape: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0)) - 0.25


def assert_right(
    net: Net, version: str, path: Path, *samples: Tensor, axes: Mapping[int, Any], **more: Any
) -> ExportResult:
    """Return the result of an export that is right at the sizes of all samples."""
    example, *others = samples
    export = ModelExport(
        OfFunction(net).eval(),
        example,
        input_names=["x"],
        dynamic_axes={"x": axes},
        extra_inputs=[(other,) for other in others],
        **more,
    )
    result = export.to(TractNNEF(version, check_io=False), path.with_suffix(".nnef.tar"))
    result.assert_parity()
    return result


OF_FLOATS: dict[str, Net] = {
    "cumsum": lambda x: x.cumsum(1),
    "cumsum of float64": lambda x: x.to(torch.float64).cumsum(1),
    "cumprod": lambda x: (1 + x * 1e-4).cumprod(1),
    "logcumsumexp": lambda x: (x * 30).logcumsumexp(1),
    "cummax": lambda x: x.cummax(1),
    "cummin": lambda x: x.cummin(1),
}
OF_INTEGERS: dict[str, Net] = {
    "cumsum of integers": lambda x: (x * 1000).to(torch.int64).cumsum(1),
    "cummax of integers": lambda x: (x * 50).to(torch.int64).cummax(1),
    "count of true": lambda x: (x > 0).cumsum(1),
}
NETS = {**OF_FLOATS, **OF_INTEGERS}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NETS)
def test_lengths(name: str, version: str, tmp_path: Path) -> None:
    assert_right(NETS[name], version, tmp_path / "model", *(drawn(2, n) for n in (50, *LENGTHS)), axes={1: "T"})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NETS)
def test_two_dynamic_axes(name: str, version: str, tmp_path: Path) -> None:
    samples = [drawn(*shape) for shape in [(2, 50, 3), (1, 1, 3), (3, 64, 3), (1, 129, 3), (4, 2_000, 3)]]
    assert_right(NETS[name], version, tmp_path / "model", *samples, axes={0: "B", 1: "T"})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NETS)
def test_wide_rows(name: str, version: str, tmp_path: Path) -> None:
    samples = [drawn(2, 5, steps, 11) for steps in (50, 1, 64, 1_000)]
    net = NETS[name]
    assert_right(lambda x: net(x.transpose(1, 2)), version, tmp_path / "model", *samples, axes={2: "T"})


@pytest.mark.parametrize("version", VERSIONS)
def test_a_million_steps_do_not_drift(version: str, tmp_path: Path) -> None:
    assert_right(NETS["cumsum"], version, tmp_path / "m", torch.rand(1, 9), torch.full((1, 10**6), 0.1), axes={1: "T"})


def phase(f0: Tensor) -> tuple[Tensor, Tensor]:
    """Return harmonics, and the number of their periods."""
    periods = torch.cumsum(f0.unsqueeze(-1) * torch.arange(1, 10, dtype=torch.float32) / 24_000, dim=1)
    return torch.sin(2 * math.pi * periods), periods


@pytest.mark.parametrize("version", VERSIONS)
def test_phase_of_ten_seconds(version: str, tmp_path: Path) -> None:
    """The ninth harmonic has 16,000 periods, where a float32 has steps of 1/1000 of one."""
    samples = [180 + 40 * drawn(batch, steps) for batch, steps in [(2, 50), (1, 240_000)]]
    result = assert_right(phase, version, tmp_path / "model", *samples, axes={0: "B", 1: "T"})
    limited = result.target.engine().run(result.archive, [[samples[1].numpy()]], memory_limit=1 << 30)
    assert limited.status == "ok", limited.message


@pytest.mark.parametrize("version", VERSIONS)
def test_phase_of_a_fixed_number_of_steps(version: str, tmp_path: Path) -> None:
    export = ModelExport(OfFunction(phase).eval(), 180 + 40 * drawn(1, 42_000))
    export.to(TractNNEF(version, check_io=False), tmp_path / "model.nnef.tar").assert_parity()


SIZES: dict[str, tuple[Net, Any]] = {
    "a sum of two sizes": (lambda x: torch.cat([x, x[:, :3] * 2], 1).cumsum(1), "T"),
    "the half": (lambda x: x[:, : x.shape[1] // 2].cumsum(1), "T"),
    "every second": (lambda x: x[:, ::2].cummax(1)[0], "T"),
    "a multiple": (lambda x: x.cumsum(1), 3 * Dim("T")),
    "merged axes": (lambda x: x.flatten().cumsum(0), "T"),
    "twice": (lambda x: x.cumsum(1).cumsum(1), "T"),
    "backwards": (lambda x: x.flip(1).cumsum(1).flip(1), "T"),
    "sliced after": (lambda x: x.cumsum(1)[:, 1:], "T"),
    "merged after": (lambda x: x.cumsum(1).reshape(-1), "T"),
    "picked by a mask": (lambda x: x.cumsum(1).masked_scatter(x > 0, x.reshape(-1)), "T"),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", SIZES)
def test_sizes(name: str, version: str, tmp_path: Path) -> None:
    net, axis = SIZES[name]
    samples = [drawn(2, n) for n in (51, 3, 6, 63, 126, 129, 192, 1_203)]
    assert_right(net, version, tmp_path / "model", *samples, axes={1: axis})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", OF_FLOATS)
def test_infinities_and_nan_stay_where_they_are(name: str, version: str, tmp_path: Path) -> None:
    """A NaN or an infinity reaches no element before it, and no other row, also within a block."""
    x = drawn(4, 200)
    x[0, 70], x[1, 3], x[2, 130], x[3, 0] = math.nan, math.inf, -math.inf, -math.inf
    assert_right(OF_FLOATS[name], version, tmp_path / "model", drawn(4, 50), x, axes={1: "T"})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NETS)
def test_no_elements(name: str, version: str, tmp_path: Path) -> None:
    axes = {0: Dim("B", min=0, max=9), 1: Dim("T", min=0, max=99)}
    samples = [drawn(*shape) for shape in ((2, 50), (2, 0), (2, 65))]
    assert_right(NETS[name], version, tmp_path / "steps", *samples, axes={1: axes[1]})
    samples = [drawn(*shape) for shape in ((2, 50, 3), (2, 0, 3), (0, 65, 3))]
    assert_right(NETS[name], version, tmp_path / "rows", *samples, axes=axes)
