"""Every decomposition of ours is used by some case."""

from __future__ import annotations

from typing import Any

import pytest

from t2n_core import TractNNEF
from t2n_core.errors import T2NError
from t2n_core.torch_graph.simplify import complex_pairs, decompositions
from t2n_core.torch_graph.simplify.complex_pairs import expansion
from tests.contract.cases import all_cases

FAMILIES = ("linalg/", "special/", "counting/", "matmul/", "quantised/")


def of_which(target: Any, function: Any) -> Any:
    """What needs a case: a function, or, where one is made for each overload, the operator."""
    return target.overloadpacket if function.__name__ == "both" else function


@pytest.mark.parametrize(
    ("kept_by", "reader", "families", "all_of_them"),
    [
        (decompositions, decompositions, FAMILIES, decompositions.all_decompositions),
        (complex_pairs, expansion, ("complex_numbers/",), complex_pairs.known_overloads),
    ],
    ids=["decompositions", "complex pairs"],
)
def test_every_decomposition_has_a_case(
    kept_by: Any, reader: Any, families: tuple[str, ...], all_of_them: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = set()
    find = kept_by.find

    def recording(target: Any) -> Any:
        found = find(target)
        if found is not None:
            used.add(of_which(target, found))
        return found

    monkeypatch.setattr(reader, "find", recording)
    for case in all_cases():
        if case.name.startswith(families):
            try:
                case.export().lower(TractNNEF("0.23.9"))
            except T2NError:
                continue  # a refusal; whether it should be one is for test_cases
    missing = sorted({str(target) for target in all_of_them() if of_which(target, find(target)) not in used})
    assert not missing, f"decompositions without a case: {', '.join(missing)}"
