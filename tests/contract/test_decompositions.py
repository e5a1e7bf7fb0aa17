"""Every decomposition of ours is used by some case."""

from __future__ import annotations

import pytest

from tests.contract.cases import all_cases
from tests.contract.usage import Usage, named_decompositions

FAMILIES = {
    "decompositions": ("linalg/", "special/", "counting/", "matmul/", "quantised/", "grid/", "pool/"),
    "complex pairs": ("complex_numbers/",),
}


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_decomposition_has_a_case(kind: str, usage: Usage) -> None:
    cases = [case for case in all_cases() if case.name.startswith(FAMILIES[kind])]
    used = set[str]().union(*(usage.of(case, v).decompositions[kind] for case in cases for v in ("0.19.15", "0.23.9")))
    missing = sorted({str(target) for target, name in named_decompositions(kind).items() if name not in used})
    assert not missing, f"decompositions without a case: {', '.join(missing)}"
