"""torchvision and torchaudio next to a CPU build of torch: their compiled parts, built against CUDA, stay unloaded.

The registry's wheels link libtorch_cuda, which a CPU build does not have. The models in them are plain Python; only two
operators of torchvision must exist for the import, and torchaudio must believe that it came without its library.
Import this module before either of them.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import torch


def _declare_box_selection() -> torch.library.Library:
    """Declare the signatures of box selection only: no model of the suite runs it."""
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")  # type: ignore[no-untyped-call]
    return library


def _leave_out_torchaudio_library() -> None:
    package = importlib.util.find_spec("torchaudio")
    if package is None or not package.submodule_search_locations:
        return
    name = "torchaudio._extension.utils"
    file = Path(package.submodule_search_locations[0]) / "_extension" / "utils.py"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    module._load_lib = lambda lib: False  # type: ignore[attr-defined]


if torch.version.cuda is None:
    if importlib.util.find_spec("torchvision") is not None:
        _TORCHVISION = _declare_box_selection()  # kept: the declaration lives as long as the object
    _leave_out_torchaudio_library()
