"""A right exporter of an imaginary package, and three that are wrong: at one size, in a used State, in their names."""

from __future__ import annotations

from t2n_core.engine.provision.store import default_cache_dir

CACHE = f"--t2n-cache-dir={default_cache_dir()}"
"""Looked up now: pytester gives each test a home without engines."""

TOY = """
from t2n_core import Exporter, ModelExport, TractNNEF


class Toy(Exporter):
    name = "toy"

    def export(self, request):
        self.write(request, list(request.input_names), list(request.output_names))

    def write(self, request, inputs, outputs):
        model, tensors = request.flat()
        places = dict(zip(request.input_names, inputs))
        axes = {places[name]: dict(of) for name, of in request.dynamic_axes.items()}
        export = ModelExport(model, tensors, dynamic_axes=axes, input_names=inputs, output_names=outputs)
        export.to(TractNNEF(request.release, check_io=False), request.path)


def pytest_t2n_exporters(config):
    return [Toy]
"""
"""A conftest.py."""

FAULTS = (
    TOY.replace("return [Toy]", "return [Toy, ToySizes, ToyState, ToyNames]")
    + """

import io
import tarfile


class ToySizes(Toy):
    name = "toy-sizes"

    def export(self, request):
        request.model.limit = 6
        super().export(request)


class ToyState(Toy):
    name = "toy-state"

    def export(self, request):
        super().export(request)
        with tarfile.open(request.path) as archive:
            files = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
        once = files["graph.nnef"].replace(b"reset_every_turn = 1", b"reset_every_turn = 0")
        assert once != files["graph.nnef"]
        files["graph.nnef"] = once
        with tarfile.open(request.path, "w:gz") as archive:
            for name, data in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))


class ToyNames(Toy):
    name = "toy-names"

    def export(self, request):
        inputs = [f"in{i}" for i, _ in enumerate(request.input_names)]
        self.write(request, inputs, [f"out{i}" for i, _ in enumerate(request.output_names)])
"""
)
"""The same with three that are wrong."""

NET = """
import pytest
import torch
from torch import nn


class Last(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.limit = nn.GRU(3, 4), None

    def forward(self, audio):
        return self.gru(audio[: self.limit])[1]


def last():
    return Last().eval(), {"audio": torch.randn(5, 1, 3)}


"""
"""The beginning of a file of tests: the model that all of these exporters write."""

TEST = (
    NET
    + """
@pytest.mark.nnef_export(dynamic_axes={"audio": {0: "T"}})
def test_last():
    return last()
"""
)
