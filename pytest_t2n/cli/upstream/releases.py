"""`t2n bisect-releases` finds the releases of tract between which the result of a case changes, without torch."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.version import InvalidVersion, Version

from pytest_t2n.cli.busy import busy
from pytest_t2n.cli.output import say, warn
from pytest_t2n.config.settings import DEFAULT_TIMEOUT
from t2n_core.errors import InputError
from t2n_core.level import LEVELS

if TYPE_CHECKING:
    from pytest_t2n.cli.upstream.given import Given
    from t2n_core.parity.outcome import Outcome
    from t2n_core.releases.judges import Releases
    from t2n_core.releases.search import ReleaseReport

_SECONDS = 10.0
"""Time between two lines of progress without a terminal."""


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_given(parser)
    parser.add_argument("--good", action="append", default=[], metavar="VERSION", help="a release that is right")
    parser.add_argument("--bad", action="append", default=[], metavar="VERSION", help="a release that is not")
    parser.add_argument("--fetches", type=int, metavar="N", help="most releases to download beside these; default 7")
    parser.add_argument(
        "--by",
        choices=["outcome", "time"],
        default="outcome",
        help="time: where its speed changes, in the cached releases",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object for each case")
    parser.set_defaults(run=run)


def add_given(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the input, which several commands share."""
    parser.add_argument("path", type=Path, metavar="PATH", help="a bundle, an archive or an ONNX model")
    parser.add_argument(
        "--inputs",
        type=Path,
        metavar="FILE",
        help="inputs of the file, else drawn, and its outputs, else those by the definitions of its operators or by "
        "onnxruntime; or a folder of input_N.pb and output_N.pb",
    )
    parser.add_argument("--case", metavar="GLOB", help="of a bundle: only these, by the node id without the engine")
    parser.add_argument("--level", choices=list(LEVELS), help="instead of the level of the bundle")
    parser.add_argument("--timeout", type=float, default=DEFAULT_TIMEOUT, metavar="SECONDS", help="of one run")
    parser.add_argument("--offline", action="store_true", help="use engines of the cache only")
    parser.add_argument("--cache-dir", type=Path, help="where engines are kept")


def given_of(options: argparse.Namespace, sizes: Mapping[str, Any] | None = None) -> list[Given]:
    """Return the input given by `add_given`'s arguments; `sizes` are the sizes of drawn inputs. Raises InputError."""
    from dataclasses import replace

    from pytest_t2n.cli.upstream.given import read_given
    from t2n_core.parity.judging.judgement import Judgement

    more = {"timeout": options.timeout, **({"criteria": Judgement.parse(options.level)} if options.level else {})}
    cases = read_given(options.path, options.inputs, options.case, sizes)
    return [replace(case, request=replace(case.request, **more)) for case in cases]


def version_given(text: str) -> Version:
    """Return a version from the command line. Raises InputError."""
    try:
        return Version(text)
    except InvalidVersion:
        raise InputError(f"{text!r} is not a version of tract") from None


def run(options: argparse.Namespace) -> int:
    """Print the report of each case; return 1 if a release named good or bad is not, or none could be tried."""
    from t2n_core.releases.judges import Releases

    contradicted = False
    with Releases(offline=options.offline, cache_dir=options.cache_dir) as releases:
        for case in given_of(options):
            with busy(f"{case.name}: running releases of tract", seconds=_SECONDS) as show:
                if options.by == "time":
                    _show_times(options, releases, case)
                    continue
                report = _search(options, releases, case, show)
            if options.json:
                print(json.dumps({"case": case.name, **_plain(report)}))
            else:
                say(f"{case.name}: {report.describe()}")
            contradicted |= _report_contradictions(options, report) or not report.outcomes
    return int(contradicted)


def _search(options: argparse.Namespace, releases: Releases, case: Given, show: Callable[[str], None]) -> ReleaseReport:
    from pytest_t2n.cli.upstream.given import with_outputs, with_outputs_of
    from t2n_core.releases.judges import archive_judge
    from t2n_core.releases.search import MOST_FETCHES

    good = [version_given(text) for text in options.good]
    if not case.expects:
        case = with_outputs_of(case, releases.engine(good[0])) if good else with_outputs(case)
    versions = [*good, *(version_given(text) for text in options.bad)]
    fetches = MOST_FETCHES if options.fetches is None else options.fetches
    judge = archive_judge(releases, case.request)
    sure = list(dict.fromkeys([*releases.cached, *versions]))
    numbers = count(1)

    def outcome_of(release: Version) -> Outcome:
        progress = f"{next(numbers)} of {len(sure)}" if release in sure else "fetched for a boundary"
        show(f"{case.name}: tract {release}, {progress}")
        return judge(release)

    return releases.search(outcome_of, versions, fetches)


def _show_times(options: argparse.Namespace, releases: Releases, case: Given) -> None:
    from t2n_core.releases.times import measure_releases

    archive, inputs = case.request.archive, case.request.samples[0].inputs
    report = measure_releases(releases.cached, releases.engine, archive, inputs, timeout=options.timeout)
    if options.json:
        seconds = {str(release): list(rounds) for release, rounds in report.seconds.items()}
        changes = [[str(change.before), str(change.after), change.ratio] for change in report.changes]
        print(json.dumps({"case": case.name, "seconds": seconds, "changes": changes}))
    else:
        say(f"{case.name}: {report.describe()}")


def _plain(report: ReleaseReport) -> dict[str, object]:
    return {
        "endings": {str(release): ending for release, ending in sorted(report.endings.items())},
        "boundaries": [
            [str(boundary.before), str(boundary.after), boundary.was, boundary.becomes]
            for boundary in report.boundaries
        ],
        "fetched": [str(release) for release in report.fetched],
        "failures": {str(release): reason for release, reason in sorted(report.failures.items())},
    }


def _report_contradictions(options: argparse.Namespace, report: ReleaseReport) -> bool:
    """Print the releases whose results are not as the user claims, and return whether there are any."""
    from t2n_core.releases.boundaries import RIGHT

    wrong = []
    for texts, is_right in ((options.good, True), (options.bad, False)):
        for text in texts:
            release, claim = version_given(text), "good" if is_right else "bad"
            ending = report.endings.get(release)
            if ending is None:
                wrong.append(f"tract {text} was given as {claim}, but was not tried: {report.failures[release]}")
            elif (ending == RIGHT) is not is_right:
                wrong.append(f"tract {text} was given as {claim}, but its result is: {ending}")
    for line in wrong:
        (warn if options.json else say)(line)
    return bool(wrong)
