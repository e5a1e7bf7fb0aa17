"""A model as a test that can be pasted into a file."""

from __future__ import annotations

from conformance.lab.fuzz.program import LENGTHS, MASK, NORMAL, SCRIPT, TRACE, Input, Program, Sizes
from conformance.lab.fuzz.verdict import Verdict

_HEAD = """import math

import torch
import torch.nn.functional as F
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.parity.check import check_parity
from t2n_core.parity.request import CheckRequest

"""


def snippet(program: Program, verdict: Verdict) -> str:
    """Return the model, its example, and a test at the sizes where it fails."""
    inputs = ", ".join(f'"{spec.name}": {_drawn(spec, program.example)}' for spec in program.inputs)
    model = "torch.jit.script(model)" if program.way == SCRIPT else "model"
    way = ', capture="trace"' if program.way == TRACE else ""
    failing = list(verdict.failing)[:6] or [program.example]
    sizes = ", ".join(str(dict(symbol_sizes)) for symbol_sizes in failing)
    version = verdict.engine.split()[-1]
    message_lines = verdict.message.splitlines()
    return "\n".join(
        [
            f"# seed {program.seed}: {verdict.status} on {verdict.engine}, by {program.way} at {dict(program.example)}",
            *(f"#   {line}" for line in message_lines[:6]),
            _HEAD,
            program.source,
            "",
            "def test_model(tmp_path):",
            f"    torch.manual_seed({program.seed})",
            "    model = Model().eval()",
            "    for parameter in model.parameters():",
            "        nn.init.normal_(parameter, 0, 0.4)",
            f"    example = {{{inputs}}}",
            f"    export = ModelExport({model}, example, dynamic_axes={program.axes}{way})",
            f'    target = TractNNEF("{version}", offline=True, check_io=False)',
            '    result = export.to(target, tmp_path / "m.tar")',
            f"    samples = [result.sample_at(sizes) for sizes in [{sizes}]]",
            "    check_parity(target.engine(), CheckRequest(result.archive, samples)).raise_for_failure()",
            "",
        ]
    )


def _drawn(spec: Input, example: Sizes) -> str:
    """Return the expression that draws an input of the example."""
    shape = spec.shape(example)
    if spec.zeros:
        dtype = {NORMAL: "float", MASK: "bool"}.get(spec.kind, "long")
        return f"torch.zeros({shape}, dtype=torch.{dtype})"
    if spec.kind == NORMAL:
        return f"torch.randn({shape})"
    if spec.kind == MASK:
        return f"torch.rand({shape}) < 0.7"
    first = 1 if spec.kind == LENGTHS else 0
    return f"torch.randint({first}, {example.get(spec.of, 1) + first}, {shape})"
