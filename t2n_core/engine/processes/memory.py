"""Limits of the memory that one job of an engine may use."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from t2n_core.errors import InputError

MOST: Final = 8 << 30
"""Bytes that one job may map in addition to its process, on a machine that has them."""
_LEAST: Final = 1 << 30
_UNITS: Final = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)I?B?")
_chosen: list[int] = []


def memory_limit() -> int:
    """Return the bytes that one job of this process's engines may map."""
    return _chosen[-1] if _chosen else MOST


def limit_memory(size: int) -> None:
    """Limit each job of this process's engines to `size` bytes."""
    _chosen[:] = [size]


def share_of_memory(workers: int) -> int:
    """Return the bytes of each of `workers` parallel jobs: an equal part of the machine's memory, at most MOST."""
    total = machine_memory()
    return MOST if total is None else min(MOST, max(_LEAST, total // max(workers, 1)))


def parse_size(text: str) -> int:
    """Return the bytes of `4G`, `500M` or `1000000`. Raises InputError."""
    match = _SIZE.fullmatch(text.strip().upper())
    size = int(float(match[1]) * (1 << _UNITS[match[2]])) if match else 0
    if size < 1:
        raise InputError(f"{text!r} is not a memory size such as 4G or 500M")
    return size


def limit_process(size: int) -> None:
    """Limit this process to `size` bytes more than it has mapped, if the system supports it. It writes no core file."""
    try:
        import resource
    except ImportError:
        return
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        limit = _mapped_bytes(resource.getpagesize()) + size
        resource.setrlimit(resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
    except (OSError, ValueError):
        return  # macOS refuses; the job then runs without a limit


def _mapped_bytes(page: int) -> int:
    if sys.platform != "linux":
        return 0
    # by the descriptor: in a forked child, each page that Python's files touch would be copied
    descriptor = os.open("/proc/self/statm", os.O_RDONLY)
    try:
        return int(os.read(descriptor, 256).split()[0]) * page
    finally:
        os.close(descriptor)


def machine_memory() -> int | None:
    """Return the bytes of the machine, or of the container; None if the system does not report them."""
    limits = []
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path(file).read_text()))
        except (OSError, ValueError):
            continue  # not a container, or no limit: `max`
    with suppress(AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(limits, default=None)
