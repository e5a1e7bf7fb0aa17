"""Speed in the engine: our archives and the peers', in the same engines, and PyTorch on one thread."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from conformance.lab.archives import time_in_process
from conformance.lab.measure.nets.groups import GROUPS, Net
from conformance.lab.measure.peers.process import Worker
from conformance.lab.processes import ask_module
from t2n_core import ModelExport, TractNNEF
from t2n_core.engine import ResolvedEngine, resolve_engines
from t2n_core.torch_graph.frontend.results import tensors_of

BUDGET = 60.0
"""Seconds that a peer gets for one archive."""
ENDINGS = {"peer": ".nnef.tgz", "onnx": ".onnx"}
"""Of what torch-to-nnef and torch.onnx write."""


def save_arrays(net: Net, folder: Path) -> Path:
    """Save the input and what PyTorch computes, and return the file."""
    model, x = net.build()
    with torch.inference_mode():
        outputs = tensors_of(model(x))
    path = folder / f"{net.name}.npz"
    np.savez(path, input0=x.numpy(), **{f"output{i}": o.numpy() for i, o in enumerate(outputs)})
    return path


def archive_figures(archive: Path) -> dict[str, int]:
    """Size of the file; of an NNEF archive, the statements of its graph."""
    if archive.suffix == ".onnx":
        return {"bytes": archive.stat().st_size}
    with tarfile.open(archive) as members:
        member = next(m for m in members if m.name.endswith("graph.nnef"))
        text = members.extractfile(member)
        assert text is not None
        graph = text.read().decode().partition("\ngraph ")[2]
    return {"bytes": archive.stat().st_size, "statements": len(re.findall(r"(?<![<>=!])=(?!=)[^;]*;", graph))}


def export_all(
    nets: Sequence[Net], engine: ResolvedEngine, folder: Path, peers: Mapping[str, Worker]
) -> dict[str, dict[str, Any]]:
    """{net: {exporter: archive, or error}}."""
    archives: dict[str, dict[str, Any]] = {}
    for net in nets:
        model, x = net.build()
        ours = folder / f"{net.name}-ours.nnef.tgz"
        export = ModelExport(model, (x,), input_names=["input"], dynamic_axes=net.dynamic_axes("input"))
        export.to(TractNNEF(engine.version, check_io=False, engine=engine), ours)
        archives[net.name] = {"ours": ours}
        for who, peer in peers.items():
            # what torch.onnx writes is the same for all engines
            path = (folder.parent if who == "onnx" else folder) / f"{net.name}-{who}{ENDINGS[who]}"
            if path.exists():
                archives[net.name][who] = path
                continue
            answer = peer.ask("nets", BUDGET, net=net.name, release=engine.version, path=str(path))
            archives[net.name][who] = answer.get("error") or path
    return archives


def measure(
    group: str, spec: str, folder: Path, peers: Mapping[str, Worker], rounds: int, say: Callable[[str], None]
) -> Iterator[list[dict[str, Any]]]:
    """Yield for one engine after the other an entry per net: figures of ours, the peers' and torch's, and sizes."""
    nets = GROUPS[group]
    of_torch = ask_module("conformance.lab.measure.engine.torch_timing", group)
    arrays = {net.name: save_arrays(net, folder) for net in nets}
    for engine in resolve_engines(spec):
        entries = []
        say(f"{group} in tract {engine.version}")
        here = folder / group / engine.version
        here.mkdir(parents=True)
        archives = export_all(nets, engine, here, peers)
        cases = [
            {
                "name": name,
                "arrays": str(arrays[name]),
                "archives": {n: str(a) for n, a in both.items() if isinstance(a, Path)},
            }
            for name, both in archives.items()
        ]
        for answer in time_in_process(engine, cases, rounds):
            name, figures = answer["name"], answer["archives"]
            for exporter, archive in archives[name].items():
                if isinstance(archive, Path):
                    figures.setdefault(exporter, {}).update(archive_figures(archive))
                else:
                    figures[exporter] = {"error": archive}
            entries.append({"net": name, "engine": engine.version, **figures, "torch": of_torch[name]})
        yield entries
