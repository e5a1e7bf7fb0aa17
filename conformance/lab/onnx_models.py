"""ONNX files in the libraries of tract's wheels, which all hold its ONNX reader."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from t2n_core.engine.tract.driver import TractDriver, TractModel
from t2n_core.errors import EngineLoadError, EngineOptimiseError


def load_onnx(driver: TractDriver, path: Path) -> TractModel:
    """Raises EngineLoadError, and EngineOptimiseError where the types and shapes cannot be inferred."""
    onnx, inference, model = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    driver.check(driver.function("tract_onnx_create")(ctypes.byref(onnx)), EngineLoadError)
    load = driver.function("tract_onnx_load", "tract_onnx_model_for_path")
    driver.check(load(onnx, os.fsencode(path), ctypes.byref(inference)), EngineLoadError)
    typed = driver.function("tract_inference_model_into_model", "tract_inference_model_into_typed")
    driver.check(typed(ctypes.byref(inference), ctypes.byref(model)), EngineOptimiseError)
    return TractModel(driver, model)
