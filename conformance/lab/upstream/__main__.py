"""Rewrite the cases of this folder with the public commands: `t2n reduce`, then `t2n bundle --format tract`.

python -m conformance.lab.upstream
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from conformance.lab.plant.faults.graphs import planted_graph
from conformance.lab.plant.faults.plants import PLANTS
from pytest_t2n.cli import main as t2n
from t2n_core.engine import close_all, engine_for, resolve_engines
from t2n_core.engine.khronos.engine import KhronosEngine
from t2n_core.nnef.reading.archive import read_archive
from t2n_core.reduce.binding import Signatures
from t2n_core.reduce.case import npz_bytes
from t2n_core.reduce.oracles import Float64Oracle, ReleaseOracle
from t2n_core.reduce.program import Program

if TYPE_CHECKING:
    from torch.nn import Module

HERE = Path(__file__).parent
FLOAT64 = "float64"
TWO_RELU = """version 1.0;
graph network(x) -> (a, b)
{
  x = external(shape = [2, 3, 4]);
  first = relu(x);
  second = relu(x);
  flat = reshape(second, shape = [2, 12]);
  a = tanh(flat);
  b = exp(first);
}
"""
PRODUCT_WITH_ZERO = """version 1.0;
extension tract_symbol S;
graph network(x, w) -> (y)
{
  x = external(shape = [S, 4]);
  w = external(shape = [4, 5]);
  none = mul(x, 0.0);
  y = matmul(none, w);
}
"""
STRIDE_BEFORE_TILE = """version 1.0;
graph network(x) -> (y)
{
  x = external(shape = [3, 1, 8]);
  repeated = tile(x, repeats = [1, 3, 1]);
  y = slice(repeated, axes = [2], begin = [1], end = [8], stride = [2]);
}
"""
STRIDE_BEFORE_RESHAPE = """version 1.0;
graph network(x) -> (y)
{
  x = external(shape = [2, 6, 5]);
  flat = reshape(x, shape = [30], axis_start = 1, axis_count = 2);
  y = slice(flat, axes = [1], begin = [0], end = [30], stride = [3]);
}
"""


@dataclass(frozen=True, slots=True)
class Failure:
    """A graph that fails in a release."""

    name: str
    title: str
    release: str
    oracle: str
    make: Callable[[Path], Program]


def _planted_program(name: str, release: str) -> Callable[[Path], Program]:
    plant = next(one for one in PLANTS if one.name == name and one.release == release)
    return lambda folder: planted_graph(7, 40, plant.make, release)


def _two_relu(folder: Path) -> Program:
    folder.mkdir()
    (folder / "graph.nnef").write_text(TWO_RELU)
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4)
    return Program.of(read_archive(folder), [x], Signatures.of("tract", "0.21.6"))


def _lstm(folder: Path) -> Program:
    """Return a tagger exported for 0.20.22, whose steps reshape what earlier releases reshape wrongly."""
    from torch import Tensor, nn

    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.LSTM(32, 64, 2, batch_first=True)
            self.out = nn.Linear(64, 10)

        def forward(self, x: Tensor) -> Tensor:
            return self.out(self.rnn(x)[0]).softmax(-1)

    return _export(Tagger, (1, 20, 32), "0.20.22", folder)


def _depthwise(folder: Path) -> Program:
    """Return a depthwise convolution exported for 0.20.22, whose filter is rows with an axis inserted."""
    import torch.nn.functional as F
    from torch import Tensor, nn

    class Taps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.taps = nn.Parameter(nn.Linear(4, 6).weight.detach())

        def forward(self, x: Tensor) -> Tensor:
            return F.conv1d(x, self.taps[:, :3].unsqueeze(1), self.taps[:, 3], groups=6)

    return _export(Taps, (2, 6, 17), "0.20.22", folder)


def _subtracted(folder: Path) -> Program:
    """Return a convolution that is subtracted from a weight, exported for 0.20.22."""
    from torch import Tensor, nn

    class Subtracted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv1d(2, 3, 4)
            self.level = nn.Parameter(nn.Linear(1, 3).weight.detach())

        def forward(self, x: Tensor) -> Tensor:
            return self.level - self.conv(x)

    return _export(Subtracted, (1, 2, 9), "0.20.22", folder)


def _of_text(text: str, *shapes: tuple[int, ...]) -> Callable[[Path], Program]:
    def program(folder: Path) -> Program:
        folder.mkdir()
        (folder / "graph.nnef").write_text(text)
        rng = np.random.default_rng(5)
        inputs = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        return Program.of(read_archive(folder), inputs, Signatures.of("tract", "0.23.9"))

    return program


def _export(make: Callable[[], Module], shape: tuple[int, ...], release: str, folder: Path) -> Program:
    """Return a model of random weights as exported for a release, with one input of random numbers."""
    import torch

    from t2n_core import ModelExport, TractNNEF

    torch.manual_seed(0)
    x = torch.randn(*shape)
    result = ModelExport(make().eval(), x).to(TractNNEF(release), folder)
    return Program.of(read_archive(result.archive), [x.numpy()], Signatures.of("tract", release))


FAILURES = (
    Failure(
        "sub-of-fewer-elements",
        "`sub` of a tensor with fewer elements computes the negative",
        "0.21.8",
        "0.21.13",
        _planted_program("sub of fewer elements", "0.21.8"),
    ),
    Failure(
        "mul-stretched-between",
        "`mul` by a tensor that is stretched on both sides of an axis is wrong",
        "0.21.6",
        "0.21.13",
        _planted_program("mul stretched between", "0.21.6"),
    ),
    Failure(
        "avg-pool-over-zeros",
        "`avg_pool` with border `constant` counts as with border `ignore`",
        "0.22.4",
        "0.23.9",
        _planted_program("avg_pool over zeros", "0.22.4"),
    ),
    Failure(
        "max-pool-replicate-panics",
        "`max_pool` with border `replicate` panics",
        "0.23.9",
        FLOAT64,
        _planted_program("max_pool over copies", "0.23.9"),
    ),
    Failure(
        "two-relu-of-one-tensor", "Two equal `relu` of one tensor: a Dummy op is run", "0.21.6", "0.21.13", _two_relu
    ),
    Failure("scan-with-reshape", "`reshape` in the body of a scan is wrong", "0.20.18", "0.19.15", _lstm),
    Failure(
        "depthwise-filter-of-rows",
        "A depthwise `conv` whose filter got its unit axis by `reshape` reads other elements",
        "0.23.9",
        "0.20.22",
        _depthwise,
    ),
    Failure(
        "subtracted-convolution",
        "A value of each channel minus a convolution is computed as their sum",
        "0.23.9",
        "0.20.22",
        _subtracted,
    ),
    Failure(
        "product-with-zero",
        "declutter_broadcast: a product with 0 before a `matmul` has too few axes",
        "0.23.9",
        "0.20.22",
        _of_text(PRODUCT_WITH_ZERO, (3, 4), (4, 5)),
    ),
    Failure(
        "stride-before-tile",
        "pull_downsample_up: a stride is moved before a `tile`, whose result keeps its extents",
        "0.23.9",
        "0.22.4",
        _of_text(STRIDE_BEFORE_TILE, (3, 1, 8)),
    ),
    Failure(
        "stride-before-reshape",
        "pull_downsample_over_axis_op: a stride is moved before the `reshape` that makes its axis",
        "0.23.9",
        FLOAT64,
        _of_text(STRIDE_BEFORE_RESHAPE, (2, 6, 5)),
    ),
)


def write(failure: Failure, output: Path) -> int:
    """Write one case, and return the exit status of the command that replays it."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        program = failure.make(folder / "source")
        if failure.oracle == FLOAT64:
            oracle: Float64Oracle | ReleaseOracle = Float64Oracle(KhronosEngine.shared().interpreter, folder, 20.0)
        else:
            oracle = ReleaseOracle(engine_for(resolve_engines(failure.oracle)[0]), folder, 20.0)
        right = oracle.values(program, program.outputs)
        assert right is not None
        whole, small = folder / "whole", folder / "small"
        program.write(whole)
        expected = {name: array.astype(np.float32) for name, array in right.items()}
        (whole / "io.npz").write_bytes(npz_bytes({**program.inputs, **expected}))
        engine = ["--engine", failure.release, "--offline"]
        status = t2n(["reduce", str(whole), *engine, "--oracle", failure.oracle, "-o", str(small)])
        bundle = ["bundle", str(small), *engine, "--format", "tract", "--title", failure.title]
        return status or t2n([*bundle, "-o", str(output / failure.name)])


def main() -> int:
    """Write all cases; return 1 if one does not show what it is about."""
    try:
        return max(write(failure, HERE) for failure in FAILURES)
    finally:
        close_all()
        KhronosEngine.close_shared()


if __name__ == "__main__":
    sys.exit(main())
