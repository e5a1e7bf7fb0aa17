"""Kernel tiers: tract without some features of its processor, so that it uses the kernels of a smaller one.

`native` is the processor as it is, `no-fma` is one without FMA. The library reads `TRACT_CPU_ISA` once, before its
first kernel, and ignores names that it does not know, so names are checked here. It trusts its settings: with
AVX-512 and without FMA it would mix kernels as on no real processor. So a tier removes a feature and all that need it.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from packaging.version import InvalidVersion, Version

from t2n_core.errors import InputError
from t2n_core.nnef.releases import Releases
from t2n_core.text import suggestion

NATIVE = "native"
_PREFIX = "no-"
_VARIABLE = "TRACT_CPU_ISA"
_READS_IT = Releases.of("0.23.6")

_NEEDS: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "x86_64": {
            "avx": (),
            "avx2": ("avx",),
            "fma": ("avx",),
            "f16c": ("avx",),
            "avxvnni": ("avx2",),
            "avx512f": ("avx2", "fma", "f16c"),
            "avx512vnni": ("avx512f",),
            "avx512fp16": ("avx512f",),
            "amx-int8": ("avx512f",),
            "amx-bf16": ("avx512f",),
        },
        "aarch64": {"fp16": (), "dotprod": (), "sve2": (), "sme": (), "sme2": ("sme",), "apple-amx": ()},
        "arm": {"neon": ()},
    }
)
"""Features that tract has kernels for, by kind of processor, each with the features that it requires."""
_OTHER_NAMES = {"avx512": "avx512f"}
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64", "armv6l": "arm", "armv7l": "arm", "armv8l": "arm"}
_SPELLINGS = {"fphp": "fp16", "asimdhp": "fp16", "asimddp": "dotprod"}


def kind_of_processor(machine: str | None = None) -> str:
    """Return tract's name of a machine, by default this one: `x86_64`, `aarch64`, `arm`; else the system's name."""
    name = (platform.machine() if machine is None else machine).lower()
    return _MACHINES.get(name, name)


def parse_tiers(text: str, machine: str | None = None) -> tuple[str, ...]:
    """Return the tiers of a comma-separated list, without repetitions.

    Raises InputError for a feature that this machine cannot have.
    """
    kind = kind_of_processor(machine)
    tiers = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for tier in tiers:
        _check(tier, kind)
    return tiers


def removed_features(tier: str) -> tuple[str, ...]:
    """Return the features that a tier removes: the feature it names, then all that need it."""
    if tier == NATIVE:
        return ()
    removed = [_feature(tier)]
    needs = {feature: needed for needs_of_kind in _NEEDS.values() for feature, needed in needs_of_kind.items()}
    for feature in removed:
        removed += [other for other, needed in needs.items() if feature in needed and other not in removed]
    return tuple(removed)


def tier_environment(tier: str) -> dict[str, str]:
    """Return the variables of an engine's process that select a tier."""
    removed = removed_features(tier)
    return {_VARIABLE: ",".join(f"-{feature}" for feature in removed)} if removed else {}


def usable_features(features: Iterable[str], tier: str, machine: str | None = None) -> tuple[str, ...]:
    """Return tract's features whose kernels run in a tier, from the system's names of the processor's features."""
    available = {_SPELLINGS.get(feature, feature).replace("_", "").replace("-", "") for feature in features}
    tract_features = _NEEDS.get(kind_of_processor(machine), {})
    removed = removed_features(tier)
    return tuple(
        feature for feature in tract_features if feature.replace("-", "") in available and feature not in removed
    )


def has_tiers(version: str) -> bool:
    """Return whether a release can ignore features of its processor."""
    try:
        return Version(version) in _READS_IT
    except InvalidVersion:  # a binary that does not report a version
        return False


def first_with_tiers() -> str:
    """Return the first release with tiers, for messages."""
    return str(_READS_IT.since)


def _feature(tier: str) -> str:
    name = tier.removeprefix(_PREFIX)
    return _OTHER_NAMES.get(name, name)


def _check(tier: str, kind: str) -> None:
    """Raise InputError for a name that is not a tier of this kind of processor."""
    if tier == NATIVE:
        return
    names_of_kind = [
        *_NEEDS.get(kind, {}),
        *(other for other, name in _OTHER_NAMES.items() if name in _NEEDS.get(kind, {})),
    ]
    feature = tier.removeprefix(_PREFIX)
    tiers = [NATIVE, *(f"{_PREFIX}{name}" for name in names_of_kind)]
    if tier.startswith(_PREFIX) and feature in names_of_kind:
        return
    home = next((processor for processor, features in _NEEDS.items() if _feature(tier) in features), None)
    if tier.startswith(_PREFIX) and home is not None:
        raise InputError(
            f"{feature} is a feature of {home}, and this machine is {kind}", hint=f"one of {', '.join(tiers)}"
        )
    hint = suggestion(tier, tiers, f"one of {', '.join(tiers)}")
    raise InputError(f"{tier!r} is not a kernel tier", hint=hint)
