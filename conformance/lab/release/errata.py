"""The errata in a new release: the nets that show them, with their repairs and without."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from conformance.lab.machine import ROOT

RELEASE: Final = "T2N_SCANNED_RELEASE"
"""The variable by which tests of errata take one more release."""
TESTS: Final = ("tests/contract/nnef/test_quirks.py", "tests/contract/test_hazards.py")
_CASES: Final = (
    "test_the_repair_is_right_and_needed",
    "test_a_release_without_the_quirk_is_right",
    "test_refused_exactly_if_wrong",
)
_MENDED: Final = "right without the repair", "refused, and right"
_SECONDS: Final = 1800.0
_PARAMETERS: Final = re.compile(r"\[(.*)\]$")


def compare_errata(release: str, against: str, folder: Path) -> Sequence[str]:
    """Return which errata of the release before are mended in a release, and which of their repairs no longer work."""
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "junit.xml"
    selection = f"{release} and ({' or '.join(_CASES)})"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS, "-k", selection]
    subprocess.run(
        [*command, f"--junitxml={report}"], cwd=ROOT, env={**os.environ, RELEASE: release}, check=False,
        stdout=subprocess.DEVNULL, timeout=_SECONDS,
    )  # fmt: skip
    return describe_errata(report, release)


def describe_errata(report: Path, release: str) -> list[str]:
    """Return the lines about a JUnit results file. Raises RuntimeError if no test of errata ran."""
    holding = 0
    mended: list[str] = []
    broken: list[str] = []
    for case in ElementTree.parse(report).iter("testcase"):
        name = _name(case.get("name", ""), release)
        failure = next((case.find(kind) for kind in ("failure", "error") if case.find(kind) is not None), None)
        if failure is None:
            holding += case.find("skipped") is None
        else:
            message = (failure.get("message") or "no message").splitlines()[0]
            (mended if any(text in message for text in _MENDED) else broken).append(f"- `{name}`: {message}")
    if not (holding or mended or broken):
        raise RuntimeError(f"no test of errata ran for tract {release}: see {report}")
    lines = [f"{holding} errata and refusals hold as they are written."]
    for title, entries in (("Mended", mended), ("To be repaired otherwise, or newly wrong", broken)):
        lines += ["", f"{title}:", "", *entries] if entries else []
    return lines


def _name(test: str, release: str) -> str:
    """Return the erratum of a test's name: `swapped_sub` of `test_…[swapped_sub-0.24.0]`."""
    parameters = _PARAMETERS.search(test)
    return (parameters[1] if parameters else test).replace(release, "").strip("-")
