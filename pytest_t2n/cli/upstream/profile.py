"""`t2n profile` shows the time of an archive by operation, module and line. It never imports torch."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from pytest_t2n.cli.busy import busy
from pytest_t2n.cli.output import say
from pytest_t2n.cli.upstream.releases import add_given, given_of
from t2n_core.errors import InputError


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_given(parser)
    parser.add_argument("--engine", default="", metavar="SPEC", help="0.21.8, or several with commas, side by side")
    parser.add_argument(
        "--paths", default="declutter", metavar="NAMES", help="optimise-only, fixed-symbols; default: declutter"
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="time of the plain runs; default 1")
    parser.add_argument("--most", type=int, default=20, metavar="N", help="lines that are shown; default 20")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each case")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print a table for each case, engine and path, and several of them also side by side."""
    from t2n_core.engine import close_all, engine_for, resolve_engines
    from t2n_core.engine.paths import paths_of_release
    from t2n_core.engine.tract.engine import TractEngine
    from t2n_core.profiling.profile import comparison_table, profile_archive

    profiles = []
    try:
        for case in given_of(options):
            spec = options.engine or case.version
            if not spec or case.target != "tract":
                raise InputError("name an engine of tract with --engine")
            sample = case.request.samples[0]
            for resolved in resolve_engines(spec, offline=options.offline, cache_dir=options.cache_dir):
                engine = engine_for(resolved)
                if not isinstance(engine, TractEngine):
                    raise InputError("a command line of tract is not profiled: name a release")
                paths = paths_of_release(resolved.version, options.paths)
                if not paths:
                    raise InputError(f"tract {resolved.version} has no path `{options.paths}`")
                for path in paths:
                    with busy(f"profiling {case.name} in tract {resolved.version}"):
                        profile = profile_archive(
                            engine,
                            case.request.archive,
                            sample.inputs,
                            origins=case.origins,
                            path=path,
                            sizes=sample.sizes,
                            seconds=options.seconds,
                            timeout=options.timeout,
                        )
                    profiles.append(profile)
                    if options.json:
                        print(json.dumps({"case": case.name, **asdict(profile)}))
                    else:
                        say(f"{case.name} in {profile.describe(options.most)}")
    finally:
        close_all()
    if len(profiles) > 1 and not options.json:
        say(comparison_table(profiles, options.most))
    return 0
