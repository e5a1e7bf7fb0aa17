"""A PyTorch that is newer than the tested ones is used, with one warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from t2n_core.errors import UntestedTorchWarning
from t2n_core.torch_graph.compat.releases import TESTED, untested_note, warn_if_untested


@pytest.fixture(autouse=True)
def _forget_warnings() -> Iterator[None]:
    warn_if_untested.cache_clear()
    yield
    warn_if_untested.cache_clear()


@pytest.mark.parametrize("installed", [*TESTED, "2.13.4", "2.15.9+cpu", "2.15.0a0+git1234567"])
def test_a_tested_release_has_no_note(installed: str) -> None:
    assert untested_note(installed) == ""


def test_a_newer_release_is_warned_of_once() -> None:
    with pytest.warns(UntestedTorchWarning, match=rf"torch 2\.90\.0 is newer than {TESTED[-1]}, the newest release"):
        warn_if_untested("2.90.0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_untested("2.90.0")
