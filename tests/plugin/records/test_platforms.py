"""Platforms: what is one, their names in a merged file, and the way from each cell to its own."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from pytest_t2n.records.file import encode, read_records, write_records
from pytest_t2n.records.index import completeness_of
from pytest_t2n.records.merge import merge_files
from pytest_t2n.records.platform import differences, names_of, platform_of, this_platform
from pytest_t2n.records.schema import (
    SCHEMA,
    CellLine,
    EngineLine,
    PlanLine,
    PlatformLine,
    Record,
    RecordError,
    RunLine,
    cells_of,
)
from pytest_t2n.report.matrix import Matrix
from t2n_core.engine.processor import Processor
from tests.plugin.report.many_records import whole
from tests.plugin.suites import marked
from tests.releases import RECENT

EPYC = Processor("AuthenticAMD", "AMD EPYC", ("avx512f", "fma"), 2)
GRAVITON = Processor("ARM", "part 0xd40", ("asimd", "sve2"), 4)
VERSIONS = {"python": "3.11.7", "numpy": "2.1.0", "torch": "2.9.0"}


def platform(processor: Processor = EPYC, machine: str = "x86_64", environment=None, **versions: str) -> PlatformLine:
    return platform_of(processor, environment or {}, VERSIONS | versions, system="linux", machine=machine)


X86, ARM = platform(), platform(GRAVITON, "aarch64")


def records_on(line: PlatformLine, *cases: str, status: str = "pass", sha256: str = "ab", exporter=None):
    """A run of one release of tract on a platform."""
    engine = EngineLine("tract", RECENT, RECENT, sha256=sha256, platform=line.key)
    more = {"exported": exporter.key} if exporter else {}
    cells = [
        CellLine(SCHEMA, f"{case}[tract-{RECENT}]", case, "tract", RECENT, RECENT, status, "compare", **more)
        for case in cases
    ]
    run = RunLine(
        SCHEMA,
        "2026-01-02T03:04:05+00:00",
        [engine],
        line.versions,
        "linux",
        platforms=[line, *([exporter] if exporter else [])],
    )
    return whole([run, *(msgspec.structs.replace(cell, platform=line.key) for cell in cells)])


def merge_records(files: dict[str, list[Record]], **options: bool) -> list[Record]:
    """The records of the merged file of files with these records."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file, records in files.items():
            write_records(folder / f"{file}.jsonl", records)
        merge_files([folder / f"{file}.jsonl" for file in files], folder / "merged.jsonl", **options)
        return read_records(folder / "merged.jsonl")


def test_a_platform_is_what_decides_about_numbers():
    assert platform().key == X86.key
    assert platform(environment={"HOME": "/x", "TRACT_CPU_ISA": "-fma", "OMP_NUM_THREADS": ""}).key == X86.key
    others = [
        ARM,
        platform(Processor("AuthenticAMD", "AMD EPYC", ("avx512f",), 2)),
        platform(Processor("AuthenticAMD", "AMD EPYC", ("avx512f", "fma"), 4)),
        platform(environment={"OMP_NUM_THREADS": "1"}),
        platform(environment={"ATEN_CPU_CAPABILITY": "default"}),
        platform(numpy="2.2.0"),
    ]
    assert len({line.key for line in (X86, *others)}) == 1 + len(others)


def test_names_say_what_differs_and_no_more():
    assert names_of([X86, X86]) == {X86.key: ""}
    assert names_of([X86, ARM]) == {X86.key: "x86_64", ARM.key: "aarch64"}
    newer = platform(numpy="2.2.0")
    assert names_of([X86, newer]) == {X86.key: "numpy 2.1.0", newer.key: "numpy 2.2.0"}
    names = names_of([X86, newer, ARM])
    assert names == {X86.key: "x86_64, numpy 2.1.0", newer.key: "x86_64, numpy 2.2.0", ARM.key: "aarch64, numpy 2.1.0"}
    few = platform(Processor("AuthenticAMD", "AMD EPYC", ("fma",), 2))
    assert names_of([X86, few]) == {X86.key: X86.key, few.key: few.key}
    one_thread, two = (platform(environment={"OMP_NUM_THREADS": count}) for count in "12")
    assert names_of([one_thread, two]) == {one_thread.key: "OMP_NUM_THREADS=1", two.key: "OMP_NUM_THREADS=2"}
    assert names_of([X86, one_thread]) == {X86.key: X86.key, one_thread.key: "OMP_NUM_THREADS=1"}
    assert differences(X86, newer) == ["numpy"]
    assert differences(X86, few) == ["features"]


