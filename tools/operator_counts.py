"""Statements of archives, and operators of the engine's optimised graphs, of nets whose speed is measured.

python -m tools.operator_counts
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from conformance.lab.measure.engine.speed import archive_figures
from conformance.lab.measure.nets.groups import Net
from conformance.lab.measure.nets.layers import LAYERS
from conformance.lab.measure.nets.vision import VISION
from t2n_core import ModelExport, TractNNEF
from t2n_core.engine.protocol import OPERATORS
from tools.build_spec_tables import known_releases

NETS: dict[str, Net] = {net.name: net for net in (*VISION, *LAYERS)}
PAGE = Path(__file__).with_name("recorded") / "operator_counts.tsv"
RELEASES = ("0.21.19", known_releases()[-1])
HEAD = ("net", "release", "statements", "nodes", "operators")


def count(name: str, release: str) -> tuple[str, ...]:
    """Return the row of a net in a release. Raises AssertionError if the archive has a mismatch."""
    net = NETS[name]
    model, x = net.build()
    export = ModelExport(model, (x,), input_names=["input"], dynamic_axes=net.dynamic_axes("input"))
    with tempfile.TemporaryDirectory() as folder:
        result = export.to(TractNNEF(release, check_io=False), Path(folder) / "net.nnef.tar")
        outcome = result.assert_parity()
        statements = archive_figures(result.archive)["statements"]
    operators = dict(sorted(outcome.facts[OPERATORS].items()))
    listed = ", ".join(f"{operator} {number}" for operator, number in operators.items())
    return name, release, str(statements), str(sum(operators.values())), listed


def recorded() -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the rows of the file by net and release."""
    rows = [tuple(line.split("\t")) for line in PAGE.read_text("utf-8").splitlines()[1:]]
    return {(name, release): (name, release, *rest) for name, release, *rest in rows}


def lines() -> Iterator[str]:
    """Yield the lines of the file."""
    yield "\t".join(HEAD)
    for name in NETS:
        for release in RELEASES:
            yield "\t".join(count(name, release))


def main() -> None:
    PAGE.write_text("\n".join([*lines(), ""]), "utf-8")


if __name__ == "__main__":
    main()
