"""The transforms by name: the releases that have each, and the precision that it gives up.

Names are those of tract 0.23; earlier releases write them with dashes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from packaging.version import Version

from t2n_core.nnef.releases import Releases


class Loss(IntEnum):
    """How much precision a transform gives up, the least first."""

    NONE = 0
    FLOAT16 = 1
    """Floats of another type than those of the archive, such as float16."""
    EIGHT_BITS = 2
    """Values stored in 8 bits, or functions that are about as coarse."""
    FOUR_BITS = 3
    """Values stored in 4 bits."""


@dataclass(frozen=True, slots=True)
class Known:
    """A transform of some releases."""

    releases: Releases
    loss: Loss = Loss.NONE
    of_registry: bool = False
    """True where releases before 0.23 look it up among those of their registries."""
    begins: tuple[str, ...] = ()
    """Transforms that it applies first: it has done nothing where it changes no more than they do."""
    refused: str = ""
    """The reason why no check can judge it, with what checks it instead; empty where a check can."""


ROUND_TRIP: Final = "round_trip"
"""The archive as the engine writes it: no transform of the engine's own."""
_BY_JSON: Final = Releases.of("0.23")
_TEXT: Final = Releases.of("0.21.2", "0.23")
_ANY: Final = Releases.of("0.21.2")
_CACHES: Final = Releases.of("0.22.1")
_CACHE_PASSES: Final = ("detect_apply_rope", "detect_kv_cache")
_STREAM: Final = "export with `pulse=`, and `check_streaming` checks the stream"

KNOWN: Final[Mapping[str, Known]] = {
    ROUND_TRIP: Known(Releases.of("0.19.2")),
    "f32_to_f16": Known(_ANY, Loss.FLOAT16),
    "f16_to_f32": Known(_ANY, Loss.FLOAT16),
    "float_precision": Known(_BY_JSON, Loss.FLOAT16),
    "block_quant": Known(Releases.of("0.21.7"), Loss.FOUR_BITS),
    "softmax_fast_compact": Known(Releases.of("0.21.2", "0.23.6"), Loss.EIGHT_BITS),
    "conv_nhwc": Known(Releases.of("0.23.9")),
    "detect_rms_norm": Known(Releases.of("0.21.13", "0.23"), of_registry=True),
    "detect_silu": Known(Releases.of("0.21.13", "0.23"), of_registry=True),
    "detect_gelu_approx": Known(Releases.of("0.21.13", "0.23"), of_registry=True),
    "detect_apply_rope": Known(Releases.of("0.21.13"), of_registry=True),
    "detect_scaled_masked_softmax": Known(Releases.of("0.21.13"), of_registry=True),
    "detect_diag_gather": Known(_BY_JSON),
    "detect_kv_cache": Known(_CACHES, of_registry=True),
    "detect_sdpa_kv_cache_broadcast": Known(_CACHES, of_registry=True),
    "unfold_kv_cache": Known(_BY_JSON),
    "transformers_detect_all": Known(Releases.of("0.21.13"), of_registry=True),
    "quantize_kv_storage": Known(Releases.of("0.23.5"), Loss.EIGHT_BITS, begins=_CACHE_PASSES),
    "quantize_kv_storage_int4": Known(Releases.of("0.23.5"), Loss.FOUR_BITS, begins=_CACHE_PASSES),
    "batchify": Known(Releases.of("0.23.8")),
    "batchify_data_free": Known(
        Releases.of("0.23.6"), refused=f"it prepares wires that no input feeds for a stream: {_STREAM}"
    ),
    "pulse": Known(_BY_JSON, refused=f"the model then takes a part of its time axis at a time: {_STREAM}"),
    "blockify": Known(_BY_JSON, refused=f"it cuts the time axis into blocks, for a stream: {_STREAM}"),
    "patch": Known(_BY_JSON, refused="it puts other statements into the model, for which PyTorch has no counterpart"),
    "select_inputs": Known(
        _BY_JSON, refused="it cuts the model open at inner nodes, of which samples hold nothing: `bisect` runs parts"
    ),
    "select_outputs": Known(_BY_JSON),
    "set_property": Known(Releases.of("0.23.9")),
    "set_symbols": Known(_BY_JSON),
    "export_scan_state": Known(Releases.of("0.23.5")),
    "force_scan_external_state": Known(_BY_JSON),
}


def transforms_of(version: str) -> tuple[str, ...]:
    """Return the names that a release accepts."""
    release = Version(version)
    return tuple(name for name, known in KNOWN.items() if release in known.releases)


def takes_arguments(version: str) -> bool:
    """Return whether transforms of a release take arguments."""
    return Version(version) in _BY_JSON


def has_transforms(version: str) -> bool:
    """Return whether a release has transforms of its own."""
    return Version(version) in _TEXT or takes_arguments(version)


__all__ = ["KNOWN", "ROUND_TRIP", "Known", "Loss", "has_transforms", "takes_arguments", "transforms_of"]
