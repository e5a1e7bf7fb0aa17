"""What an archive becomes in the engine: the operators of the optimised graph, from the engine's own profile."""

from __future__ import annotations

import ctypes as c
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from conformance.lab.onnx_models import load_onnx
from t2n_core.engine.tract.driver import TractDriver, TractModel
from t2n_core.errors import EngineOptimiseError


def load(driver: TractDriver, archive: Path) -> TractModel:
    """NNEF or ONNX, by the file's ending."""
    return load_onnx(driver, archive) if archive.suffix == ".onnx" else driver.load(archive)


def operators(driver: TractDriver, archive: Path) -> dict[str, int]:
    """{operator: how often}, without inputs and constants. Raises EngineError."""
    model = load(driver, archive)
    if profile := driver.find("tract_model_profile_json"):  # up to 0.22 a model is profiled, then a runnable
        driver.check(driver.function("tract_model_optimize")(model.pointer), EngineOptimiseError)
        states = (None, c.c_size_t(0)) if driver.find("tract_state_get_states") else ()
        text = driver.text(profile, model.pointer, None, *states)
    else:
        runnable = model.into_runnable(optimise=True)
        text = driver.text(driver.function("tract_runnable_profile_json"), runnable.pointer, None)
    return count_operators(json.loads(text))


def count_operators(profile: dict[str, Any]) -> dict[str, int]:
    """Names without what they are specialised for."""
    names = [re.split(r"[ <(\[]", node["op_name"])[0] for node in profile["nodes"]]
    return dict(Counter(name for name in names if name not in ("Source", "Const")).most_common())
