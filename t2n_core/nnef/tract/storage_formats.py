"""The storage formats of weights that releases read, by the kind of layer that reads the weight."""

from __future__ import annotations

from typing import Final

from t2n_core.nnef.options.weight_choice import Reader, WeightFormat
from t2n_core.nnef.tract.traits import TractTraits, first_release

BLOCKS: Final[dict[Reader, str]] = {
    Reader.LINEAR: "reads_q40",
    Reader.EMBEDDING: "reads_q40",
    Reader.EXPERTS: "reads_q40",
    Reader.CONVOLUTION: "convolves_q40",
}
"""The trait of the releases in which this kind of operator takes blocks of 4 bits.

For all other kinds no release does; depthwise convolutions of blocks end the process. Float16 and bytes are cast by
operations, which every release has, so that every reader takes them.
"""


def refusal(traits: TractTraits, format: WeightFormat, reader: Reader) -> str:
    """Return why a weight cannot have a storage format for this kind of operator; empty if it can."""
    if format != "q4_0":
        return ""
    trait = BLOCKS.get(reader)
    if trait is None:
        return f"no release of tract reads {format} in {reader}"
    if not getattr(traits, trait):
        return f"tract reads {format} in {reader} from {first_release(trait)} on"
    return ""
