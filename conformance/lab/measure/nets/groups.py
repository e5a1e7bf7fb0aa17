"""The groups of nets whose speed in the engine is measured. Imports nothing but torch, as the nets themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from conformance.lab.measure.nets.layers import LAYERS, LayerNet
from conformance.lab.measure.nets.recurrent import RECURRENT, RecurrentNet

Net: TypeAlias = RecurrentNet | LayerNet
GROUPS: dict[str, Sequence[Net]] = {"recurrent": RECURRENT, "layers": LAYERS}
