"""The driver alone, without a worker: only calls that cannot make the engine abort."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from t2n_core.engine import ResolvedEngine
from t2n_core.engine.tract.driver import TractDriver
from t2n_core.errors import EngineLoadError, EngineRunError

Resolve = Callable[[str], ResolvedEngine]


@pytest.fixture
def driver(version: str, resolved_engine: Resolve) -> TractDriver:
    return TractDriver(resolved_engine(version).library)


@pytest.fixture
def round_trip(driver: TractDriver) -> Iterator[Callable[[np.ndarray], np.ndarray]]:
    """Into a tensor of the engine and back."""
    tensors = []

    def go(array: np.ndarray) -> np.ndarray:
        tensors.append(driver.make_tensor(array))
        return driver.read_tensor(tensors[-1])

    yield go
    driver.drop_tensors(tensors)


def test_tensors_hold_values_not_bytes(round_trip: Callable[[np.ndarray], np.ndarray]) -> None:
    values = np.random.default_rng(4).normal(size=(3, 4)).astype("f4")
    for form in (
        values.astype(">f4"),
        np.asfortranarray(values),
        values[::-1, ::2],
        values[1],
        values[1, 2],
        values[:0],
    ):
        got = round_trip(np.asarray(form))
        assert got.dtype == np.dtype("f4")
        assert got.shape == np.shape(form)
        np.testing.assert_array_equal(got, form)


def test_a_tensor_outlives_the_array_it_came_from(driver: TractDriver) -> None:
    array = np.arange(1000, dtype="i8") - 500
    tensor = driver.make_tensor(array)
    array[:] = 0
    got = driver.read_tensor(tensor)
    driver.drop_tensors([tensor])
    np.testing.assert_array_equal(got, np.arange(1000) - 500)


@pytest.mark.parametrize("dtype", ["M8[s]", "U3", "f2,f4", "O"])
def test_dtypes_the_engine_does_not_have(dtype: str, driver: TractDriver) -> None:
    with pytest.raises(EngineRunError, match="takes no input of dtype"):
        driver.make_tensor(np.zeros(2, dtype))


def test_registries_of_each_line(version: str, driver: TractDriver) -> None:
    later = {"0.19": (), "0.20": ("tract_extra",)}.get(version[:4], ("tract_extra", "tract_transformers"))
    assert driver.registries == ("tract_core", *later, "onnx", "pulse")
    assert driver.reported_version.startswith(version[:4])


def test_another_library_is_refused(tmp_path: Path) -> None:
    import _ctypes

    with pytest.raises(EngineLoadError, match="cannot be used as a tract library"):
        TractDriver(tmp_path / "nothing.so")
    with pytest.raises(EngineLoadError, match="cannot be used as a tract library"):
        TractDriver(Path(_ctypes.__file__))


def test_a_failed_load_is_an_error_with_its_causes(driver: TractDriver, tmp_path: Path) -> None:
    with pytest.raises(EngineLoadError, match=r"graph\.nnef was not found"):
        driver.load(tmp_path)
