"""Write archives of small nets as an exporter writes them today, for the tests that read them for ever.

python -m tools.museum ours                                   # of this version
python -m tools.museum torch-to-nnef                          # in an environment that has it

An archive is `tests/museum/WRITER-VERSION/RELEASE/NET.nnef.tgz`, for the newest release of some lines of tract; its
inputs and PyTorch's outputs are `tests/museum/NET.npz`, which is written once. What is there stays as it is.
"""

from __future__ import annotations

import importlib.metadata
import io
import re
import shutil
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch import nn

from conformance.lab.measure.nets.layers import LayerNet
from conformance.lab.measure.peers.exporters import Export, exporter
from t2n_core.engine.provision.known import newest_of_lines

FOLDER: Final = Path(__file__).parents[1] / "tests" / "museum"
DISTRIBUTIONS: Final = {"ours": "pytest-t2n", "torch-to-nnef": "torch-to-nnef"}
RELEASES: Final = {"ours": newest_of_lines(), "torch-to-nnef": newest_of_lines()[2::2]}
"""Exporter -> the newest releases of lines of tract for which archives are kept."""


class Net(nn.Module):
    """A net of one input, `x`, and one output, the first one of a recurrent net."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.net(x)
        result: torch.Tensor = y[0] if isinstance(y, tuple) else y
        return result


class Heads(nn.Module):
    """Attention of a sequence to itself."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        attended: torch.Tensor = self.attention(x, x, x, need_weights=False)[0]
        return attended


def _convolution() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, groups=4, padding=1)
    )


def _signal() -> nn.Module:
    return nn.Sequential(nn.Conv1d(3, 6, 3, dilation=2), nn.GLU(1), nn.GroupNorm(1, 3), nn.Hardswish())


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 7), nn.GELU(), nn.LayerNorm(7), nn.Linear(7, 3), nn.Softmax(-1))


_OF_THE_MACHINE: Final = re.compile(
    rb',\n\s*\("(?:os|hostname|user|py_version|export_date|export_cmd|exported_py_class)", "[^"]*"\)'
)
NETS: Final = (
    LayerNet("mlp", lambda: Net(_mlp()), (2, 5), {0: "B"}),
    LayerNet("convolution", lambda: Net(_convolution()), (1, 2, 9, 11)),
    LayerNet("signal", lambda: Net(_signal()), (2, 3, 17), {2: "T"}),
    LayerNet("upsampling", lambda: Net(nn.Upsample(scale_factor=2)), (1, 3, 4, 5)),
    LayerNet("lstm", lambda: Net(nn.LSTM(4, 6, 2, batch_first=True)), (2, 5, 4), {1: "T"}),
    LayerNet("gru", lambda: Net(nn.GRU(4, 6, bidirectional=True)), (5, 2, 4)),
    LayerNet("attention", Heads, (2, 5, 8), {1: "T"}),
)


def write(name: str) -> Iterator[Path]:
    """Yield the archives that an exporter writes; a net that it does not export for a release is left out."""
    distribution = DISTRIBUTIONS[name]
    export: Callable[[Export], None] = exporter(name)
    writer = FOLDER / f"{distribution}-{importlib.metadata.version(distribution)}"
    for release in RELEASES[name]:
        for net in NETS:
            model, x = net.build()
            arrays = FOLDER / f"{net.name}.npz"
            if not arrays.exists():
                with torch.no_grad():
                    np.savez(arrays, x=x.numpy(), y=model(x).numpy())
            archive = writer / release / f"{net.name}.nnef.tgz"
            if archive.exists():
                continue
            archive.parent.mkdir(parents=True, exist_ok=True)
            try:
                export(Export(model, {"x": x}, ["y"], release, archive, net.dynamic_axes("x") or None))
            except Exception as error:  # of any exporter
                print(f"{archive}: {type(error).__name__}: {error}", file=sys.stderr)
                continue
            forget_machine(archive)
            yield archive
        for path in (writer / release).glob("*"):
            if not path.name.endswith(".nnef.tgz"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def forget_machine(archive: Path) -> None:
    """Rewrite an archive, compressed, without what its graph states of the machine, its user and the command."""
    with tarfile.open(archive) as written:
        files = [(member.name, file.read()) for member in written if (file := written.extractfile(member)) is not None]
    with tarfile.open(archive, "w:gz") as output:
        for name, content in files:
            if name == "graph.nnef":
                content = _OF_THE_MACHINE.sub(b"", content)
            member = tarfile.TarInfo(name)
            member.size = len(content)
            output.addfile(member, io.BytesIO(content))


def main() -> int:
    torch.set_num_threads(1)
    for archive in write(sys.argv[1]):
        print(f"{archive.relative_to(FOLDER)}: {archive.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
