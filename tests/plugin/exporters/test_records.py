"""Records of sessions with other exporters: merged, compared, queried, expected, shown, and judged again."""

from __future__ import annotations

import csv
import io
import json

import pytest

from pytest_t2n.cli import main
from pytest_t2n.records.file import read_records
from pytest_t2n.records.schema import cells_of
from tests.plugin.exporters.toys import CACHE, FAULTS, TEST
from tests.plugin.report.test_report import payload
from tests.releases import RECENT
from tests.starter import FOR_EXPORTS


def run(suite, *options: str):
    arguments = ("--t2n-judge=strict", CACHE, *options)
    return suite.run(*arguments, engines=RECENT, alone=True, modules=FOR_EXPORTS)


def cells_in(folder):
    return {cell.engine: cell for cell in cells_of(read_records(folder / "matrix.jsonl"))}


def test_records_of_two_sessions_are_merged_compared_and_queried(suite, capsys):
    suite.pytester.makeconftest(FAULTS)
    suite.pytester.makepyfile(TEST)
    run(suite, "--t2n-report=own").assert_outcomes(passed=1)
    run(suite, "--t2n-report=others", "--t2n-exporter=toy,toy-sizes").assert_outcomes(passed=1, failed=1)
    both = suite.path / "both"
    assert main(["matrix", "merge", *(str(suite.path / name) for name in ("own", "others")), "-o", str(both)]) == 0
    t2n, toy, sizes = (f"{name}tract {RECENT}" for name in ("", "toy ", "toy-sizes "))
    assert list(cells_in(both)) == [t2n, toy, sizes]
    capsys.readouterr()

    assert main(["matrix", "diff", str(both), "--engines", t2n, toy]) == 0
    assert main(["matrix", "diff", str(both), "--engines", t2n, sizes, "--json"]) == 1
    (change,) = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert (change["before"], change["after"]) == ("pass close", "mismatch at compare")

    for names, count in (("t2n", 1), ("toy", 1), ("t2n,toy-sizes", 2), ("torch-onnx", 0)):
        main(["matrix", "query", str(both), "--exporter", names, "--json"])
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert len(lines) == count
        assert {line.get("exporter", "t2n") for line in lines} <= set(names.split(","))
    assert main(["matrix", "csv", str(both)]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["exporter"] for row in rows] == ["", "toy", "toy-sizes"]

    page = payload((both / "index.html").read_text("utf-8"))
    assert [column["title"] for column in page["columns"]] == [t2n, toy, sizes]
    selects = [column["select"] for column in page["columns"]]
    assert selects == [
        f"--t2n-tract={RECENT}{more}" for more in ("", " --t2n-exporter=toy", " --t2n-exporter=toy-sizes")
    ]


def test_a_failure_of_one_exporter_is_expected_of_it_alone(suite):
    suite.pytester.makeconftest(FAULTS)
    suite.pytester.makepyfile(TEST)
    options = ("--t2n-exporter=t2n,toy,toy-sizes,toy-state", "--t2n-expect=known.toml")
    run(suite, *options, "--t2n-accept")
    text = (suite.path / "known.toml").read_text("utf-8")
    assert text.count("[[expect]]") == 2
    assert f'engine = "toy-sizes tract=={RECENT}"' in text
    run(suite, *options).assert_outcomes(passed=2, xfailed=2)
    (suite.path / "known.toml").write_text(text.replace("toy-sizes", "toy"), encoding="utf-8")
    result = run(suite, *options)
    result.assert_outcomes(passed=1, failed=2, xfailed=1)


@pytest.mark.parametrize("option", ["bundle", "bundle-failures"])
def test_a_cell_of_another_exporter_is_judged_again_from_its_bundle(suite, option, capsys):
    suite.pytester.makeconftest(FAULTS)
    suite.pytester.makepyfile(TEST)
    run(
        suite,
        "--t2n-report=site",
        f"--t2n-{option}=kept",
        "--t2n-exporter=t2n,toy,toy-sizes,toy-state,torch-onnx-torchscript",
    )
    first = cells_in(suite.path / "site")
    bundle_root = suite.path / "kept"
    bundles = [bundle_root] if option == "bundle" else sorted(path for path in bundle_root.iterdir() if path.is_dir())
    assert len(bundles) == (1 if option == "bundle" else 3)
    for bundle in bundles:
        again = suite.path / "again" / bundle.name
        arguments = ["--bundle", str(bundle), "--tract", RECENT, CACHE.replace("--t2n-", "--"), "--report", str(again)]
        assert main(["matrix", "run", *arguments, "--offline"]) == 1, capsys.readouterr().err
        for title, cell in cells_in(again).items():
            for name in ("nodeid", "exporter", "status", "author"):
                assert getattr(cell, name) == getattr(first[title], name)
    authors = {cell.exporter: cell.author for cell in first.values()}
    assert authors == {
        "": "",
        "toy": "",
        "toy-sizes": "exporter",
        "toy-state": "exporter",
        "torch-onnx-torchscript": "engine",
    }
