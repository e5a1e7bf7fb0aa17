"""Makes the libraries of models loadable next to a CPU build of torch, and leaves out proofs that few tests need."""

from __future__ import annotations

import pytest

import conformance.cases.models.libraries  # noqa: F401


@pytest.fixture(autouse=True)
def only_marked_proofs(request: pytest.FixtureRequest) -> None:
    """Leave out the proofs of ranges unless the test is marked `proofs`."""
    if request.node.get_closest_marker("proofs") is None:
        request.getfixturevalue("without_proofs")
