"""Sizes of memory, and the part of it that a job gets."""

from __future__ import annotations

import pytest

from t2n_core.engine.processes import memory
from t2n_core.errors import InputError


def test_sizes_are_bytes_or_have_a_unit() -> None:
    sizes = {"4G": 4 << 30, "500M": 500 << 20, " 1.5 GiB": 3 << 29, "123": 123, "2kb": 2048, "1T": 1 << 40}
    assert {text: memory.parse_size(text) for text in sizes} == sizes
    for text in ("", "much", "-1", "0", "4 G 4", "1e9", "nan"):
        with pytest.raises(InputError, match="not a memory size"):
            memory.parse_size(text)


def test_workers_share_the_memory_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for total, workers, share in (
        (64 << 30, 2, 8 << 30),
        (64 << 30, 16, 4 << 30),
        (16 << 30, 4, 4 << 30),
        (4 << 30, 8, 1 << 30),
        (None, 9, 8 << 30),
    ):
        monkeypatch.setattr(memory, "machine_memory", lambda total=total: total)
        assert memory.share_of_memory(workers) == share


def test_the_machine_says_how_much_it_has() -> None:
    assert 1 << 28 < (memory.machine_memory() or 1 << 40) < 1 << 50
