"""Options of the command line and their ini counterparts; `settings` reads their values."""

from __future__ import annotations

import pytest

from t2n_core.level import DEFAULT_LEVEL, LEVELS

DEFAULT_TIMEOUT = 60.0
"""Seconds."""


def add_options(parser: pytest.Parser) -> None:
    """Add the group `t2n`, and ini counterparts of its options."""
    group = parser.getgroup("t2n", "parity of exported models (t2n)")
    group.addoption(
        "--t2n-tract",
        action="append",
        metavar="SPEC",
        help="Run marked tests on these tract versions: 0.21 (newest 0.21.x), 0.21.13, '>=0.21,<0.23', latest, "
        "all-minors, all, path:/to/tract, or a comma list; may be given several times",
    )
    group.addoption(
        "--t2n-cpu",
        metavar="TIERS",
        help="Run tract with the kernels of these processors, each a separate engine: native (this one), no-avx512, "
        "no-fma, …, or a comma list; tract 0.23.6 and later; default native",
    )
    group.addoption(
        "--t2n-runtime",
        metavar="NAMES",
        help="Run tract on these runtimes, each a separate engine: cpu, cuda, metal, or a comma list; default cpu",
    )
    group.addoption(
        "--t2n-khronos",
        action="store_true",
        default=None,
        help="Run marked tests whose target is khronos, judged by the reference tools",
    )
    group.addoption(
        "--t2n-require",
        action="store_true",
        default=None,
        help="Fail a marked test that has no engine in this session instead of skipping it, "
        "and a session without an engine for one of a marker's targets",
    )
    group.addoption(
        "--t2n-strict",
        action="store_true",
        default=None,
        help="Fail a test whose pass is weak: an output does not change with the inputs, or is empty",
    )
    group.addoption(
        "--t2n-report",
        metavar="DIR",
        help="Write the matrix (index.html, matrix.jsonl, summary.md, badges) to this directory",
    )
    group.addoption(
        "--t2n-baseline",
        metavar="FILE",
        help="matrix.jsonl of an earlier run, or a directory with one: the report and the summary show what changed",
    )
    group.addoption(
        "--t2n-offline",
        action="store_true",
        default=None,
        help="Use only engines and version lists in the cache",
    )
    group.addoption(
        "--t2n-allow-unlisted",
        action="store_true",
        default=None,
        help="Accept versions of tract whose digests the plugin does not know, if --t2n-tract names them",
    )
    group.addoption(
        "--t2n-level",
        metavar="LEVEL",
        help=f"Tolerance of tests without one: {', '.join(LEVELS)}; default {DEFAULT_LEVEL.value}",
    )
    group.addoption(
        "--t2n-timeout",
        metavar="SECONDS",
        help=f"Time an engine may take for one case; default {DEFAULT_TIMEOUT:g}",
    )
    group.addoption(
        "--t2n-memory",
        metavar="SIZE",
        help="Memory that an engine may take for one case, as 4G; default: the machine's, divided by the workers of "
        "xdist, at most 8G",
    )
    group.addoption(
        "--t2n-cache-dir",
        metavar="DIR",
        help="Where engines are kept; default: the cache directory of the platform",
    )
    group.addoption(
        "--t2n-expect",
        action="append",
        metavar="FILE",
        help="TOML file with known failures; one that is fixed or fails differently fails its test; "
        "may be given several times",
    )
    group.addoption(
        "--t2n-accept",
        action="store_true",
        help="Rewrite the file of --t2n-expect to match the results of this session",
    )
    group.addoption(
        "--t2n-shard",
        metavar="I/N",
        help="Run the I-th of N parts of the suite; `t2n matrix merge` merges their reports",
    )
    group.addoption(
        "--t2n-durations",
        metavar="FILE",
        help="matrix.jsonl of an earlier run, or a directory with one: the parts of --t2n-shard take equally long",
    )
    group.addoption(
        "--t2n-bundle",
        metavar="DIR",
        help="Write archives, inputs and expected outputs there too; `t2n matrix run --bundle DIR` needs no torch",
    )
    group.addoption(
        "--t2n-bundle-failures",
        metavar="DIR",
        help="Write such a bundle of each cell that fails in its engine, with the command that reproduces it",
    )
    group.addoption(
        "--t2n-bisect",
        action="store_true",
        default=None,
        help="Search the first wrong node of each cell that fails in its engine: operator, source line, what to blame",
    )
    group.addoption(
        "--t2n-bisect-releases",
        action="store_true",
        default=None,
        help="Run each cell that fails in tract in the other releases, and report where its result changes",
    )
    group.addoption(
        "--t2n-reduce",
        metavar="DIR",
        help="Write there the smallest graph and tensors with the same failure, for each cell that fails in its engine",
    )
    group.addoption(
        "--t2n-profile",
        metavar="DIR",
        help="Write there the profile, by module and line, of each cell that passes in a release of tract; "
        "6 seconds each",
    )
    group.addoption(
        "--t2n-transforms",
        metavar="NAMES",
        help="Also check each passing cell after these transforms of its engine: f32_to_f16, round_trip, …, or the "
        "engine's JSON with arguments, in a comma list",
    )
    group.addoption(
        "--t2n-resume",
        action="store_true",
        help="Keep the results of an interrupted session in the report's matrix.jsonl, and run the rest",
    )
    group.addoption(
        "--t2n-reuse",
        action="store_true",
        default=None,
        help="Do not run an engine again on the same archive, inputs and expected outputs where it passed before, "
        "with the same kernels on the same platform",
    )
    group.addoption(
        "--t2n-junit-properties",
        action="store_true",
        default=None,
        help="Give the test cells of --junitxml properties with status, stage and level; strict schemas refuse them",
    )
    group.addoption(
        "--t2n-benchmark",
        action="store_true",
        help="Measure export, load and run of passing cells, and pass the times to pytest-benchmark: its table, "
        "--benchmark-json, --benchmark-autosave and --benchmark-compare",
    )
    parser.addini("t2n_reuse", "as --t2n-reuse", type="bool", default=False)
    parser.addini("t2n_transforms", "as --t2n-transforms", default="")
    parser.addini("t2n_bisect", "as --t2n-bisect", type="bool", default=False)
    parser.addini("t2n_bisect_releases", "as --t2n-bisect-releases", type="bool", default=False)
    parser.addini("t2n_junit_properties", "as --t2n-junit-properties", type="bool", default=False)
    parser.addini("t2n_tract", "version specs of tract, one per line, as --t2n-tract", type="linelist", default=[])
    parser.addini("t2n_cpu", "as --t2n-cpu", default="")
    parser.addini("t2n_runtime", "as --t2n-runtime", default="")
    parser.addini("t2n_khronos", "as --t2n-khronos", type="bool", default=False)
    parser.addini("t2n_require", "as --t2n-require", type="bool", default=False)
    parser.addini("t2n_strict", "as --t2n-strict", type="bool", default=False)
    parser.addini("t2n_report", "as --t2n-report; relative to the root directory", default="")
    parser.addini("t2n_baseline", "as --t2n-baseline; relative to the root directory", default="")
    parser.addini("t2n_offline", "as --t2n-offline", type="bool", default=False)
    parser.addini("t2n_allow_unlisted", "as --t2n-allow-unlisted", type="bool", default=False)
    parser.addini("t2n_level", "as --t2n-level", default="")
    parser.addini("t2n_timeout", "as --t2n-timeout", default="")
    parser.addini("t2n_memory", "as --t2n-memory", default="")
    parser.addini(
        "t2n_expect",
        "files as of --t2n-expect, one per line; relative to the root directory",
        type="linelist",
        default=[],
    )
    parser.addini("t2n_cache_dir", "as --t2n-cache-dir; relative to the root directory", default="")


__all__ = ["DEFAULT_TIMEOUT", "add_options"]
