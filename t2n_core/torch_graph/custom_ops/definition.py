"""Custom operators that replace PyTorch's in a capture: a schema, the shapes of the results, their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from t2n_core.torch_graph.compat.operators import operator

NAMESPACE = "t2n_capture"
library = torch.library.Library(NAMESPACE, "DEF")  # type: ignore[no-untyped-call]


def define(library: Any, schema: str, shapes: Callable[..., Any], compute: Callable[..., Any] | None = None) -> None:
    """Define an operator; `shapes` returns empty results, `compute` the real ones.

    `shapes` runs on fake tensors, not as a kernel for the meta device: such a kernel that reads data (`.item()`) leaves
    PyTorch's dispatcher in a state in which all later captures fail.
    """
    name = schema.partition("(")[0]
    library.define(schema)
    torch.library.register_fake(f"{library.ns}::{name}", shapes, lib=library)
    if compute is not None:
        library.impl(name, compute, "CPU")


def aten_equivalent(target: Any) -> Any:
    """Return the aten operator that a custom operator replaces; an operator without one as it is."""
    name = target._schema.name.partition("::")[2]
    if target.namespace != NAMESPACE or name in ("pack", "pad", "module_call") or name.endswith("_masked"):
        return target
    packet = operator(f"aten::{name.removesuffix('_data')}")
    if "default" in packet.overloads():
        return packet.default
    return packet.data if name.endswith("_data") else packet.input
