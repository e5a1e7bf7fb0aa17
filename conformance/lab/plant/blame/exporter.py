"""Faults of an exporter: graphs of nets that were changed after they were lowered."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import torch
from torch import nn

from conformance.lab.machine import VERSIONS
from conformance.lab.plant.blame.trial import Blame
from conformance.lab.plant.mutants.tamper import Mutant, mutants_of
from t2n_core import ExportResult, ModelExport, TractNNEF

Made = tuple[nn.Module, torch.Tensor]
RELEASES: Final = VERSIONS[:0:-1]


def _of_images(*layers: nn.Module) -> Made:
    return nn.Sequential(*layers), torch.randn(2, 3, 9, 11)


NETS: Final[dict[str, Callable[[], Made]]] = {
    "convolutions": lambda: _of_images(nn.Conv2d(3, 5, 3, padding=1), nn.ReLU(), nn.Conv2d(5, 4, 3)),
    "perceptron": lambda: (
        nn.Sequential(nn.Linear(6, 9), nn.GELU(), nn.Linear(9, 4), nn.Softmax(-1)),
        torch.randn(3, 6),
    ),
    "attention": lambda: (
        nn.TransformerEncoderLayer(12, 3, 20, batch_first=True, dropout=0.0),
        torch.randn(2, 7, 12),
    ),
    "gru": lambda: (nn.GRU(5, 7, batch_first=True), torch.randn(2, 6, 5)),
    "lstm": lambda: (nn.LSTM(5, 7, 2, batch_first=True, bidirectional=True), torch.randn(2, 6, 5)),
    "group norm": lambda: (
        nn.Sequential(nn.Conv1d(4, 6, 3), nn.GroupNorm(3, 6), nn.SiLU(), nn.AvgPool1d(2)),
        torch.randn(2, 4, 13),
    ),
    "transposed": lambda: _of_images(nn.ConvTranspose2d(3, 4, 3, stride=2), nn.Tanh(), nn.MaxPool2d(2)),
    "layer norm": lambda: (
        nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 5), nn.Hardswish(), nn.LayerNorm(5)),
        torch.randn(4, 8),
    ),
}
_CHANGES: Final = (
    (r"= add\(", "= sub("),
    (r"= sub\(", "= add("),
    (r"= mul\(", "= max("),
    (r"= relu\(", "= abs("),
    (r"= tanh\(", "= sigmoid("),
    (r"= sigmoid\(", "= tanh("),
    (r"= exp\(", "= abs("),
    (r"= rsqrt\(", "= rcp("),
    (r"max_pool\(", "avg_pool("),
    (r"mean_reduce\(", "max_reduce("),
    (r"sum_reduce\(", "max_reduce("),
    (r"padding = \[\(1, 1\)", "padding = [(0, 2)"),
    (r"stride = \[2", "stride = [1"),
    (r"= softmax\((\w+)", r"= softmax(-1.0 * \1"),
    (r"= matmul\((\w+)", r"= matmul(1.02 * \1"),
    (r"= conv\((\w+)", r"= conv(0.98 * \1"),
    (r"transposeB = true", "transposeB = false"),
    (r"tract_core_erf\(", "tanh("),
)
"""Patterns and replacements of the first or second match in a graph."""


def exported(name: str, release: str, folder: Path) -> ExportResult:
    """Return the export of a net as a folder, with its seed."""
    torch.manual_seed(1)
    model, inputs = NETS[name]()
    return ModelExport(model.eval(), inputs).to(TractNNEF(release, check_io=False), folder)


def faults(folder: Path, seed: int, nets: Iterable[str] = tuple(NETS)) -> Iterator[Blame]:
    """Yield the changes of the graphs of nets in each release, with what the check makes of them."""
    for release in RELEASES:
        for name in nets:
            result = exported(name, release, folder / f"{name} {release}".replace(" ", "-"))
            assert result.check_parity().passed, name
            for mutant in mutants(result.archive, random.Random(seed)):
                with mutant.planted(result.archive):
                    outcome = result.check_parity()
                yield Blame.of("exporter", f"{name}: {mutant.kind} at {mutant.where}", release, outcome)


def mutants(archive: Path, rng: random.Random) -> Iterator[Mutant]:
    """Yield the changes of an unpacked archive: of each kind that fits, and other operators and arguments."""
    yield from mutants_of(archive, rng)
    text = (archive / "graph.nnef").read_text("utf-8")
    for pattern, other in _CHANGES:
        for index, match in enumerate(re.finditer(pattern, text)):
            if index < 2:
                changed = text[: match.start()] + re.sub(pattern, other, match[0]) + text[match.end() :]
                yield Mutant(f"`{match[0]}` as `{other}`", str(index), text=changed)
