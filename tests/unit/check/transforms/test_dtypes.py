"""Samples in the float types of a transformed model; other types stay as they are."""

from __future__ import annotations

import numpy as np

from t2n_core.check.transforms.dtypes import answered_dtypes, given_dtypes
from t2n_core.check.transforms.interface import Port
from t2n_core.parity.samples import Sample

X = np.array([[1.0, 1e6]], np.float32)
IDS = np.arange(2)


def test_expected_outputs_have_the_float_type_of_the_answer() -> None:
    exact = np.array([[1.0 + 1e-9, 2.0]])
    (sample,) = answered_dtypes([Sample((), (X,), original=(exact,))], [(X.astype(np.float16),)])
    assert sample.expected[0].dtype == np.float16
    np.testing.assert_array_equal(sample.expected[0], exact.astype(np.float16))


def test_an_answer_of_another_kind_stays_a_mismatch() -> None:
    (sample,) = answered_dtypes([Sample((), (X,))], [(X.astype(np.int32),)])
    assert sample.expected[0].dtype == np.float32


def test_a_missing_output_stays_expected() -> None:
    (sample,) = answered_dtypes([Sample((), (X, IDS))], [(X,)])
    assert len(sample.expected) == 2


def test_floats_alone_are_given_in_the_types_of_the_model() -> None:
    ports = [Port.of("x", "1,2,f16"), Port.of("ids", "2,i32")]
    sample = given_dtypes(Sample((X, IDS), ()), ports)
    assert [array.dtype for array in sample.inputs] == [np.float16, IDS.dtype]
    assert np.isinf(sample.inputs[0][0, 1])
