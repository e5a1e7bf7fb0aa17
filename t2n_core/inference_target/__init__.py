"""Targets: the engines and standards for which archives are written."""

from t2n_core.inference_target.base import InferenceTarget
from t2n_core.inference_target.khronos import KhronosNNEF
from t2n_core.inference_target.tract import TractFeatureFlag, TractNNEF

__all__ = ["InferenceTarget", "KhronosNNEF", "TractFeatureFlag", "TractNNEF"]
