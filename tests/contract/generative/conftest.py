"""Makes the libraries of models loadable next to a CPU build of torch, and leaves out what few tests are about."""

from __future__ import annotations

import pytest

import conformance.cases.models.libraries  # noqa: F401
from t2n_core.torch_graph.proofs.regions import Regions


@pytest.fixture(autouse=True)
def without_proofs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every proof of a range for successful unless the test is marked `proofs`.

    Proofs capture the decoder up to three times more, which is half of the time of an export.
    """
    if request.node.get_closest_marker("proofs") is None:
        monkeypatch.setattr(Regions, "prove", lambda *_: True)
