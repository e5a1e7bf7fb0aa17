"""Measure what weights of fewer bits lose in nets that are no language models, in the engine.

    python -m conformance.lab.measure.weight_losses --page docs/how-to/float16.md

The nets are architectures of the suite `models`, small and with random weights of trained spread. What the archive with
small weights computes is compared with PyTorch and the model's own float32 weights, over several examples. The error is
a share of the spread (standard deviation) of the outputs, as a root mean square, and the largest one.
"""

from __future__ import annotations

import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from conformance.lab.command import add_tract, command_parser, say
from conformance.lab.measure.peers.architectures import case_of
from conformance.lab.pages.tables import figures_table, show
from conformance.lab.rows import group_rows
from t2n_core import ExportResult, ModelExport, TractNNEF
from t2n_core.engine import ResolvedEngine, engine_for, resolve_engines
from t2n_core.nnef.dat import stored_size

NETS = (
    *("torchvision-resnet18", "torchvision-mobilenet_v3_small", "torchvision-convnext"),
    *("torchaudio-wav2letter", "transformers-bert"),
)
FORMATS = ("float16", "int8", "q4_0")
EXAMPLES = 8
_MARK = "<!-- table of losses -->"

Row = dict[str, Any]


def main(arguments: list[str] | None = None) -> int:
    parser = command_parser("conformance.lab.measure.weight_losses", __doc__)
    parser.add_argument("--nets", default=",".join(NETS), metavar="NAMES", help="architectures, by commas")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the table into this page")
    add_tract(parser, "latest")
    options = parser.parse_args(arguments)
    (engine,) = resolve_engines(options.tract)
    rows = [row for net in options.nets.split(",") for row in measure(net, engine)]
    show(table_of(rows), _MARK, options.page)
    return 0


def measure(net: str, engine: ResolvedEngine) -> Iterator[Row]:
    """Yield for float32 and each format the bytes of the weights as a share, and the error. Raises RuntimeError."""
    case = case_of(net)
    model, example = case.build(zlib.crc32(net.encode()))
    export = ModelExport(model, example)
    examples = [example, *(case.inputs() for _ in range(EXAMPLES - 1))]
    with torch.no_grad():
        expected = [_first(model(**inputs)).numpy() for inputs in examples]
    batches = [[value.numpy() for value in inputs.values() if isinstance(value, torch.Tensor)] for inputs in examples]
    plain = 0
    for weights in (None, *FORMATS):
        say(f"{net}, {weights or 'float32'}")
        with tempfile.TemporaryDirectory() as folder:
            target = TractNNEF(engine=engine, check_io=False, weights=weights)
            result = export.to(target, Path(folder, "net.nnef.tar"))
            reply = engine_for(engine).run(result.archive, batches)
        if not reply.outputs:
            raise RuntimeError(f"{net}, {weights}: {reply.message}")
        plain = plain or bytes_of_weights(result)
        error = errors([outputs[0] for outputs in reply.outputs], expected)
        yield {"net": net, "weights": weights or "float32", "share": bytes_of_weights(result) / plain, **error}


def errors(actual: Sequence[np.ndarray[Any, Any]], expected: Sequence[np.ndarray[Any, Any]]) -> dict[str, float]:
    """Return the error over all examples as shares of the outputs' standard deviation."""
    got, target = (np.concatenate([array.ravel() for array in some]).astype(np.float64) for some in (actual, expected))
    difference, spread = got - target, target.std()
    return {"rms": float(np.sqrt((difference**2).mean()) / spread), "most": float(np.abs(difference).max() / spread)}


def bytes_of_weights(result: ExportResult) -> int:
    return sum(stored_size(value.weight) for _, value in result.graph.variables() if value.weight is not None)


def table_of(rows: Sequence[Row]) -> str:
    """Return the table of Markdown: a line for each net, with bytes, error and largest error in each format."""
    lines = [[f"`{net}`", *map(_cell, of_net)] for (net,), of_net in group_rows(rows, "net").items()]
    return figures_table(("net", "float32", *FORMATS), lines)


def _cell(row: Row) -> str:
    return f"{row['share']:.2f}, {row['rms']:.2%}, {row['most']:.2%}"


def _first(output: Any) -> torch.Tensor:
    """Return the first tensor of what a model returns."""
    return next(leaf for leaf in torch.utils._pytree.tree_leaves(output) if isinstance(leaf, torch.Tensor))


if __name__ == "__main__":
    sys.exit(main())
