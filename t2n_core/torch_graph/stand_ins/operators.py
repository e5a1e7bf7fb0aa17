"""Define operators of this package: a schema, the shapes of the results for capture, and their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def define(library: Any, schema: str, shapes: Callable[..., Any], compute: Callable[..., Any] | None = None) -> None:
    """Define an operator; `shapes` returns empty results, `compute` the real ones.

    `shapes` runs on fake tensors, not as a kernel for the meta device: a kernel that reads data (`.item()`) would leave
    PyTorch's dispatcher in a state in which nothing can be captured any more.
    """
    name = schema.partition("(")[0]
    library.define(schema)
    torch.library.register_fake(f"{library.ns}::{name}", shapes, lib=library)
    if compute is not None:
        library.impl(name, compute, "CPU")


__all__ = ["define"]
