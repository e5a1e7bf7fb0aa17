"""All patterns of suite `sizes`, by name."""

from __future__ import annotations

from conformance.suites.sizes_cases_convolutions import CONVOLUTIONS, POOLS, RECURRENT, UPSAMPLING
from conformance.suites.sizes_cases_decisions import DECISIONS, IMAGES
from conformance.suites.sizes_cases_padding import PADS, WINDOWS
from conformance.suites.sizes_cases_positions import CACHES, NUMBERS, POSITIONS, TWO
from conformance.suites.sizes_cases_slices import CROPS, PIECES
from conformance.suites.sizes_nets import SizesNet

_GROUPS = (
    CROPS, PIECES, PADS, WINDOWS, CONVOLUTIONS, POOLS, UPSAMPLING, RECURRENT, POSITIONS, NUMBERS, CACHES, TWO,
    DECISIONS, IMAGES,
)  # fmt: skip

NETS: dict[str, SizesNet] = {name: net for group in _GROUPS for name, net in group.items()}
