"""Find the folder of a model in the cache of the Hugging Face hub, without any network.

A model's folder there is `models--OWNER--NAME`: `refs/REVISION` holds the commit, and `snapshots/COMMIT` the files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from t2n_core.errors import InputError

_BRANCH: Final = "main"


def model_folder(source: str | Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder with the files of a model.

    `source` is that folder, a model's folder in a hub's cache, or a name such as `owner/name` or `owner/name@revision`,
    which is looked up in the cache that HF_HUB_CACHE or HF_HOME names. Raises InputError.
    """
    folder = Path(source)
    if (folder / "snapshots").is_dir():
        return _snapshot(folder, _BRANCH)
    if folder.is_dir():
        return folder
    name, _, revision = str(source).partition("@")
    parts = name.split("/")
    if len(parts) > 2 or not all(part.strip(".") for part in parts):
        raise InputError(f"there is no folder {source}")
    cached = hub_cache(environment) / "--".join(("models", *parts))
    if not cached.is_dir():
        raise InputError(
            f"there is no folder {source}, and no model of this name in {cached.parent}",
            hint="nothing is downloaded: `hf download NAME` puts a model there, and HF_HOME names another place",
        )
    return _snapshot(cached, revision or _BRANCH)


def hub_cache(environment: Mapping[str, str]) -> Path:
    """Return the folder of the hub's cache by the variables of huggingface_hub."""
    if cache_path := environment.get("HF_HUB_CACHE"):
        return Path(cache_path).expanduser()
    home = environment.get("HF_HOME") or Path(environment.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(home).expanduser() / "hub"


def _snapshot(cached: Path, revision: str) -> Path:
    """Return the snapshot of a branch, tag or commit. Raises InputError."""
    reference = cached / "refs" / revision
    commit = reference.read_text("utf-8").strip() if reference.is_file() else revision
    folder = cached / "snapshots" / commit
    if not folder.is_dir():
        snapshots = sorted(path.name for path in (cached / "snapshots").glob("*"))
        hint = f"it has {', '.join(snapshots)}" if snapshots else "no file of the model was downloaded"
        raise InputError(f"{cached} has no snapshot of {revision}", hint=hint)
    return folder
