"""Targets: the engines and standards for which archives are written."""

from typing import Any

from t2n_core.entry_points import load_entry_points
from t2n_core.errors import InputError
from t2n_core.inference_target.base import InferenceTarget
from t2n_core.inference_target.khronos import KhronosNNEF
from t2n_core.inference_target.tract import TractFeatureFlag, TractNNEF
from t2n_core.inference_target.version import SemanticVersion


def target_class(name: str) -> type[InferenceTarget]:
    """Return the target class of a name, from this or another package. Raises InputError."""
    targets: dict[str, Any] = {"tract": TractNNEF, "khronos": KhronosNNEF, **load_entry_points("t2n.targets")}
    target = targets.get(name)
    if target is None:
        raise InputError(f"there is no target `{name}`; there are {', '.join(targets)}")
    if not isinstance(target, type) or not issubclass(target, InferenceTarget):
        raise InputError(f"`{name}` of t2n.targets is {target!r}, not a subclass of InferenceTarget")
    return target


def require_target(value: object) -> None:
    """Raise InputError if a value is not a target, such as the name of one."""
    if not isinstance(value, InferenceTarget):
        raise InputError(
            f"the target is {value!r}, not an InferenceTarget", hint='use TractNNEF("0.23") or KhronosNNEF()'
        )


__all__ = [
    "InferenceTarget",
    "KhronosNNEF",
    "SemanticVersion",
    "TractFeatureFlag",
    "TractNNEF",
    "require_target",
    "target_class",
]
