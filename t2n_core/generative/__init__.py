"""Models that generate tokens: their archives, what lies beside them, and the proof of what they generate."""

from __future__ import annotations

from t2n_core.extras import importing

with importing("t2n_core.generative"):
    from t2n_core.generative.export import GenerativeExport, export_generative
    from t2n_core.generative.result import GenerativeResult

__all__ = ["GenerativeExport", "GenerativeResult", "export_generative"]
