"""A model's lists and dicts stay the very objects they are: torch.export leaves equal copies in their places."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def containers_kept(model: torch.nn.Module) -> Iterator[None]:
    """Afterwards every attribute that held a list, tuple, dict or set holds that object again."""
    held = [
        (vars(module), name, value)
        for module in model.modules()
        for name, value in vars(module).items()
        if isinstance(value, list | tuple | dict | set)
    ]
    try:
        yield
    finally:
        for attributes, name, value in held:
            if name in attributes and attributes[name] is not value:
                attributes[name] = value