def test_x86_and_arm_are_columns_of_one_file():
    merged = merge_records({"x86": records_on(X86, "a", "b"), "arm": records_on(ARM, "a", "b", sha256="cd")})
    matrix = Matrix.of(merged)
    assert [column.title for column in matrix.columns] == [f"tract {RECENT} on x86_64", f"tract {RECENT} on aarch64"]
    assert [column.sha256 for column in matrix.columns] == ["ab", "cd"]
    assert [len(matrix.column(index)) for index in (0, 1)] == [2, 2]
    (run,) = (line for line in merged if isinstance(line, RunLine))
    platforms = {line.key: line for line in run.platforms}
    assert [platforms[cell.platform].machine for cell in cells_of(merged)] == ["x86_64"] * 2 + ["aarch64"] * 2
    again = merge_records({"both": merged, "more": records_on(platform(numpy="2.2.0"), "a")})
    titles = [column.title for column in Matrix.of(again).columns]
    assert titles == [
        f"tract {RECENT} on x86_64, numpy 2.1.0",
        f"tract {RECENT} on aarch64, numpy 2.1.0",
        f"tract {RECENT} on x86_64, numpy 2.2.0",
    ]


def test_a_file_of_two_platforms_is_whole_with_the_cells_of_both():
    by_platform = {"x86": records_on(X86, "a", "b"), "arm": records_on(ARM, "a", "b")}
    merged = merge_records(by_platform)
    state = completeness_of(merged)
    assert (state.planned, state.found, state.notice) == (4, 4, "")
    again = completeness_of(merge_records({"both": merged, "more": records_on(platform(numpy="2.2.0"), "a")}))
    assert (again.planned, again.notice) == (5, "")
    lost = [
        record
        for record in merged
        if not (isinstance(record, CellLine) and (record.case, record.platform) == ("b", ARM.key))
    ]
    assert completeness_of(lost).notice == "incomplete: 3 of 4 cells"
    with pytest.raises(RecordError, match=r"lost\.jsonl: incomplete: 3 of 4 cells"):
        merge_records({"lost": lost})
    assert statuses(lost) == {"x86_64": ["pass", "pass"], "aarch64": ["pass", "not_run"]}
    without_cells = [record for record in by_platform["arm"] if isinstance(record, RunLine | PlanLine)]
    merged = merge_records({"x86": by_platform["x86"], "arm": without_cells}, allow_incomplete=True)
    assert completeness_of(merged).notice == "incomplete: 2 of 4 cells"
    assert statuses(merged) == {"x86_64": ["pass", "pass"], "aarch64": ["not_run", "not_run"]}


def statuses(records):
    """The statuses of each column, by the name of its platform."""
    matrix = Matrix.of(records)
    return {column.on: [cell.status for cell in matrix.column(index)] for index, column in enumerate(matrix.columns)}


def test_two_numpys_are_columns_of_one_file_and_one_platform_is_none():
    newer = platform(numpy="2.2.0")
    merged = merge_records({"old": records_on(X86, "a"), "new": records_on(newer, "a")})
    assert {cell.engine for cell in cells_of(merged)} == {
        f"tract {RECENT} on numpy 2.1.0",
        f"tract {RECENT} on numpy 2.2.0",
    }
    (run,) = (line for line in merged if isinstance(line, RunLine))
    assert run.versions == {"python": "3.11.7", "torch": "2.9.0"}, "what differs is in the platforms"
    same = merge_records({"one": records_on(X86, "a"), "two": records_on(X86, "b")})
    assert [column.title for column in Matrix.of(same).columns] == [f"tract {RECENT}"]
    assert b"'on'" not in encode(same[0]).encode()
    with pytest.raises(RecordError, match="in more than one file"):
        merge_records({"one": records_on(X86, "a"), "two": records_on(X86, "a")})
    with pytest.raises(RecordError, match="another binary"):
        merge_records({"one": records_on(X86, "a"), "two": records_on(X86, "b", sha256="cd")})


