from __future__ import annotations

import io

import numpy as np
import pytest

from t2n_core.engine.processes.wire import PREFIX, WireError, encode_frame, read_frame, write_frame

RNG = np.random.default_rng(1)
ARRAYS = [
    np.array(-2.5, dtype="f8"),
    np.zeros((0, 3), dtype="i8"),
    RNG.normal(size=(2, 3, 5)).astype("f2"),
    RNG.integers(0, 2, (7,)).astype(bool),
    RNG.integers(-128, 128, (3, 1, 2), dtype="i1"),
    (RNG.normal(size=4) + 1j * RNG.normal(size=4)).astype("c8"),
    RNG.normal(size=(4, 6)).astype("f4").T,
    RNG.normal(size=(4, 6)).astype("f4")[::-1, ::2],
    RNG.normal(size=(3, 2)).astype(">f4"),
]


class Dribble(io.BytesIO):
    """Gives and takes few bytes at a time, as a pipe may."""

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        return super().readinto(buffer[:13])

    def write(self, data: memoryview, /) -> int:  # type: ignore[override]
        return super().write(bytes(data[:11]))


def test_arrays_survive_with_rank_dtype_and_bytes() -> None:
    stream = Dribble()
    write_frame(stream, {"event": "outputs", "text": "çö\n"}, ARRAYS)
    write_frame(stream, {"event": "end"})
    stream.seek(0)
    frame, end = read_frame(stream), read_frame(stream)
    assert frame is not None
    assert end is not None
    assert frame.header["text"] == "çö\n"
    arrays = frame.arrays()
    for sent, got in zip(ARRAYS, arrays, strict=True):
        assert got.shape == sent.shape
        assert got.dtype == sent.dtype.newbyteorder("=")
        np.testing.assert_array_equal(got, sent)
        assert got.flags.aligned
        assert got.flags.writeable
    assert end.header == {"event": "end"}
    assert end.arrays() == []
    assert read_frame(stream) is None


class CountedWrites(io.BytesIO):
    """A pipe that knows how often it was written to."""

    count = 0

    def write(self, data: memoryview, /) -> int:  # type: ignore[override]
        self.count += 1
        return super().write(data)


def test_a_small_frame_is_one_write_and_a_large_array_is_not_copied() -> None:
    small, large = CountedWrites(), CountedWrites()
    write_frame(small, {"event": "outputs"}, ARRAYS)
    assert small.count == 1
    assert small.getvalue() == b"".join(map(bytes, encode_frame({"event": "outputs"}, ARRAYS)))
    big = RNG.normal(size=(30_001,)).astype("f8")
    write_frame(large, {"event": "outputs"}, [big])
    assert large.count == len(encode_frame({"event": "outputs"}, [big]))


@pytest.mark.parametrize("missing", [1, 40, 400])
def test_a_frame_that_ends_early_is_the_end(missing: int) -> None:
    frame = b"".join(map(bytes, encode_frame({"a": 1}, ARRAYS)))
    assert read_frame(io.BytesIO(frame[:-missing])) is None


def test_other_bytes_are_not_taken_for_a_frame() -> None:
    with pytest.raises(WireError, match="not a frame"):
        read_frame(io.BytesIO(b"hello from the engine" + bytes(PREFIX.size)))


def test_python_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="object"):
        encode_frame({}, [np.array([{}, None])])
