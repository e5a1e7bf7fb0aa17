"""Every decomposition of ours is used by some case."""

from __future__ import annotations

import pytest

from tests.contract.cases import all_cases
from tests.contract.usage import Usage, named_decompositions
from tests.releases import NEWEST

FAMILIES = {
    "decompositions": ("linalg/", "special/", "counting/", "matmul/", "quantised/", "grid/", "pool/"),
    "complex pairs": ("complex_numbers/",),
}


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_decomposition_has_a_case(kind: str, usage: Usage) -> None:
    cases = [case for case in all_cases() if case.name.startswith(FAMILIES[kind])]
    missing = named_decompositions(kind)
    for version in (NEWEST, "0.19.15"):
        used = set[str]().union(*(usage.of(case, version).decompositions[kind] for case in cases))
        missing = {target: name for target, name in missing.items() if name not in used}
        if not missing:
            break
    assert not missing, f"decompositions without a case: {', '.join(sorted(map(str, missing)))}"
