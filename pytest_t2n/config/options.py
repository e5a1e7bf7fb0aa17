"""Options of the command line and their ini counterparts; `settings` reads their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from t2n_core.level import DEFAULT_LEVEL, LEVELS

DEFAULT_TIMEOUT = 60.0
"""Seconds."""
_IN_FOLDER = "as {option}; relative to the root directory"


@dataclass(frozen=True, slots=True)
class _Option:
    """The option `--t2n-NAME` of the command line, and `t2n_name` of the ini file."""

    name: str
    help: str
    metavar: str = ""
    """Empty for a flag."""
    repeated: bool = False
    """True for an option that may be given several times, and has one value per line in the ini file."""
    ini: str | None = "as {option}"
    """The help of the counterpart in the ini file; None where there is none."""

    def add(self, parser: pytest.Parser, group: pytest.OptionGroup) -> None:
        """Add the option to its group, and the counterpart to the ini file."""
        option = f"--t2n-{self.name}"
        action: dict[str, Any] = {"action": "append"} if self.repeated else {}
        value = {"metavar": self.metavar, **action} if self.metavar else {"action": "store_true", "default": None}
        group.addoption(option, help=self.help, **value)
        if self.ini is not None:
            kind: Any = "linelist" if self.repeated else None if self.metavar else "bool"
            default = {"linelist": [], "bool": False}.get(kind, "")
            parser.addini(option[2:].replace("-", "_"), self.ini.format(option=option), type=kind, default=default)


OPTIONS = (
    _Option(
        "tract",
        "Run marked tests on these tract versions: 0.21 (newest 0.21.x), 0.21.13, '>=0.21,<0.23', latest, "
        "all-minors, all, path:/to/tract, or a comma list; may be given several times",
        metavar="SPEC",
        repeated=True,
        ini="version specs of tract, one per line, as {option}",
    ),
    _Option(
        "cpu",
        "Run tract with the kernels of these processors, each a separate engine: native (this one), no-avx512, "
        "no-fma, …, or a comma list; tract 0.23.6 and later; default native",
        metavar="TIERS",
    ),
    _Option(
        "runtime",
        "Run tract on these runtimes, each a separate engine: cpu, cuda, metal, or a comma list; default cpu",
        metavar="NAMES",
    ),
    _Option(
        "paths",
        "Check archives on these paths through tract only: declutter (Rust, the command line), optimise-only (Python "
        "and C, up to 0.22), fixed-symbols (sizes fixed before optimising), or a comma list; default all",
        metavar="NAMES",
    ),
    _Option("khronos", "Run marked tests whose target is khronos, judged by the reference tools"),
    _Option(
        "require",
        "Fail a marked test that has no engine in this session instead of skipping it, "
        "and a session without an engine for one of a marker's targets",
    ),
    _Option("strict", "Fail a test whose pass is weak: an output does not change with the inputs, or is empty"),
    _Option(
        "report",
        "Write the matrix (index.html, matrix.jsonl, summary.md, badges) to this directory",
        metavar="DIR",
        ini=_IN_FOLDER,
    ),
    _Option(
        "baseline",
        "matrix.jsonl of an earlier run, or a directory with one: the report and the summary show what changed",
        metavar="FILE",
        ini=_IN_FOLDER,
    ),
    _Option("offline", "Use only engines and version lists in the cache"),
    _Option(
        "allow-unlisted", "Accept versions of tract whose digests the plugin does not know, if --t2n-tract names them"
    ),
    _Option(
        "level", f"Tolerance of tests without one: {', '.join(LEVELS)}; default {DEFAULT_LEVEL.value}", metavar="LEVEL"
    ),
    _Option("timeout", f"Time an engine may take for one case; default {DEFAULT_TIMEOUT:g}", metavar="SECONDS"),
    _Option(
        "memory",
        "Memory that an engine may take for one case, as 4G; default: the machine's, divided by the workers of "
        "xdist, at most 8G",
        metavar="SIZE",
    ),
    _Option(
        "cache-dir",
        "Where engines are kept; default: the cache directory of the platform",
        metavar="DIR",
        ini=_IN_FOLDER,
    ),
    _Option(
        "expect",
        "TOML file with known failures; one that is fixed or fails differently fails its test; "
        "may be given several times",
        metavar="FILE",
        repeated=True,
        ini="files as of {option}, one per line; relative to the root directory",
    ),
    _Option("accept", "Rewrite the file of --t2n-expect to match the results of this session", ini=None),
    _Option(
        "shard",
        "Run the I-th of N parts of the suite; `t2n matrix merge` merges their reports",
        metavar="I/N",
        ini=None,
    ),
    _Option(
        "durations",
        "matrix.jsonl of an earlier run, or a directory with one: the parts of --t2n-shard take equally long",
        metavar="FILE",
        ini=None,
    ),
    _Option(
        "bundle",
        "Write archives, inputs and expected outputs there too; `t2n matrix run --bundle DIR` needs no torch",
        metavar="DIR",
        ini=None,
    ),
    _Option(
        "bundle-failures",
        "Write such a bundle of each cell that fails in its engine, with the command that reproduces it",
        metavar="DIR",
        ini=None,
    ),
    _Option(
        "bisect",
        "Search the first wrong node of each cell that fails in its engine: operator, source line, what to blame",
    ),
    _Option(
        "bisect-releases",
        "Run each cell that fails in tract in the other releases, and report where its result changes",
    ),
    _Option(
        "reduce",
        "Write there the smallest graph and tensors with the same failure, for each cell that fails in its engine",
        metavar="DIR",
        ini=None,
    ),
    _Option(
        "profile",
        "Write there the profile, by module and line, of each cell that passes in a release of tract; 6 seconds each",
        metavar="DIR",
        ini=None,
    ),
    _Option(
        "transforms",
        "Also check each passing cell after these transforms of its engine: f32_to_f16, round_trip, …, or the "
        "engine's JSON with arguments, in a comma list",
        metavar="NAMES",
    ),
    _Option(
        "resume", "Keep the results of an interrupted session in the report's matrix.jsonl, and run the rest", ini=None
    ),
    _Option(
        "reuse",
        "Do not run an engine again on the same archive, inputs and expected outputs where it passed before, "
        "with the same kernels on the same platform",
    ),
    _Option(
        "junit-properties",
        "Give the test cells of --junitxml properties with status, stage and level; strict schemas refuse them",
    ),
    _Option(
        "benchmark",
        "Measure export, load and run of passing cells, and pass the times to pytest-benchmark: its table, "
        "--benchmark-json, --benchmark-autosave and --benchmark-compare",
        ini=None,
    ),
)


def add_options(parser: pytest.Parser) -> None:
    """Add the group `t2n`, and ini counterparts of its options."""
    group = parser.getgroup("t2n", "parity of exported models (t2n)")
    for option in OPTIONS:
        option.add(parser, group)
