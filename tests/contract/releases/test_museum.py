"""Archives of earlier versions and of another exporter: each release of the engine reads them, or it is known why not.

`python -m tools.museum` writes archives of a new version beside those that are there.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.specifiers import SpecifierSet

from t2n_core.check.file import check_file, file_request, open_checked
from t2n_core.engine.pool import TractRunner
from t2n_core.level import TractCheckTolerance
from t2n_core.parity.judging.judgement import Judgement
from tests.releases import NEWEST, on_each_line

FOLDER = Path(__file__).parents[2] / "museum"
ARCHIVES = sorted(FOLDER.glob("*/*/*.nnef.tgz"))
SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Archives that some releases do not read."""

    archives: str
    """A pattern of paths below the museum."""
    tract: SpecifierSet
    message: str
    """A part of the engine's error."""


def unreadable() -> Iterator[Unreadable]:
    """Yield the entries of `unreadable.toml`."""
    for entry in tomllib.loads((FOLDER / "unreadable.toml").read_text("utf-8"))["unreadable"]:
        yield Unreadable(entry["archives"], SpecifierSet(entry["tract"]), entry["message"])


def arrays_of(archive: Path) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the inputs and PyTorch's outputs of the net of an archive."""
    with np.load(FOLDER / f"{archive.name.removesuffix('.nnef.tgz')}.npz") as arrays:
        return (arrays["x"],), (arrays["y"],)


@pytest.mark.parametrize("release", on_each_line("0.19.15", NEWEST))
def test_a_release_reads_all_archives(release: str, tract_engine: Callable[[str], TractRunner]) -> None:
    engine, wrong = tract_engine(release), []
    for archive in ARCHIVES:
        file, (inputs, expected) = open_checked(archive, {}), arrays_of(archive)
        criteria = Judgement(TractCheckTolerance.APPROXIMATE)
        request = file_request(file, [inputs], [expected], "tract", criteria, SECONDS)
        outcome = check_file(file, engine, "tract", request)
        name = archive.relative_to(FOLDER)
        reasons = [entry for entry in unreadable() if name.match(entry.archives) and entry.tract.contains(release)]
        if not reasons and not outcome.passed:
            wrong.append(f"{name}: {outcome.describe()[:300]}")
        if reasons and not any(reason.message in outcome.describe() for reason in reasons):
            wrong.append(f"{name} is listed as unreadable, and: {outcome.describe()[:300]}")
    assert not wrong, "\n".join(wrong)


def test_the_definitions_compute_all_archives() -> None:
    for archive in ARCHIVES:
        inputs, (expected,) = arrays_of(archive)
        ((sample,), _) = open_checked(archive, {}).samples([inputs], "tract")
        np.testing.assert_allclose(sample.expected[0], expected, rtol=1e-4, atol=1e-5, err_msg=str(archive))


def test_each_archive_has_arrays_and_each_entry_an_archive() -> None:
    assert len(ARCHIVES) >= 49
    assert all((FOLDER / f"{path.name.removesuffix('.nnef.tgz')}.npz").exists() for path in ARCHIVES)
    names = [path.relative_to(FOLDER) for path in ARCHIVES]
    assert all(any(name.match(entry.archives) for name in names) for entry in unreadable())
