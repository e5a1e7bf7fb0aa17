"""`t2n bundle` writes cases in the layout of tract's own test cases, or files as a bundle for `t2n matrix run`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_t2n.cli.busy import busy
from pytest_t2n.cli.output import say
from pytest_t2n.cli.upstream.reduce import add_engine, each_case, engine_of
from pytest_t2n.cli.upstream.releases import add_given, given_of, version_given
from t2n_core.errors import InputError
from t2n_core.nnef.reading.file_kind import is_onnx

if TYPE_CHECKING:
    from pytest_t2n.cli.upstream.given import Given
    from t2n_core.engine.provision.resolved import ResolvedEngine
    from t2n_core.parity.request import CheckRequest
    from t2n_core.releases.judges import Releases
    from t2n_core.releases.search import ReleaseReport

ISSUE_FILE = "issue.md"


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_given(parser)
    add_engine(parser)
    parser.add_argument(
        "--format",
        choices=["tract", "matrix"],
        required=True,
        help="tract: graph or ONNX model, io.npz and runme.sh of a failing case; matrix: a bundle of the archives and "
        "ONNX models in a folder, for `t2n matrix run`",
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="the folder that is written")
    parser.add_argument("--title", default="", help="the first line of the issue; default: the name of the case")
    parser.add_argument("--keep-symbols", action="store_true", help="the failure needs sizes that are free")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write each case, and replay it in the failing release and the nearest right one; return 1 if it does not show.

    A bundle of files is only written.
    """
    if options.format == "matrix":
        from pytest_t2n.cli.upstream.archives import bundle_archives

        return bundle_archives(options)
    from pytest_t2n.cli.upstream.given import with_outputs
    from t2n_core.reduce.tract_case import TractCase, write_tract_case
    from t2n_core.releases.judges import Releases, archive_judge

    cases = given_of(options)
    with Releases(offline=options.offline, cache_dir=options.cache_dir) as releases:

        def write(upstream_case: Given, folder: Path) -> bool:
            engine = engine_of(options, upstream_case)
            if engine is None:
                raise InputError("the format tract is for the engine tract")
            upstream_case = with_outputs(upstream_case)
            alone = _failing(upstream_case, engine)
            (sample,) = alone.samples
            title = options.title or f"{upstream_case.name} in tract {engine.version}"
            level = alone.criteria.level  # as that in which releases are right
            case = TractCase.of(alone.archive, sample, title, level=level, keeps_symbols=options.keep_symbols)
            write_tract_case(case, folder)
            report = releases.search(archive_judge(releases, alone), fetches=0)
            (folder.parent / f"{folder.name}.{ISSUE_FILE}").write_text(
                _issue(title, upstream_case, alone, engine, report, folder), encoding="utf-8"
            )
            say(f"{upstream_case.name}: {folder}, {folder.name}.{ISSUE_FILE} beside it")
            return _replay(folder, engine, releases, report, options.timeout)

        with busy("replaying in releases of tract"):
            return each_case(cases, options.output, write)


def _failing(case: Given, engine: ResolvedEngine) -> CheckRequest:
    """Return the check of the first sample that fails. Raises InputError if none does."""
    from t2n_core.engine import engine_for
    from t2n_core.parity.check import check_parity

    for sample in case.request.samples:
        alone = replace(case.request, samples=[sample])
        if not check_parity(engine_for(engine), alone).passed:
            return alone
    raise InputError(f"{case.name} does not fail in tract {engine.version}")


def _issue(
    title: str, case: Given, alone: CheckRequest, engine: ResolvedEngine, report: ReleaseReport, folder: Path
) -> str:
    from t2n_core.check.mismatch.author import author_of
    from t2n_core.engine import engine_for
    from t2n_core.nnef.reading.binding import Signatures
    from t2n_core.reduce.case import read_program
    from t2n_core.reduce.issue import issue_text, verdict
    from t2n_core.reduce.oracles import DefinitionsOracle

    (sample,) = alone.samples
    program = read_program(alone.archive, sample.inputs, Signatures.of("tract", engine.version))
    reply = engine_for(engine).run(alone.archive, [sample.inputs], timeout=alone.timeout)
    reply = replace(reply, message=reply.message.replace(str(alone.archive), folder.name))
    has_definitions = not is_onnx(alone.archive)
    author = author_of(engine_for(engine), alone, sample) if has_definitions else None
    if author is not None:
        say(f"{case.name}: {verdict(author)}")
    expected = dict(zip(program.outputs, sample.expected, strict=True))
    right = report.nearest_right(version_given(engine.version))
    return issue_text(
        title,
        program,
        reply,
        expected,
        engine=f"tract {engine.version}",
        oracle=f"tract {right}" if right is not None else "" if has_definitions else alone.reference,
        report=report,
        origins=case.origins,
        place=_place(folder, engine.version),
        author=author,
        meant=DefinitionsOracle(alone.timeout).values(program, program.outputs) if has_definitions else {},
    )


def _place(folder: Path, version: str) -> str:
    """Return what the folder of a case holds, and the command that checks it in a wheel."""
    from t2n_core.reduce.tract_case import check_command

    paths = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
    files = ", ".join(f"`{path}`" for path in paths)
    return (
        f"`{folder.name}`, in the form of `harness/nnef-test-cases`: {files}. With the wheel of tract, in that folder:"
        f"\n\n```sh\n{check_command(folder, version)}\n```"
    )


def _replay(folder: Path, engine: ResolvedEngine, releases: Releases, report: ReleaseReport, timeout: float) -> bool:
    """Print the results of the case in a bad and in a good release, and return whether they are as expected."""
    from t2n_core.reduce.tract_case import replay
    from t2n_core.releases.boundaries import RIGHT, ending_of

    bad = version_given(engine.version)
    good = report.nearest_right(bad)
    pairs: Sequence[tuple[object, bool]] = [(bad, False), *([(good, True)] if good is not None else [])]
    shown = True
    for release, is_right in pairs:
        ending = ending_of(replay(folder, releases.engine(version_given(str(release))), timeout))
        say(f"  replayed in tract {release}: {ending}")
        shown &= (ending == RIGHT) is is_right
    return shown
