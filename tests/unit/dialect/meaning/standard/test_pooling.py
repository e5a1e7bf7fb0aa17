"""Windows of several sizes, and their transposes."""

from __future__ import annotations

import numpy as np

from t2n_core.dialect.meaning.standard.pooling import box, debox, desample, max_pool, rms_pool, sample

LINE = np.asarray([[3.0, 4.0, 0.0, -12.0]])


def test_means() -> None:
    means = rms_pool(LINE, [1, 2], padding=[(0, 0), (0, 0)])
    np.testing.assert_allclose(means, np.sqrt([[12.5, 8.0, 72.0]]))
    assert box(LINE, [1, 2], stride=[1, 2], normalize=True).tolist() == [[3.5, -6.0]]
    assert box(LINE, [1, 2], padding=[(0, 0), (0, 0)], dilation=[1, 2]).tolist() == [[3.0, -8.0]]


def test_the_padding_of_a_maximum() -> None:
    assert max_pool(-LINE, [1, 3], "constant", [(0, 0), (2, 0)]).tolist() == [[0.0, 0.0, 0.0, 12.0]]
    assert max_pool(-LINE, [1, 3], "ignore", [(0, 0), (2, 0)]).tolist() == [[-3.0, -3.0, 0.0, 12.0]]


def test_debox() -> None:
    assert debox(LINE, [1, 2], padding=[(0, 0), (0, 0)]).tolist() == [[3.0, 7.0, 4.0, -12.0, -12.0]]
    assert debox(LINE, [1, 2], padding=[(0, 0), (1, 0)]).tolist() == [[7.0, 4.0, -12.0, -12.0]]
    result = debox(LINE, [1, 4], "constant", [(0, 0), (0, 3)], [1, 2], normalize=True)
    assert result.tolist() == [[0.75, 0.75, 1.75, 1.75, 1.0, 1.0, -3.0]]
    assert debox(np.ones((2, 1)), [3, 1], padding=[(0, 0), (0, 0)], stride=[3, 1]).tolist() == [[1.0]] * 6


def test_samples_of_windows() -> None:
    index = np.asarray([[1, 0, 1]])
    assert sample(LINE, index, [1, 2], padding=[(0, 0), (0, 0)]).tolist() == [[4.0, 4.0, -12.0]]
    assert desample(LINE[:, :3], index, [1, 2], padding=[(0, 0), (0, 0)]).tolist() == [[0.0, 7.0, 0.0, 0.0]]
