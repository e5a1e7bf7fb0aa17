"""The processor of this machine: an engine chooses its kernels by it, so a level holds for one processor only."""

from __future__ import annotations

import functools
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_VECTORS = re.compile(
    r"(?:sse|ssse|avx|fma|f16c|amx|neon|asimd|fp$|fphp|sve|sme(?!p)|bf16|i8mm|gfni|vnni|fp16|dotprod|apple)"
)
"""Features that kernels are chosen by; others depend on the system and do not affect results."""
_ARM_VENDORS = {"0x41": "ARM", "0x61": "Apple", "0xc0": "Ampere", "0x48": "HiSilicon", "0x4e": "NVIDIA"}
_SYSCTL = ("machdep.cpu.vendor", "machdep.cpu.brand_string", "machdep.cpu.features", "machdep.cpu.leaf7_features")
_WINDOWS = {"avx": 39, "avx2": 40, "avx512f": 41, "neon": 19, "dotprod": 43}
"""Arguments of `IsProcessorFeaturePresent`, from the Windows SDK's winnt.h."""


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor as its system describes it; texts are empty where it reports nothing."""

    vendor: str
    model: str
    """Name with family, model and stepping where these are known: a hypervisor may report the same name for all."""
    features: tuple[str, ...]
    """Vector features under the names of the system, by name."""
    cores: int


@functools.cache
def this_processor() -> Processor:
    """Return the processor of this machine; determined once per process."""
    cores = os.cpu_count() or 0
    if sys.platform == "linux":
        try:
            return parse_cpuinfo(_CPUINFO.read_text(encoding="utf-8", errors="replace"), cores)
        except OSError:
            return Processor("", platform.processor(), (), cores)
    if sys.platform == "darwin":
        return parse_sysctl(_sysctl(), cores)
    return Processor("", platform.processor(), _windows_features(), cores)


def parse_cpuinfo(text: str, cores: int) -> Processor:
    """Return the processor that Linux describes in /proc/cpuinfo, with the features that all cores have."""
    facts: dict[str, str] = {}
    common: set[str] | None = None
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        name, value = name.strip(), value.strip()
        if colon and name in ("flags", "Features"):
            common = set(value.split()) if common is None else common & set(value.split())
        elif colon:
            facts.setdefault(name, value)
    vendor = facts.get("vendor_id") or _ARM_VENDORS.get(facts.get("CPU implementer", ""), "")
    numbers = [
        f"{word} {facts[name]}"
        for word, name in (
            ("family", "cpu family"),
            ("model", "model"),
            ("stepping", "stepping"),
            ("part", "CPU part"),
            ("variant", "CPU variant"),
        )
        if name in facts
    ]
    model = ", ".join(filter(None, [facts.get("model name", ""), " ".join(numbers)]))
    return Processor(vendor, model, _vectors(common or ()), cores)


def parse_sysctl(facts: Mapping[str, str], cores: int) -> Processor:
    """Return the processor that macOS describes by `sysctl`, on Intel and on Apple's own."""
    words = " ".join(facts.get(name, "") for name in _SYSCTL[2:]).lower().replace("avx1.0", "avx").split()
    arm = [name.rpartition("FEAT_")[2].lower() for name, value in facts.items() if "FEAT_" in name and value == "1"]
    model = facts.get("machdep.cpu.brand_string", "")
    apple = ["apple-amx"] if model.startswith("Apple") else []
    vendor = facts.get("machdep.cpu.vendor") or ("Apple" if apple else "")
    return Processor(vendor, model, _vectors([*words, *arm, *apple]), cores)


def _vectors(features: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({feature for feature in features if _VECTORS.match(feature)}))


def _sysctl() -> dict[str, str]:
    try:
        done = subprocess.run(
            ["sysctl", "-a"], capture_output=True, text=True, errors="replace", timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    pairs = (line.partition(": ") for line in done.stdout.splitlines())
    return {name: value for name, _, value in pairs if name in _SYSCTL or name.startswith("hw.optional.arm.FEAT_")}


def _windows_features() -> tuple[str, ...]:
    import ctypes

    ask = getattr(getattr(ctypes, "windll", None), "kernel32", None)
    return () if ask is None else tuple(sorted(n for n, i in _WINDOWS.items() if ask.IsProcessorFeaturePresent(i)))
