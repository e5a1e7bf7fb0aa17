"""Cases of operators: `cases("tract_core_silu")` yields the same ones in every process and release.

A case is drawn from the number of the case and the operator's name.
"""

from t2n_core.dialect.cases.case import Case, name_in
from t2n_core.dialect.cases.recipes import CASES, cases, operators

__all__ = ["CASES", "Case", "cases", "name_in", "operators"]
