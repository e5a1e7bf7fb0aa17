"""The sources of the spec tables in a checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2n_core.errors import InputError
from t2n_core.releases.scan.table import SpecSources, installed_rows

HEAD = "registry\toperator\tkind\tsince\tuntil\tparameters\tresults\tstatus\treason\n"
ROWS = (
    "tract_core\ta\tprimitive\t0.21.0\t0.23.8\tx: tensor<scalar>\ty: tensor<scalar>\tok\t\n"
    'tract_core\tb\tprimitive\t0.23.8\t0.23.8\tx: string = ""\ty: tensor<scalar>\tbroken\tits name resolves\n'
)


@pytest.fixture
def sources(tmp_path: Path) -> SpecSources:
    folder = tmp_path / "tools" / "spec_sources"
    folder.mkdir(parents=True)
    (folder / "tract_operators.tsv").write_text(HEAD + ROWS, "utf-8")
    (folder / "tract_releases.txt").write_text("0.21.0\n0.23.7\n0.23.8\n", "utf-8")
    return SpecSources(tmp_path)


def test_rows_of_an_earlier_table(sources: SpecSources) -> None:
    assert [(row["operator"], row["until"]) for row in sources.rows("0.23.7")] == [("a", "0.23.7")]


def test_rows_are_written_as_they_were_read(sources: SpecSources) -> None:
    sources.write(list(reversed(sources.rows("0.23.8"))), "0.24.0")
    assert (sources.folder / "tract_operators.tsv").read_text("utf-8") == HEAD + ROWS
    assert sources.releases() == ["0.21.0", "0.23.7", "0.23.8", "0.24.0"]


def test_a_folder_that_is_no_checkout(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no checkout"):
        SpecSources(tmp_path)


def test_installed_rows_name_parameters_as_the_source_does() -> None:
    (cast,) = (row for row in installed_rows("0.22.4") if row["operator"] == "tract_core_cast")
    assert (cast["until"], cast["parameters"]) == ("0.22.4", "input: tensor<scalar>, to: string")
