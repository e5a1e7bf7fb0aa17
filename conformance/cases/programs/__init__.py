"""Programs of the suite `programs`: small functions, layers and structures, one of each kind."""

from __future__ import annotations

from conformance.cases.programs import functions, indices, integers, layers, speech, structures
from conformance.cases.programs.program import Program

PROGRAMS: dict[str, Program] = {
    **functions.PROGRAMS,
    **indices.PROGRAMS,
    **integers.PROGRAMS,
    **layers.PROGRAMS,
    **speech.PROGRAMS,
    **structures.PROGRAMS,
}

__all__ = ["PROGRAMS", "Program"]
