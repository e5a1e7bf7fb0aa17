"""Exports a small model when it is imported: what the first export of a process loads takes half a second."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from t2n_core import ModelExport, TractNNEF
from t2n_core.engine.provision.known import newest_of_lines

with TemporaryDirectory() as folder, torch.random.fork_rng():
    export = ModelExport(torch.nn.Linear(3, 2), (torch.randn(5, 3),), dynamic_axes={"input": {0: "B"}})
    export.to(TractNNEF(newest_of_lines()[-1], check_io=False), Path(folder) / "model.nnef.tar")
