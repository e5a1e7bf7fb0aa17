"""Releases of tract by their place, from the table of known wheels: tests name no newest release themselves."""

from __future__ import annotations

import os
from typing import Any

import pytest
from packaging.version import Version

from t2n_core.engine.provision.known import newest_of_lines

LINES = newest_of_lines()
"""The newest release of each minor line, ascending."""
OLDEST, NEWEST = LINES[0], LINES[-1]
RECENT = next(release for release in LINES if release.startswith("0.23."))
"""The newest release of the line that tests and pages select: `0.23`. Later lines do not change it."""
SCANNED = os.environ.get("T2N_SCANNED_RELEASE", "").split()
"""Releases that `conformance.lab.release` tries the errata in, besides those of the tests; none in all other runs."""


def on_each_line(*always: str, since: str = OLDEST) -> list[Any]:
    """Return the newest release of each line as values of a parameter; those not in `always` are tested nightly."""
    lines = [release for release in LINES if Version(release) >= Version(since)]
    return [
        release if release in always else pytest.param(release, marks=pytest.mark.nightly)
        for release in sorted(lines, key=lambda release: (release not in always, Version(release)))
    ]
