"""Names of tensors: module path and operator, so that a reader can find an operation's place in the model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from t2n_core.errors import Origin
from t2n_core.text import source_in_trace

ROOT = "t2n_model"
"""Name of the model as a submodule of the captured module; it is removed from all names again."""
_HERE = str(Path(__file__).parents[1])
"""Folder of this package: a capture runs its overrides, and none of their lines are the model's."""
ORIGIN = "t2n_origin"
"""Key of an annotation with (module path, source line), for nodes whose Python stack is not the model's."""


def without_root(name: str) -> str:
    """Return a name as the user's model has it."""
    return "" if name == ROOT else name.removeprefix(f"{ROOT}.")


def kind_of(target: Any) -> str:
    """Return the kind of an operator, `aten::add.Tensor`; the overload `default` is left out."""
    schema = target._schema
    return str(schema.name) + (f".{schema.overload_name}" if schema.overload_name else "")


def module_path_of(meta: dict[str, Any]) -> str:
    stack = meta.get("nn_module_stack") or {}
    paths = [path for path, _ in stack.values() if not path.startswith("_empty_nn_module_stack")]
    return without_root(str(paths[-1])) if paths else ""


def origin_of(kind: str, meta: dict[str, Any]) -> Origin:
    """Return the origin of a node of the captured graph: the innermost line outside PyTorch, if there is one."""
    noted = (meta.get("custom") or {}).get(ORIGIN)
    if noted is not None:
        return Origin(kind, *noted)
    return Origin(kind, module_path_of(meta), source_in_trace(meta.get("stack_trace") or "", [_HERE]))


def scope_name(kind: str, module_path: str) -> str:
    """Return the stem of the names of a node's tensors: `encoder_conv1_conv1d`."""
    operator = kind.split("::")[-1].split(".")[0]
    stem = re.sub(r"\W+", "_", f"{module_path}_{operator}" if module_path else operator).strip("_")
    return stem if re.match(r"[A-Za-z]", stem) else f"m{stem}"
