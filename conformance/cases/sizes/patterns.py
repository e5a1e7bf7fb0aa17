"""All patterns of suite `sizes`, by name."""

from __future__ import annotations

from conformance.cases.sizes.convolutions import CONVOLUTIONS, POOLS, RECURRENT, UPSAMPLING
from conformance.cases.sizes.decisions import DECISIONS, IMAGES
from conformance.cases.sizes.nets import SizesNet
from conformance.cases.sizes.padding import PADS, WINDOWS
from conformance.cases.sizes.positions import CACHES, NUMBERS, POSITIONS, TWO
from conformance.cases.sizes.slices import CROPS, PIECES

_GROUPS = (
    CROPS, PIECES, PADS, WINDOWS, CONVOLUTIONS, POOLS, UPSAMPLING, RECURRENT, POSITIONS, NUMBERS, CACHES, TWO,
    DECISIONS, IMAGES,
)  # fmt: skip

NETS: dict[str, SizesNet] = {name: net for group in _GROUPS for name, net in group.items()}
