"""Boxes that remain."""

import numpy as np
import pytest

from t2n_core.dialect.meaning.onnx.detection import non_max_suppression


def test_the_threshold_of_the_overlap_is_between_0_and_1() -> None:
    boxes, scores = np.array([[[0.0, 0, 1, 1], [0, 0, 1, 1]]]), np.array([[[0.5, 0.75]]])
    assert non_max_suppression(boxes, scores, 2, 0.5).tolist() == [[0, 0, 1]]
    with pytest.raises(ValueError, match=r"is -0\.5, not between 0 and 1"):
        non_max_suppression(boxes, scores, 2, -0.5)
