"""Known failures of cells: the operator, its releases, the cases, and what is wrong with it."""

from __future__ import annotations

from typing import Final

from conformance.dialect.errata import erratum
from conformance.dialect.judge import Verdict
from conformance.dialect.known.cuda import ON_CUDA
from conformance.dialect.known.declutter import DECLUTTERED
from conformance.dialect.known.entry import Known
from conformance.dialect.known.standard import OF_THE_STANDARD
from conformance.dialect.known.tract import OF_TRACT
from t2n_core.engine.paths import EnginePath
from t2n_core.nnef.tract.quirks.quirk import Erratum

KNOWN: Final = (*OF_THE_STANDARD, *OF_TRACT)


def explanation(verdict: Verdict) -> Known | Erratum | None:
    """Return the known cause of a verdict that is not `right`: an entry of this table or an erratum, or None."""
    table = (*KNOWN, *(ON_CUDA if verdict.runtime == "cuda" else ()))
    table += DECLUTTERED if verdict.path is EnginePath.DECLUTTER else ()
    cause = next((entry for entry in table if entry.explains(verdict)), None)
    return cause or erratum(verdict.case, verdict.release)
