"""Operators that compute other values than their definition in every release that has them.

python -m conformance.lab.upstream.operators
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.lab.upstream.__main__ import HERE
from t2n_core.engine import close_all, engine_for, resolve_engines
from t2n_core.engine.protocol import Engine
from t2n_core.parity.samples import Sample
from t2n_core.reduce.issue import machine_text
from t2n_core.reduce.tract_case import TractCase, replay, write_tract_case

Array = NDArray[np.float32]

RELEASE = "0.23.9"
TRIED = ("0.23.3", "0.23.5", "0.23.8", RELEASE)
WIDTH = 4


@dataclass(frozen=True, slots=True)
class Wrong:
    """An operator of attention with a state, on the first call, where the state is empty."""

    name: str
    title: str
    operator: str
    arguments: str
    queries: int
    keys: int
    scale: float
    why: str

    def text(self) -> str:
        """Return the graph."""
        q, k = (f"external(shape = [1, 1, {rows}, {WIDTH}])" for rows in (self.queries, self.keys))
        call = f"{self.operator}(q, k, v, {self.arguments}, scale = {self.scale})"
        lines = "\n".join(f"  {line};" for line in (f"q = {q}", f"k = {k}", f"v = {k}", f"y = {call}"))
        head = "version 1.0;\n\nextension tract_registry tract_transformers;\n\n"
        return f"{head}graph network(q, k, v) -> (y)\n{{\n{lines}\n}}\n"

    def sample(self) -> Sample:
        """Return inputs, and what the definition of attention gives: a query sees its own key and those before."""
        q, k, v = (_numbers(rows, seed) for rows, seed in ((self.queries, 1), (self.keys, 2), (self.keys, 3)))
        sees = np.arange(self.keys) <= np.arange(self.keys - self.queries, self.keys)[:, None]
        scores = np.where(sees, self.scale * (q.astype(np.float64) @ k.swapaxes(-1, -2)), -np.inf)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        y: NDArray[Any] = powers / powers.sum(-1, keepdims=True) @ v
        return Sample((q, k, v), (y.astype(np.float32),))


def _numbers(rows: int, seed: int) -> Array:
    """Return numbers between -1 and 1."""
    numbers: Array = np.random.default_rng(seed).uniform(-1, 1, (1, 1, rows, WIDTH)).astype(np.float32)
    return numbers


WRONG = (
    Wrong(
        "window-kv-sdpa-of-a-prompt",
        "`tract_transformers_window_kv_sdpa` is not causal for more than one token a call",
        "tract_transformers_window_kv_sdpa",
        "axis = 2, window = 5",
        3,
        3,
        1.0,
        "All queries of a call attend to all keys that are in the buffer once the call's own keys are in, so the first "
        "token of a prompt sees the last one. If the call has more rows than the window, the keys of the first queries "
        "are gone before they are read. Calls of one token are right.",
    ),
    Wrong(
        "quantized-kv-sdpa-of-small-keys",
        "`tract_transformers_quantized_kv_sdpa` rounds keys in steps of at least 1",
        "tract_transformers_quantized_kv_sdpa",
        "axis = 2",
        1,
        3,
        4.0,
        "The scale of each channel of the keys starts at 1.0 and is only ever raised: a channel needs a range of 255 "
        "before its steps fit it, and channels of usual keys keep one or two levels of the 256. Keys that were stored "
        "before a channel's lowest value or scale changes are also read back with the new ones.",
    ),
)


def write(wrong: Wrong, output: Path) -> None:
    """Write the folder of a case, and the text of its issue."""
    with tempfile.TemporaryDirectory() as made:
        (Path(made) / "graph.nnef").write_text(wrong.text(), "utf-8")
        write_tract_case(TractCase.of(Path(made), wrong.sample(), wrong.title), output / wrong.name)
    (output / f"{wrong.name}.issue.md").write_text(_issue(wrong, output), "utf-8", newline="\n")


def error_of(wrong: Wrong, engine: Engine, folder: Path = HERE) -> float:
    """Return the largest difference between what an engine computes and what is expected."""
    sample = wrong.sample()
    (got,) = engine.run(folder / wrong.name, [list(sample.inputs)]).outputs[0]
    return float(np.abs(got - sample.expected[0]).max())


def _issue(wrong: Wrong, output: Path) -> str:
    """Return the text for the maintainers."""
    engines = [engine_for(resolve_engines(version, offline=True)[0]) for version in TRIED]
    passes = [replay(output / wrong.name, engine).passed for engine in engines]
    errors = [error_of(wrong, engine, output) for engine in engines]
    largest = float(np.abs(wrong.sample().expected[0]).max())
    ends = "\n".join(
        f"- {version}: {'right' if right else f'wrong by {error:.2g}'}"
        for version, right, error in zip(TRIED, passes, errors, strict=True)
    )
    return f"""# {wrong.title}

tract {RELEASE} computes other values for this graph than the definition of attention, without an error: they are wrong
by {errors[-1]:.2g}, and the largest expected value is {largest:.2g}.

```
{wrong.text().strip()}
```

{wrong.why}

## Releases

{ends}

## Files

`{wrong.name}`, in the form of `harness/nnef-test-cases`: `graph.nnef`, `io.npz`, `runme.sh`.

## Machine

{machine_text()}
"""


def main() -> int:
    """Write all cases."""
    try:
        for wrong in WRONG:
            write(wrong, HERE)
    finally:
        close_all()
    return 0


if __name__ == "__main__":
    sys.exit(main())
