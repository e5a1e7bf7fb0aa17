"""The transforms by name: the releases that have each, and the precision that it loses.

Names are as in tract 0.23; earlier releases write them with dashes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from packaging.version import Version

from t2n_core.nnef.releases import Releases


class Loss(IntEnum):
    """How much precision a transform loses, the least first."""

    NONE = 0
    FLOAT16 = 1
    """Floats of another type than the archive's, such as float16."""
    EIGHT_BITS = 2
    """Values stored in 8 bits, or functions of about that accuracy."""
    FOUR_BITS = 3
    """Values stored in 4 bits."""


@dataclass(frozen=True, slots=True)
class TransformEntry:
    """A transform of some releases."""

    releases: Releases
    loss: Loss = Loss.NONE
    of_registry: bool = False
    """True if releases before 0.23 look it up in their registries."""
    begins: tuple[str, ...] = ()
    """Transforms that it applies first: it has no effect itself if it changes no more than they do."""
    refused: str = ""
    """The reason why no check can judge it, with what checks it instead; empty if a check can."""


ROUND_TRIP: Final = "round_trip"
"""The archive as the engine writes it, which is not a transform of the engine."""
_BY_JSON: Final = Releases.of("0.23")
_SELECTION: Final = Releases.of("0.23.1")
_TEXT: Final = Releases.of("0.21.2", "0.23")
_ANY: Final = Releases.of("0.21.2")
_CACHES: Final = Releases.of("0.22.1")
_CACHE_PASSES: Final = ("detect_apply_rope", "detect_kv_cache")
_STREAM: Final = "export with `pulse=`, and `check_streaming` checks the stream"

KNOWN: Final[Mapping[str, TransformEntry]] = {
    ROUND_TRIP: TransformEntry(Releases.of("0.19.2")),
    "f32_to_f16": TransformEntry(_ANY, Loss.FLOAT16),
    "f16_to_f32": TransformEntry(_ANY, Loss.FLOAT16),
    "float_precision": TransformEntry(_BY_JSON, Loss.FLOAT16),
    "block_quant": TransformEntry(Releases.of("0.21.7"), Loss.FOUR_BITS),
    "softmax_fast_compact": TransformEntry(Releases.of("0.21.2", "0.23.6"), Loss.EIGHT_BITS),
    "conv_nhwc": TransformEntry(Releases.of("0.23.9")),
    "detect_rms_norm": TransformEntry(Releases.of("0.21.13", "0.23"), of_registry=True),
    "detect_silu": TransformEntry(Releases.of("0.21.13", "0.23"), of_registry=True),
    "detect_gelu_approx": TransformEntry(Releases.of("0.21.13", "0.23"), of_registry=True),
    "detect_apply_rope": TransformEntry(Releases.of("0.21.13"), of_registry=True),
    "detect_scaled_masked_softmax": TransformEntry(Releases.of("0.21.13"), of_registry=True),
    "detect_diag_gather": TransformEntry(_BY_JSON),
    "detect_kv_cache": TransformEntry(_CACHES, of_registry=True),
    "detect_sdpa_kv_cache_broadcast": TransformEntry(_CACHES, of_registry=True),
    "unfold_kv_cache": TransformEntry(_BY_JSON),
    "transformers_detect_all": TransformEntry(Releases.of("0.21.13"), of_registry=True),
    "quantize_kv_storage": TransformEntry(Releases.of("0.23.5"), Loss.EIGHT_BITS, begins=_CACHE_PASSES),
    "quantize_kv_storage_int4": TransformEntry(Releases.of("0.23.5"), Loss.FOUR_BITS, begins=_CACHE_PASSES),
    "fuse_inplace_kv_sdpa": TransformEntry(Releases.of("0.23.5", "0.23.9")),
    "batchify": TransformEntry(Releases.of("0.23.8")),
    "batchify_data_free": TransformEntry(
        Releases.of("0.23.6"), refused=f"it prepares wires that no input feeds for a stream: {_STREAM}"
    ),
    "pulse": TransformEntry(_BY_JSON, refused=f"the model then takes a part of its time axis at a time: {_STREAM}"),
    "blockify": TransformEntry(_BY_JSON, refused=f"it cuts the time axis into blocks, for a stream: {_STREAM}"),
    "patch": TransformEntry(_BY_JSON, refused="it adds operations to the model for which PyTorch has no counterpart"),
    "select_inputs": TransformEntry(
        _SELECTION,
        refused="it cuts the model open at inner nodes, for which samples have no values: `bisect` runs parts",
    ),
    "select_outputs": TransformEntry(_SELECTION),
    "set_property": TransformEntry(Releases.of("0.23.9")),
    "set_symbols": TransformEntry(_BY_JSON),
    "export_scan_state": TransformEntry(Releases.of("0.23.5")),
    "force_scan_external_state": TransformEntry(Releases.of("0.23.1")),
}


def transforms_of(version: str) -> tuple[str, ...]:
    """Return the names that a release accepts."""
    release = Version(version)
    return tuple(name for name, entry in KNOWN.items() if release in entry.releases)


def takes_arguments(version: str) -> bool:
    """Return whether transforms of a release take arguments."""
    return Version(version) in _BY_JSON


def has_transforms(version: str) -> bool:
    """Return whether a release has transforms."""
    return Version(version) in _TEXT or takes_arguments(version)
