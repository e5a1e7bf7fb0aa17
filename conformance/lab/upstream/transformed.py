"""Graphs that a release computes right, and that it cannot run after one of its own transforms.

python -m conformance.lab.upstream.transformed
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.lab.upstream.__main__ import HERE
from t2n_core.engine import close_all, engine_for, resolve_engines
from t2n_core.engine.protocol import EngineReply
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.engine.tract.out_of_range import graph_text
from t2n_core.engine.tract.transforms.table import transforms_of
from t2n_core.engine.tract.transforms.transform import Transform
from t2n_core.level import TractCheckTolerance
from t2n_core.npz import read_npz
from t2n_core.reduce.case import IO_FILE
from t2n_core.reduce.issue import machine_text
from t2n_core.reduce.tract_case import SCRIPT, TractCase, write_tract_case

if TYPE_CHECKING:
    from torch.nn import Module

RELEASE = "0.23.9"
TRIED = ("0.21.19", "0.22.4", "0.23.3", "0.23.5", RELEASE)


@dataclass(frozen=True, slots=True)
class Changed:
    """A net that fails after a transform of a release."""

    name: str
    title: str
    transform: str
    flags: str
    """What the transform is on tract's command line."""
    make: Callable[[], Module]
    shape: tuple[int, ...]
    why: str


def _gelu() -> Module:
    from torch import nn

    return nn.GELU()


def _gru() -> Module:
    from torch import nn

    return nn.GRU(2, 3, batch_first=True)


def _linear() -> Module:
    from torch import nn

    return nn.Linear(6, 5)


def _nan() -> Module:
    import torch
    from torch import Tensor, nn

    class Positive(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.where(x > 0, x, torch.tensor(float("nan")))

    return Positive()


CHANGED = (
    Changed(
        "nan-is-written-as-a-name",
        "A constant of NaN is written as an identifier, which no reader knows",
        "round_trip",
        "--nnef-cycle-declutter",
        _nan,
        (2, 3),
        "Infinities survive the same way: `inf` is read as a number.",
    ),
    Changed(
        "gelu-cannot-be-written",
        "A model with an exact `gelu` cannot be written as NNEF",
        "round_trip",
        "--nnef-cycle-declutter",
        _gelu,
        (2, 3),
        "Decluttering, which each load does, turns the statements into the operator GeluExact, and no registry has a "
        "serializer for it.",
    ),
    Changed(
        "f32-to-f16-of-gru-seq",
        "`f32_to_f16` leaves `tract_core_gru_seq` with weights of float16 that it packs as float32",
        "f32_to_f16",
        "-t f32_to_f16",
        _gru,
        (1, 2, 2),
        "The operator's own result stays float32 while its inputs become float16.",
    ),
    Changed(
        "block-quant-of-six-columns",
        "`block_quant` takes weights whose rows are not made of whole blocks of 32",
        "block_quant",
        "-t block_quant",
        _linear,
        (3, 6),
        "A weight with another number of columns should stay as it is: the model is refused as a whole.",
    ),
)


def run_changed(changed: Changed, engine: TractEngine, folder: Path = HERE) -> EngineReply:
    """Return what an engine does with the case after the transform."""
    case = folder / changed.name
    arrays = read_npz(case / IO_FILE)
    inputs = [arrays[name] for name in _inputs_of(case)]
    if changed.transform == "f32_to_f16":
        inputs = [array.astype("float16") for array in inputs]
    with tempfile.TemporaryDirectory() as scratch:
        return engine.run(case, [inputs], transforms=[Transform.of(changed.transform)], scratch=Path(scratch))


def _inputs_of(case: Path) -> tuple[str, ...]:
    from t2n_core.engine.tract.signature import Signature

    return Signature.of(graph_text(case)).inputs


def write(changed: Changed, output: Path) -> None:
    """Write the folder of a case, and the text of its issue."""
    import torch

    from t2n_core import ModelExport, TractNNEF

    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as temporary:
        x = torch.randn(changed.shape)
        result = ModelExport(changed.make().eval(), x).to(TractNNEF(RELEASE, offline=True), Path(temporary) / "model")
        case = TractCase.of(result.archive, result.samples[0], changed.title, level=TractCheckTolerance.SUPER)
        folder = write_tract_case(case, output / changed.name)
    script = folder / SCRIPT
    call = script.read_text("utf-8").replace(" -O ", f" {changed.flags} -O ")
    if changed.transform == "f32_to_f16":
        call = f"{call.rstrip()} --allow-float-casts\n"
    script.write_text(call, "utf-8", newline="\n")
    script.chmod(0o755)
    (output / f"{changed.name}.issue.md").write_text(_issue(changed, output), "utf-8", newline="\n")


def _issue(changed: Changed, output: Path) -> str:
    """Return the text for the maintainers."""
    engines = {version: engine_for(resolve_engines(version, offline=True)[0]) for version in TRIED}
    replies = {
        version: run_changed(changed, engine, output)
        for version, engine in engines.items()
        if isinstance(engine, TractEngine) and changed.transform in transforms_of(version)
    }
    ends = "\n".join(f"- {version}: {_end(reply)}" for version, reply in replies.items())
    message = replies[RELEASE].message.strip().replace(output.as_posix(), "")
    return f"""# {changed.title}

tract {RELEASE} computes this graph right, and refuses it after `{changed.flags}`:

```
{message}
```

```
{graph_text(output / changed.name).strip()}
```

{changed.why}

## Releases

{ends}

## Files

`{changed.name}`, in the form of `harness/nnef-test-cases`: `graph.nnef`, `io.npz`, `runme.sh`.

## Machine

{machine_text()}
"""


def _end(reply: EngineReply) -> str:
    if reply.stage == "load":
        return "does not know an operator of the graph"
    return "runs" if reply.status == "ok" else f"{reply.status} at {reply.stage}"


def main() -> int:
    """Write all cases."""
    try:
        for changed in CHANGED:
            write(changed, HERE)
    finally:
        close_all()
    return 0


if __name__ == "__main__":
    sys.exit(main())
