"""Transforms of a model in the worker, and whether each of them changed it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2n_core.engine.tract.driver import TractDriver, TractModel
from t2n_core.engine.tract.profile_job import Send
from t2n_core.errors import EngineError
from t2n_core.files import archive_digest


def apply_transforms(driver: TractDriver, model: TractModel, header: Mapping[str, Any]) -> TractModel:
    """Return the model after the transforms of a job. Raises EngineError."""
    _settle(model)
    for step in header["transforms"]:
        model = _after(driver, model, step, Path(header["scratch"]))
    return model


def _after(driver: TractDriver, model: TractModel, step: Mapping[str, Any], scratch: Path) -> TractModel:
    """Return the model after one step: the `text` that the library takes, None for a round trip."""
    if step["text"] is None:
        folder = scratch / "trip"
        try:
            driver.write(model, folder)
            model = driver.load(folder)
        except EngineError as error:  # whose message names a folder that no longer exists
            raise type(error)(str(error).replace(str(folder), "the written model")) from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    elif step["of_registry"]:
        driver.transform_of_registry(model, step["text"])
    else:
        model.transform(step["text"])
    _settle(model)
    return model


def _settle(model: TractModel) -> None:
    """Declutter a model until it no longer changes; from 0.23 on, a transform does that too.

    Raises EngineOptimiseError.
    """
    if model.can_declutter:
        model.declutter()
    else:
        model.set_symbols({})


def run_transforms(driver: TractDriver, header: Mapping[str, Any], send: Send, stage: Any) -> None:
    """Load the archive, apply the transforms, and send the facts of the interface with whether each changed the model.

    A step that `begins` with other transforms is compared with the model after those. Raises EngineError.
    """
    with stage("load"):
        model = driver.load(Path(header["archive"]))
        facts: dict[str, Any] = {**model.facts(), "registries": driver.registries}
    with stage("optimise"):
        changed: list[bool | None] = []
        scratch = Path(header["scratch"])
        _settle(model)
        seen = _model_digest(driver, model, scratch / "dump")
        for step in header["transforms"]:
            for text in step["begins"]:
                model.transform(text)
            if step["begins"]:
                seen = _model_digest(driver, model, scratch / "dump")
            model = _after(driver, model, step, scratch)
            now = _model_digest(driver, model, scratch / "dump")
            changed.append(True if step["text"] is None else _differ(seen, now))
            seen = now
        send({"event": "facts", "facts": {**facts, "changed": changed, "transformed": model.facts()}})
        model.into_runnable(optimise=True)


def _differ(before: tuple[str, bool], after: tuple[str, bool]) -> bool | None:
    """Return whether two models differ; None if the engine can write neither."""
    if before != after:
        return True
    return False if after[1] else None


def _model_digest(driver: TractDriver, model: TractModel, folder: Path) -> tuple[str, bool]:
    """Return a digest of the model as the engine writes it and True; or the interface, the error and False."""
    try:
        driver.write(model, folder)
        return archive_digest(folder)[0], True
    except EngineError as error:
        return f"{model.facts()} {error}", False
    finally:
        shutil.rmtree(folder, ignore_errors=True)
