"""Exports of the suite `int8`, and what each of its nets has to hold."""

from __future__ import annotations

import importlib
import importlib.util
import zlib
from functools import lru_cache
from typing import Any

import torch

from conformance.cases.int8.case import Int8Net, packing, rms, spread_of, step_of
from t2n_core import ModelExport

CHOSEN = (
    "linear", "linear-relu", "linear-qnnpack", "conv1d", "conv2d-settings", "conv2d-relu", "conv2d-fbgemm",
    "conv2d-qnnpack", "add", "mul", "cat", "moves", "activations", "norms", "small_cnn", "fx", "dynamic-x86",
    "dynamic-lstm", "dynamic-gru", "embeddings", "pt2e-mlp", "pt2e-cnn", "torchvision-googlenet",
)  # fmt: skip
"""Nets in which every kind of layer, engine and frontend occurs."""


def all_nets(*, complete: bool = True) -> dict[str, Int8Net]:
    """Return the nets by name; torchvision's where it is installed."""
    families = ["layers", "nets", "pt2e"]
    if importlib.util.find_spec("torchvision") is not None:
        importlib.import_module("conformance.cases.models.libraries")  # before the library itself
        families.append("vision")
    nets: dict[str, Int8Net] = {}
    for family in families:
        nets |= importlib.import_module(f"conformance.cases.int8.{family}").CASES
    return nets if complete else {name: net for name, net in nets.items() if name in CHOSEN}


@lru_cache(maxsize=1)
def export_of(name: str, capture: Any = "export", *, fixed: bool = False) -> tuple[ModelExport, dict[str, Any]]:
    """Return the export of a net, and the words of its judgement. Captured once for all engines of tract.

    `fixed` leaves no axis dynamic.
    """
    net = all_nets()[name]
    seed = zlib.crc32(name.encode())
    torch.manual_seed(seed)
    with packing(net.engine):
        model, inputs = net.build()
        axes = {} if net.axes is None or fixed else {"dynamic_axes": net.axes}
        export = ModelExport(model, inputs, capture=capture, **axes)
        _ = export.captured  # by the formulas of the engine in force
        if net.level:
            return export, {"tolerance": net.level}
        if net.spread:
            return export, {"metric": {"rms": rms}, "bound": {"rms": spread_of(net.build, seed)}}
        return export, {"atol": 1.01 * (net.step or step_of(model, inputs)), "rtol": 0.0}
