"""The operators of tract_onnx that have no counterpart elsewhere in the dialect."""

from t2n_core.dialect.meaning.onnx import detection, lookup, trees

__all__ = ["detection", "lookup", "trees"]
