"""Models that generate tokens: their archives, the files beside them, and the check of their tokens."""

from __future__ import annotations

from t2n_core.extras import importing

with importing("t2n_core.generative"):
    from t2n_core.generative.export import GenerativeExport, export_generative
    from t2n_core.generative.result import GenerativeResult

__all__ = ["GenerativeExport", "GenerativeResult", "export_generative"]
