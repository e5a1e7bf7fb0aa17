"""Every decomposition of ours is used by some case."""

from __future__ import annotations

import re

import pytest

from tests.contract.cases import all_cases
from tests.contract.usage import Usage, named_decompositions
from tests.releases import NEWEST, OLDEST

FAMILIES = {
    "decompositions": ("linalg/", "special/", "counting/", "matmul/", "quantised/", "grid/", "pool/"),
    "complex pairs": ("complex_numbers/",),
}


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_decomposition_has_a_case(kind: str, usage: Usage) -> None:
    newest = {case: usage.of(case, NEWEST) for case in all_cases() if case.name.startswith(FAMILIES[kind])}
    used = set[str]().union(*(use.decompositions[kind] for use in newest.values()))
    missing = {target: name for target, name in named_decompositions(kind).items() if name not in used}
    # The oldest release decomposes what the newest has a rule for.
    operators = {operator_of(target.name()) for target in missing}
    for case in (case for case, use in newest.items() if operators & {operator_of(rule) for rule in use.rules}):
        used |= usage.of(case, OLDEST).decompositions[kind]
    missing = {target: name for target, name in missing.items() if name not in used}
    assert not missing, f"decompositions without a case: {', '.join(sorted(map(str, missing)))}"


def operator_of(name: str) -> str:
    """Return the operator of an overload, or of a rule by its name: `aten::add` of `aten::add.Tensor`."""
    return re.split("[. ]", name)[0]
