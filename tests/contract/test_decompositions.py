"""Every decomposition of ours is used by some case."""

from __future__ import annotations

from typing import Any

import pytest

from t2n_core import TractNNEF
from t2n_core.errors import T2NError
from t2n_core.torch_graph import decompositions
from tests.contract.cases import all_cases

FAMILIES = ("linalg/", "special/", "counting/", "matmul/")


def test_every_decomposition_has_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    used = set()
    find = decompositions.find

    def recording(target: Any) -> Any:
        found = find(target)
        if found is not None:
            used.add(found)
        return found

    monkeypatch.setattr(decompositions, "find", recording)
    for case in all_cases():
        if case.name.startswith(FAMILIES):
            try:
                case.export().lower(TractNNEF("0.23.9"))
            except T2NError:
                continue  # a refusal; whether it should be one is for test_cases
    missing = sorted({str(target) for target in decompositions.all_decompositions() if find(target) not in used})
    assert not missing, f"decompositions without a case: {', '.join(missing)}"
