"""The table of what a run over releases found, and the errata that it proves."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.dialect.errata import ERRATA, found
from conformance.dialect.findings import FILE, FILE_OF_DECLUTTER, FILE_ON_CUDA, Finding, found_in, read, write
from conformance.dialect.judge import Verdict
from conformance.dialect.known import explanation
from conformance.dialect.known.cuda import ON_CUDA
from conformance.dialect.known.declutter import DECLUTTERED
from t2n_core.dialect.cases import cases
from t2n_core.engine.paths import EnginePath
from t2n_core.errors import InputError
from t2n_core.nnef.spec import spec_for

RELEASES = ["0.21.8", "0.21.9", "0.21.10", "0.22.1"]


def test_cases_that_fail_alike_are_one_finding() -> None:
    verdicts = {
        "0.21.10": {("sub", 0): "right", ("sub", 1): "right"},
        "0.21.9": {("sub", 0): "wrong", ("sub", 1): "wrong"},
        "0.21.8": {("sub", 0): "wrong", ("sub", 1): "wrong"},
        "0.22.1": {("sub", 0): "right", ("sub", 1): "refused"},
    }
    assert found_in(verdicts, verdicts) == [  # type: ignore[arg-type]
        Finding("sub", "refused", ("0.22.1",), (1,)),
        Finding("sub", "wrong", ("0.21.8", "0.21.9"), (0, 1)),
    ]


def test_a_release_between_two_equal_ones_is_like_them() -> None:
    verdicts = {"0.21.8": {("sub", 0): "wrong", ("sub", 1): "right"}, "0.21.9": {("sub", 1): "right"},
                "0.21.10": {("sub", 0): "wrong", ("sub", 1): "right"}}  # fmt: skip
    assert found_in(verdicts, verdicts) == [Finding("sub", "wrong", ("0.21.8", "0.21.9", "0.21.10"), (0,))]  # type: ignore[arg-type]


def test_a_boundary_is_not_guessed() -> None:
    verdicts = {"0.21.8": {("sub", 0): "wrong", ("sub", 1): "right"}, "0.21.9": {("sub", 1): "right"},
                "0.21.10": {("sub", 0): "right", ("sub", 1): "right"}}  # fmt: skip
    with pytest.raises(InputError, match=r"case 0 of `sub` changes within 0\.21\.9, where it was not judged"):
        found_in(verdicts, verdicts)  # type: ignore[arg-type]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    findings = [
        Finding("sub", "wrong", ("0.21.8", "0.21.9", "0.22.1"), (0, 7)),
        Finding("add", "refused", ("0.21.10",), (3,)),
    ]
    file = tmp_path / "findings.tsv"
    write(findings, reversed(RELEASES), file)
    assert "sub\twrong\t0.21.8..0.21.9,0.22.1\t0,7" in file.read_text()
    assert read(file) == (RELEASES, findings)


NOT_FOUND = {
    "of several statements": {
        *("uniform_tensor", "misread_unit_axis", "scalar_product", "tiled_operand", "folded_batch", "scaled_blocks"),
        *("subtracted_convolution", "moved_stride", "inserted_axis", "reshape_of_scan", "reshape_of_sum"),
        *(
            "squeeze_of_sum",
            "product_of_concat",
            "axis_of_constant",
            "transpose_of_scan",
            "reshape_before_scan",
            "reshape_of_points",
            "zero_operand",
            "scalar_beside_reshape",
        ),
    },
    "in no release of the run, or in some sizes": {
        *("swapped_sub", "inner_size"),
        "float16 with a float32 accumulator aborts the process or is refused",
    },
    "the definition reads tract's layout": {
        "the filter is not laid out as [out, in/groups, …], the only layout tract knows"
    },
    "no case has such dynamic axes": {
        "the engine does not see that both sides of its own reshape have equally many elements",
        "the length of a range that ends at a size of an axis is not computed: `TDim is not a number`",
        "the optimiser exchanges the operands without end",
    },
    "no case has both axes": {
        "a mean along an axis without elements ends the process, from 0.23.5 on along the last axis only"
    },
}
"""The errata that the run did not find with their ranges, by the reason."""


def test_the_errata_that_the_run_found() -> None:
    releases, findings = read()
    proven = found(releases, findings)
    missing = {getattr(erratum, "name", erratum.reason) for erratum in ERRATA if erratum not in proven}
    assert missing == set().union(*NOT_FOUND.values())
    assert len(proven) == 46
    wrong_caches = {"tract_transformers_window_kv_sdpa", "tract_transformers_quantized_kv_sdpa"}
    assert wrong_caches <= set().union(*(erratum.operators for erratum in proven))


@pytest.mark.parametrize(
    ("file", "runtime", "path"),
    [
        (FILE, "cpu", EnginePath.OPTIMISE_ONLY),
        (FILE_OF_DECLUTTER, "cpu", EnginePath.DECLUTTER),
        (FILE_ON_CUDA, "cuda", EnginePath.DECLUTTER),
    ],
)
def test_each_finding_is_explained(file: Path, runtime: str, path: EnginePath) -> None:
    _, findings = read(file)
    drawn = {op: list(cases(op)) for op in {finding.op for finding in findings}}
    unknown = [
        (finding.op, number, release, finding.status)
        for finding in findings
        for release in {finding.releases[0], finding.releases[-1]}
        for number in finding.cases
        if explanation(Verdict(drawn[finding.op][number], number, release, finding.status, "", runtime, path)) is None
    ]
    assert unknown == []


def test_each_entry_of_declutter_is_found() -> None:
    _, findings = read(FILE_OF_DECLUTTER)
    drawn = {op: list(cases(op)) for op in {finding.op for finding in findings}}
    for entry in DECLUTTERED:
        met = [
            release
            for finding in findings
            for release in finding.releases
            for number in finding.cases
            if entry.explains(Verdict(drawn[finding.op][number], number, release, finding.status))
        ]
        assert met, entry.reason


def test_each_entry_on_cuda_is_found_in_all_its_releases() -> None:
    releases, findings = read(FILE_ON_CUDA)
    drawn = {op: list(cases(op)) for op in {finding.op for finding in findings}}
    for entry in ON_CUDA:
        met = {
            release
            for finding in findings
            if finding.op in entry.operators
            for release in finding.releases
            for number in finding.cases
            if entry.explains(Verdict(drawn[finding.op][number], number, release, finding.status, "", "cuda"))
        }
        possible = {
            release
            for release in releases
            if entry.in_release(release) and any(spec_for("tract", release).has(op) for op in entry.operators)
        }
        assert met == possible, entry.reason


def test_a_boundary_that_is_moved_is_noticed() -> None:
    releases, findings = read()
    moved = [
        Finding(finding.op, finding.status, tuple(r for r in finding.releases if r != "0.22.4"), finding.cases)
        for finding in findings
    ]
    assert len(found(releases, moved)) < 30
    assert FILE.name == "findings.tsv"
