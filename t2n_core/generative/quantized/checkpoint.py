"""Read the files of a quantized checkpoint as tensors that a model of transformers takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from t2n_core.errors import InputError
from t2n_core.generative.quantized.formats import DROPPED, FORMATS, NEED_A_GPU, Format, Settings
from t2n_core.torch_graph.tensor_files import named_tensors


def quantization_of(config: Any) -> dict[str, Any] | None:
    """Return the quantization in a model's configuration, as a dict; None for a checkpoint without any.

    Raises InputError for a method that is not read here.
    """
    quantization = getattr(config, "quantization_config", None)
    if quantization is None:
        return None
    settings = dict(quantization) if isinstance(quantization, Mapping) else dict(quantization.to_dict())
    method = str(getattr(settings.get("quant_method"), "value", settings.get("quant_method")))
    if method in NEED_A_GPU:
        raise InputError(
            f"the checkpoint is quantized by {method}, which transformers loads on a GPU only",
            hint=f"use the original checkpoint; on a CPU {', '.join(FORMATS)} are read",
        )
    if method not in FORMATS:
        raise InputError(
            f"the checkpoint is quantized by {method}, which is not read here",
            hint=f"use the original checkpoint, or dequantize it and save it; {', '.join(FORMATS)} are read",
        )
    return {**settings, "quant_method": method}


def quantization_method(folder: Path) -> str | None:
    """Return the method by which the weights of a folder are quantized; None for weights as they are."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    settings = config.get("quantization_config")
    return settings.get("quant_method") if isinstance(settings, Mapping) else None


def dequantize_checkpoint(folder: Path, settings: Settings) -> dict[str, torch.Tensor]:
    """Return all tensors of a checkpoint by name, quantized weights in float32, the others as they are.

    `settings` are from `quantization_of`. Raises InputError for a weight without a part that its format needs.
    """
    files, weights, used = named_tensors(folder), dict[str, torch.Tensor](), set[str]()
    for weight_format in FORMATS[settings["quant_method"]]:
        for stem in [name.removesuffix(weight_format.mark) for name in files if name.endswith(weight_format.mark)]:
            names = {end: stem + end for end in weight_format.parts if stem + end in files}
            used.update(names.values())
            weights[stem + weight_format.weight] = _read(
                weight_format, {end: files[name] for end, name in names.items()}, stem, settings
            )
    if not weights:
        raise InputError(f"{folder} holds no weight in the format {settings['quant_method']}")
    return {**{name: files[name] for name in files if name not in used and not name.endswith(DROPPED)}, **weights}


def _read(weight_format: Format, parts: Mapping[str, torch.Tensor], stem: str, settings: Settings) -> torch.Tensor:
    try:
        return weight_format.read(parts, settings)
    except InputError as refused:
        raise InputError(f"{stem}: {refused.message}", hint=refused.hint) from refused
    except (KeyError, ValueError, IndexError, RuntimeError, json.JSONDecodeError) as cause:
        raise InputError(
            f"{stem} cannot be read as {settings['quant_method']}: {type(cause).__name__}: {cause}",
            hint=f"its tensors: {', '.join(f'{end} {tuple(part.shape)}' for end, part in parts.items())}",
        ) from cause
