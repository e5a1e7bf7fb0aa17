"""`t2n upgrade` reports what another release of tract changes for a file. It imports torch for --model only."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pytest_t2n.cli.busy import busy
from pytest_t2n.cli.output import say
from pytest_t2n.cli.parser import SIZE_HELP, size_argument
from pytest_t2n.cli.upstream.releases import add_given, given_of, version_given
from t2n_core.errors import InputError

if TYPE_CHECKING:
    from packaging.version import Version

    from pytest_t2n.cli.upstream.given import Given
    from t2n_core.parity.request import CheckRequest
    from t2n_core.releases.judges import Releases
    from t2n_core.releases.upgrade.report import UpgradeReport

_SECONDS = 10.0
"""Time between two lines of progress without a terminal."""
_SETS = 10
"""Sets of inputs that are drawn for an archive with dynamic axes: two for each size, a size of 1 among these."""


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_given(parser)
    parser.add_argument("--from", required=True, dest="before", metavar="VERSION", help="the release in use")
    parser.add_argument("--to", required=True, dest="after", metavar="VERSION", help="the release to upgrade to")
    parser.add_argument("--size", action="append", default=[], type=size_argument, metavar="NAME=N", help=SIZE_HELP)
    parser.add_argument("--paths", default="", metavar="NAMES", help="declutter, optimise-only, fixed-symbols: all")
    parser.add_argument("--profile", action="store_true", help="time of each statement, CPU time and memory too: 12 s")
    parser.add_argument(
        "--model",
        metavar="MODULE:CALLABLE",
        help="the model of the file, as `t2n export` takes it, which needs torch: exported again for the newer release",
    )
    parser.add_argument(
        "--dynamic",
        action="append",
        default=[],
        metavar="INPUT:AXIS=NAME",
        help="a free size of --model, as `t2n export` takes it",
    )
    parser.add_argument("--no-times", action="store_true", help="compare no times")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each case")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the page in Markdown there")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the page of each case; return 0 if the upgrade is safe for all of them, else 1. Raises InputError."""
    from t2n_core.engine import close_all
    from t2n_core.releases.judges import Releases
    from t2n_core.releases.upgrade.page import page
    from t2n_core.releases.upgrade.report import Verdict

    before, after = version_given(options.before), version_given(options.after)
    if before >= after:
        raise InputError(f"{after} is not newer than {before}", hint="--from is the release in use, --to a newer one")
    files = _files(options)
    if options.model is not None and len(files) > 1:
        raise InputError("--model is the model of one file", hint="name one with --case")
    safe, pages = True, []
    try:
        with (
            TemporaryDirectory() as folder,
            Releases(offline=options.offline, cache_dir=options.cache_dir) as releases,
        ):
            again = _export_again(options, Path(folder)) if options.model is not None else None
            for case in files:
                with busy(f"{case.name}: running tract {before} and {after}", seconds=_SECONDS):
                    report = _report(options, case, releases, (before, after), again)
                safe &= report.verdict is Verdict.SAFE
                pages.append(page(report))
                if options.json:
                    print(json.dumps(report.to_dict()))
                elif options.output is None:
                    say(pages[-1].rstrip("\n"))
                else:
                    say(report.headline)
    finally:
        close_all()
    if options.output is not None:
        options.output.write_text("\n".join(pages), "utf-8")
    return 0 if safe else 1


def _report(
    options: argparse.Namespace, case: Given, releases: Releases, both: tuple[Version, Version], again: Path | None
) -> UpgradeReport:
    from t2n_core.check.file import open_checked
    from t2n_core.engine.paths import parse_paths
    from t2n_core.releases.upgrade.report import report_upgrade

    return report_upgrade(
        releases,
        open_checked(case.request.archive, {}),
        _with_outputs(case),
        case.name,
        *both,
        paths=parse_paths(options.paths),
        times=not options.no_times,
        profile=options.profile,
        again=again,
    )


def _export_again(options: argparse.Namespace, folder: Path) -> Path:
    """Return the archive of the model that the options name, for the newer release. Raises T2NError."""
    from pytest_t2n.cli.exports.export import export_again

    archive = folder / "again.nnef.tgz"
    with busy(f"exporting {options.model} for tract {options.after}"):
        export_again(options.model, archive, options.after, options.dynamic, offline=options.offline)
    return archive


def _files(options: argparse.Namespace) -> list[Given]:
    """Return the input; an archive's drawn inputs have more sizes than `t2n check` draws. Raises InputError."""
    from t2n_core.nnef.reading.file_kind import is_onnx
    from t2n_core.parity.definitions import DEFINITIONS, samples_by_definitions

    sizes = dict(options.size)
    if is_onnx(options.path):
        return given_of(options, sizes)
    cases = []
    for case in given_of(options):
        request = case.request
        is_drawn = request.reference == DEFINITIONS
        if sizes and not is_drawn:
            raise InputError("--size is for inputs that are drawn")
        if is_drawn and request.samples[0].sizes:
            samples = samples_by_definitions(request.archive, drawing={"count": _SETS, "sizes": sizes})
            request = replace(request, samples=samples)
        cases.append(replace(case, request=request))
    return cases


def _with_outputs(case: Given) -> CheckRequest:
    """Return the check with expected outputs, or without if nothing computes them: releases can be compared alike."""
    from pytest_t2n.cli.upstream.given import with_outputs

    try:
        return with_outputs(case).request
    except InputError:
        samples = [replace(sample, expected=()) for sample in case.request.samples]
        return replace(case.request, samples=samples)
