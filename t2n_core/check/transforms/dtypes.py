"""Samples in the float types of a transformed model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from t2n_core.check.transforms.interface import Port
from t2n_core.parity.samples import Array, Sample


def answered_dtypes(samples: Sequence[Sample], outputs: Sequence[Sequence[Array]]) -> list[Sample]:
    """Return the samples with expected outputs in the float types of the transformed model's answers."""
    typed_samples = []
    for sample, got in zip(samples, outputs, strict=True):
        reference = sample.reference
        pairs = zip(sample.expected, reference, got, strict=False)
        expected = tuple(_like(near, exact, answer) for near, exact, answer in pairs)
        typed_samples.append(replace(sample, expected=expected + sample.expected[len(expected) :]))
    return typed_samples


def _like(expected: Array, exact: Array, got: Array) -> Array:
    if expected.dtype == got.dtype or expected.dtype.kind != "f" or got.dtype.kind != "f":
        return expected
    with np.errstate(over="ignore"):
        return exact.astype(got.dtype)


def given_dtypes(sample: Sample, ports: Sequence[Port]) -> Sample:
    """Return a sample with its floats in the types of the model's inputs."""
    with np.errstate(over="ignore"):
        inputs = tuple(
            array.astype(port.dtype)
            if port.dtype is not None and port.dtype.kind == array.dtype.kind == "f" and port.dtype != array.dtype
            else array
            for array, port in zip(sample.inputs, ports, strict=True)
        )
    return replace(sample, inputs=inputs)
