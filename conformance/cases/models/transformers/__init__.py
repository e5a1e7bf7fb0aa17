"""Architectures of transformers: language models, encoders, speech, vision, text with pictures, time series."""

from __future__ import annotations

from conformance.cases.models.transformers import decoders, encoders, mixed, speech, vision

CASES = {**decoders.CASES, **encoders.CASES, **speech.CASES, **vision.CASES, **mixed.CASES}
