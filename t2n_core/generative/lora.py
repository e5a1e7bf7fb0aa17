"""Merge an adapter, in the files of PEFT, into the weights of a model: each weight becomes W + factor * B A."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from t2n_core.errors import InputError
from t2n_core.torch_graph.tensor_files import named_tensors

CONFIG: Final = "adapter_config.json"
_FILES: Final = ("adapter_model.safetensors", "adapter_model.bin")
_PREFIX: Final = "base_model.model."
_PAIRS: Final = {".lora_A.weight": ".lora_B.weight", ".lora_embedding_A": ".lora_embedding_B"}
"""The ends of the names of a pair's first and second matrix."""


def merge_adapter(model: nn.Module, folder: Path) -> int:
    """Merge the adapter of a folder into a model, and return the number of its weights that changed.

    The sum is computed in float32, and stored in the dtype of the weight.

    Raises InputError for an adapter that is no plain LoRA, or that does not fit the model.
    """
    config, tensors = _files(folder)
    factors = _Factors(config)
    modules, remaining, changed = dict(model.named_modules()), dict(tensors), dict[str, torch.Tensor]()
    for name in tensors:
        first = next((end for end in _PAIRS if name.endswith(end)), None)
        if first is None:
            continue
        path = name.removesuffix(first).removeprefix(_PREFIX)
        other = name.removesuffix(first) + _PAIRS[first]
        if other not in tensors or path not in modules:
            raise InputError(f"the adapter of {folder} does not fit: {_lacking(path, other, modules)}")
        low, high = (remaining.pop(key).float() for key in (name, other))
        product = factors.of(path, low.shape[0]) * (high @ low)
        is_transposed = "embedding" in first or type(modules[path]).__name__ == "Conv1D"
        changed[f"{path}.weight"] = product.T if is_transposed else product
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for path, difference in changed.items():
        weight = parameters[path]
        if weight.shape != difference.shape:
            raise InputError(f"the adapter has {path} of {tuple(difference.shape)}, the model {tuple(weight.shape)}")
        _replace(parameters, path, weight.float() + difference)
    for name, tensor in remaining.items():  # layers that were trained whole
        path = name.removeprefix(_PREFIX).replace(".modules_to_save.default.", ".")
        if path not in parameters or parameters[path].shape != tensor.shape:
            raise InputError(f"the adapter of {folder} has {name}, which the model has no place for")
        _replace(parameters, path, tensor)
        changed[path] = tensor
    return len(changed)


class _Factors:
    """The factors of the products, by the layer."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._alpha, self._by_root = float(config["lora_alpha"]), bool(config.get("use_rslora"))
        self._patterns: Mapping[str, float] = config.get("alpha_pattern") or {}

    def of(self, path: str, rank: int) -> float:
        """Return the factor of a layer."""
        matching_alphas = (alpha for key, alpha in self._patterns.items() if re.match(rf"(.*\.)?({key})$", path))
        return float(next(matching_alphas, self._alpha)) / (math.sqrt(rank) if self._by_root else rank)


def _files(folder: Path) -> tuple[dict[str, Any], Mapping[str, torch.Tensor]]:
    """Return the configuration of an adapter and its tensors. Raises InputError."""
    file = next((folder / name for name in _FILES if (folder / name).is_file()), None)
    if file is None or not (folder / CONFIG).is_file():
        raise InputError(f"{folder} holds no adapter", hint=f"{CONFIG} and {_FILES[0]}, as PEFT saves them")
    try:
        config: dict[str, Any] = json.loads((folder / CONFIG).read_text("utf-8"))
    except ValueError as cause:
        raise InputError(f"{folder / CONFIG} cannot be read: {cause}") from cause
    kind = config.get("peft_type")
    special = [name for name in ("use_dora", "lora_bias", "use_qalora") if config.get(name)]
    if kind != "LORA" or special or "lora_alpha" not in config:
        raise InputError(
            f"the adapter of {folder} is {', '.join([str(kind), *special])}, and plain LORA is merged",
            hint="merge it with PEFT: model.merge_and_unload().save_pretrained(FOLDER)",
        )
    tensors = named_tensors(file)
    if not tensors:
        raise InputError(f"{file} holds no tensors")
    return config, tensors


def _replace(parameters: Mapping[str, nn.Parameter], path: str, value: torch.Tensor) -> None:
    """Give a parameter a new value, in new memory: the old one may be a mapped file."""
    weight = parameters[path]
    tied = [name for name, other in parameters.items() if other is weight and name != path]
    if tied:
        raise InputError(f"the adapter changes {path}, which the model shares with {tied[0]}")
    weight.data = value.to(weight.dtype)


def _lacking(path: str, other: str, modules: Mapping[str, nn.Module]) -> str:
    return f"{other} is missing" if path in modules else f"the model has no layer {path}"
