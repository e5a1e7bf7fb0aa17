"""What figures come from: the machine, its versions, and what a process used of it."""

from __future__ import annotations

import os
import platform
import resource
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from t2n_core.engine.provision.known import newest_of_lines

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = newest_of_lines()
"""What the costs are measured with: the newest release of each line, and the last alone where one is enough."""


def describe_machine() -> dict[str, Any]:
    """Processor, cores, load, versions, date; nothing that names the machine or its user."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return {
        "date": date.today().isoformat(),
        "cpu": model,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("torch", "numpy", "pytest-t2n")},
    }


def pin_to_one_core() -> None:
    """Keep this process on one core, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def cpu_of_children() -> float:
    """Return CPU seconds of the child processes that have ended; `os.times` counts in hundredths."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def memory_of_process(entry: str) -> int:
    """Return bytes of an entry of /proc/self/status: VmHWM is the peak, VmRSS what is held."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{entry}:"))