def test_shards_of_two_platforms_have_each_cell_once():
    def shard(index, line, *cases):
        nodeids = [f"{case}[tract-{RECENT}]" for case in ("a", "b")]
        of_shard = {"shard": f"{index}/2", "sha256": "digest", "nodeids": nodeids}
        return [
            msgspec.structs.replace(record, **of_shard) if isinstance(record, PlanLine) else record
            for record in records_on(line, *cases)
        ]

    merged = merge_records({"one": shard(1, ARM, "b"), "two": shard(2, X86, "a")})
    assert [(cell.case, cell.engine) for cell in cells_of(merged)] == [
        ("a", f"tract {RECENT} on x86_64"),
        ("b", f"tract {RECENT} on aarch64"),
    ]
    state = completeness_of(merged)
    assert (state.planned, state.notice) == (2, "")
    with pytest.raises(RecordError, match="in more than one file"):
        merge_records({"one": shard(1, ARM, "a", "b"), "two": shard(2, X86, "a")})


def test_exporters_alone_make_no_columns():
    merged = merge_records({"a": records_on(X86, "a", exporter=ARM), "b": records_on(X86, "b")})
    assert [column.title for column in Matrix.of(merged).columns] == [f"tract {RECENT}"]
    (run,) = (line for line in merged if isinstance(line, RunLine))
    assert {line.key for line in run.platforms} == {X86.key, ARM.key}
    assert [cell.exported for cell in cells_of(merged)] == [ARM.key, ""]


def test_every_record_of_a_session_leads_to_its_platform(suite, mode):
    suite.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.nnef_export
        @pytest.mark.parametrize("model", ["pass", "mismatch", "crash", "unsupported", "refused"])
        def test_model(model):
            return model, (1,)

        @pytest.mark.nnef_export
        @pytest.mark.skip
        def test_skipped():
            return "pass", (1,)
        """
    )
    suite.run("--t2n-report=site", engines="0.22,0.23", mode=mode)
    run, *rest = suite.matrix
    here = this_platform()
    (line,) = run["platforms"]
    assert (line["model"], line["vendor"], line["cores"]) == (here.model, here.vendor, here.cores)
    assert line["versions"]["numpy"] == here.versions["numpy"]
    assert "features" in line
    cells = [record for record in rest if record["type"] == "cell"]
    assert len(cells) == 12
    assert {cell["platform"] for cell in cells} == {line["key"]}
    for engine in run["engines"]:
        assert (engine["tier"], engine["runtime"], engine["platform"]) == ("native", "cpu", line["key"])
        assert engine["environment"]["OMP_NUM_THREADS"] == "1"
        kernels = {re.sub("[-_]", "", name) for name in engine["kernels"]}
        assert kernels <= {name.replace("_", "") for name in here.features}


def test_a_session_goes_on_only_on_its_own_platform(suite):
    suite.pytester.makepyfile(marked('["pass", "mismatch"]'))
    suite.run("--t2n-report=site", engines="0.23")
    path = suite.path / "site" / "matrix.jsonl"
    text = path.read_text()
    model = this_platform().model
    path.write_text(text.replace(model, "Another CPU").replace(this_platform().key, "0" * 12))
    result = suite.run("--t2n-report=site", "--t2n-resume", engines="0.23")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*was written with another model; start again"])
    path.write_text(text.replace(f'"platform":"{this_platform().key}"', '"platform":""'))
    result = suite.run("--t2n-report=site", "--t2n-resume", engines="0.23")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*was written with another platform; start again"])
