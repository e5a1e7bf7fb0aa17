"""Settings of a session; the command line takes precedence over the ini file, and that over defaults."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_t2n.config.options import (
    IN_FOLDER,
    option,
    options_of,
    parse_given,
    parsed,
    read_given_path,
    read_path,
    read_paths,
    read_text,
)
from t2n_core.errors import InputError
from t2n_core.level import DEFAULT_LEVEL, LEVELS, TractCheckTolerance

if TYPE_CHECKING:
    import pytest

    from pytest_t2n.config.shard import Shard

DEFAULT_TIMEOUT: Final = 60.0
"""Seconds."""
PROFILES: Final = ("values", "strict")
"""Profiles of the check of other exporters' files."""
_WITHOUT_RUN = ("collectonly", "showfixtures", "show_fixtures_per_test", "cacheshow", "setuponly", "setupplan")
"""Options of pytest whose sessions call no test."""


def _versions(config: pytest.Config, dest: str) -> tuple[str, ...]:
    specs = config.getoption(dest)
    if specs and not any(spec.strip(", ") for spec in specs):
        raise InputError("--t2n-tract= names no version: is a variable empty? Leave it out to select none")
    return tuple(spec.strip() for spec in specs or config.getini(dest) if spec.strip())


def _engine_paths(text: str) -> str:
    from t2n_core.engine.paths import parse_paths

    parse_paths(text)
    return text


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _profile(name: str) -> str:
    if name not in PROFILES:
        raise ValueError(f"{name!r} is not a profile; one of {', '.join(PROFILES)}")
    return name


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{text!r} is not a positive number of seconds")
    return seconds


def _memory(text: str) -> int:
    from t2n_core.engine.processes.memory import parse_size

    return parse_size(text)


def _transforms(text: str) -> tuple[str, ...]:
    from pytest_t2n.config.transforms import read_transforms

    return read_transforms(text)


def _shard(config: pytest.Config, dest: str) -> Shard | None:
    value = config.getoption(dest)
    return None if value is None else parse_given(_part, value, dest)


def _part(text: str) -> Shard:
    from pytest_t2n.config.shard import Shard

    try:
        return Shard.parse(text)
    except ValueError:
        raise ValueError(f"{text!r} is not I/N with 1 <= I <= N, as 2/4") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The user's settings for this session; most are options of the command line."""

    tract: tuple[str, ...] = option(
        "Run marked tests on these tract versions: 0.21 (newest 0.21.x), 0.21.13, '>=0.21,<0.23', latest, "
        "all-minors, all, path:/to/tract, or a comma list; may be given several times",
        _versions,
        default=(),
        metavar="SPEC",
        repeated=True,
        ini="version specs of tract, one per line, as {option}",
    )
    """Version specs; each may be a comma list."""
    cpu: str = option(
        "Run tract with the kernels of these processors, each a separate engine: native (this one), no-avx512, "
        "no-fma, …, or a comma list; tract 0.23.6 and later; default native",
        read_text,
        default="",
        metavar="TIERS",
    )
    runtime: str = option(
        "Run tract on these runtimes, each a separate engine: cpu, cuda, metal, or a comma list; default cpu",
        read_text,
        default="",
        metavar="NAMES",
    )
    paths: str = option(
        "Check archives on these paths through tract only: declutter (Rust, the command line), optimise-only (Python "
        "and C, up to 0.22), fixed-symbols (sizes fixed before optimising), or a comma list; default all",
        parsed(_engine_paths),
        default="",
        metavar="NAMES",
    )
    exporter: tuple[str, ...] = option(
        "Export the models of tests by these exporters, each a column: t2n (this package), torch-onnx, "
        "torch-onnx-torchscript, torch-to-nnef, tract-convert, nnef-tools, one of an installed package or of a "
        "conftest.py, or a comma list; default t2n",
        parsed(_names),
        default=(),
        metavar="NAMES",
    )
    """Names of exporters; empty for this package's own alone."""
    judge: str = option(
        "Judge the files of other exporters by `values` (what they declare, in a fresh State) or `strict` (also names, "
        "all paths, calls in one State, all sizes); default values",
        parsed(_profile),
        default="values",
        metavar="PROFILE",
    )
    onnxruntime: bool = option("Run the ONNX files of other exporters in onnxruntime, too: a column for each of them")
    khronos: bool = option("Run marked tests whose target is khronos, judged by the reference tools")
    require: bool = option(
        "Fail a marked test that has no engine in this session instead of skipping it, "
        "and a session without an engine for one of a marker's targets"
    )
    strict: bool = option("Fail a test whose pass is weak: an output does not change with the inputs, or is empty")
    report: Path | None = option(
        "Write the matrix (index.html, matrix.jsonl, summary.md, badges) to this directory",
        read_path,
        metavar="DIR",
        ini=IN_FOLDER,
    )
    baseline: Path | None = option(
        "matrix.jsonl of an earlier run, or a directory with one: the report and the summary show what changed",
        read_path,
        metavar="FILE",
        ini=IN_FOLDER,
    )
    offline: bool = option("Use only engines and version lists in the cache")
    allow_unlisted: bool = option(
        "Accept versions of tract whose digests the plugin does not know, if --t2n-tract names them"
    )
    level: TractCheckTolerance = option(
        f"Tolerance of tests without one: {', '.join(LEVELS)}; default {DEFAULT_LEVEL.value}",
        parsed(TractCheckTolerance.parse),
        default=DEFAULT_LEVEL,
        metavar="LEVEL",
    )
    timeout: float = option(
        f"Time an engine may take for one case; default {DEFAULT_TIMEOUT:g}",
        parsed(_seconds),
        default=DEFAULT_TIMEOUT,
        metavar="SECONDS",
    )
    memory: int | None = option(
        "Memory that an engine may take for one case, as 4G; default: the machine's, divided by the workers of "
        "xdist, at most 8G",
        parsed(_memory),
        metavar="SIZE",
    )
    """Bytes of an engine's job; None for an equal share of the machine's memory."""
    cache_dir: Path | None = option(
        "Where engines are kept; default: the cache directory of the platform", read_path, metavar="DIR", ini=IN_FOLDER
    )
    expect: tuple[Path, ...] = option(
        "TOML file with known failures; one that is fixed or fails differently fails its test; "
        "may be given several times",
        read_paths,
        default=(),
        metavar="FILE",
        repeated=True,
        ini="files as of {option}, one per line; relative to the root directory",
    )
    """Files of expectations, in order of precedence."""
    accept: bool = option("Rewrite the file of --t2n-expect to match the results of this session", ini=None)
    shard: Shard | None = option(
        "Run the I-th of N parts of the suite; `t2n matrix merge` merges their reports", _shard, metavar="I/N", ini=None
    )
    durations: Path | None = option(
        "matrix.jsonl of an earlier run, or a directory with one: the parts of --t2n-shard take equally long",
        read_given_path,
        metavar="FILE",
        ini=None,
    )
    bundle: Path | None = option(
        "Write archives, inputs and expected outputs there too; `t2n matrix run --bundle DIR` needs no torch",
        read_given_path,
        metavar="DIR",
        ini=None,
    )
    bundle_failures: Path | None = option(
        "Write such a bundle of each cell that fails in its engine, with the command that reproduces it",
        read_given_path,
        metavar="DIR",
        ini=None,
    )
    bisect: bool = option(
        "Search the first wrong node of each cell that fails in its engine: operator, source line, what to blame"
    )
    bisect_releases: bool = option(
        "Run each cell that fails in tract in the other releases, and report where its result changes"
    )
    reduce: Path | None = option(
        "Write there the smallest graph and tensors with the same failure, for each cell that fails in its engine",
        read_given_path,
        metavar="DIR",
        ini=None,
    )
    profile: Path | None = option(
        "Write there the profile, by module and line, of each cell that passes in a release of tract; 6 seconds each",
        read_given_path,
        metavar="DIR",
        ini=None,
    )
    transforms: tuple[str, ...] = option(
        "Also check each passing cell after these transforms of its engine: f32_to_f16, round_trip, …, or the "
        "engine's JSON with arguments, in a comma list",
        parsed(_transforms),
        default=(),
        metavar="NAMES",
    )
    resume: bool = option(
        "Keep the results of an interrupted session in the report's matrix.jsonl, and run the rest", ini=None
    )
    reuse: bool = option(
        "Do not run an engine again on the same archive, inputs and expected outputs where it passed before, "
        "with the same kernels on the same platform"
    )
    junit_properties: bool = option(
        "Give the test cells of --junitxml properties with status, stage and level; strict schemas refuse them"
    )
    benchmark: bool = option(
        "Measure export, load and run of passing cells, and pass the times to pytest-benchmark: its table, "
        "--benchmark-json, --benchmark-autosave and --benchmark-compare",
        ini=None,
    )
    benchmark_rounds: int = 0
    """pytest-benchmark's own `--benchmark-min-rounds`."""
    only_collects: bool = False
    """True for a session that runs no test."""

    @property
    def selects_engines(self) -> bool:
        """Return whether the session has engines."""
        return bool(self.tract) or self.khronos


def add_options(parser: pytest.Parser) -> None:
    """Add the group `t2n`, and ini counterparts of its options."""
    group = parser.getgroup("t2n", "parity of exported models (t2n)")
    for _, dest, session_option in options_of(Settings):
        session_option.add(dest, parser, group)


def read_settings(config: pytest.Config) -> Settings:
    """Return the settings of this session.

    Raises:
        InputError: a value is not one of its option, options exclude or need each other, or a key of the ini
            file is no option of this plugin.
    """
    _refuse_unknown_keys(config)
    values: dict[str, Any] = {
        name: session_option.read(config, dest) for name, dest, session_option in options_of(Settings)
    }
    settings = Settings(
        **{name: value for name, value in values.items() if value is not None},
        benchmark_rounds=int(config.getoption("benchmark_min_rounds", 5)),
        only_collects=any(config.getoption(name, None) for name in _WITHOUT_RUN),
    )
    if settings.resume and settings.report is None:
        raise InputError("--t2n-resume: name the directory of the interrupted session with --t2n-report=DIR")
    if settings.accept and not settings.expect:
        raise InputError("--t2n-accept: there is no file to write; name one with --t2n-expect=FILE")
    if settings.durations is not None and settings.shard is None:
        raise InputError("--t2n-durations: there are no parts to balance; name one with --t2n-shard=I/N")
    if settings.benchmark and not config.pluginmanager.hasplugin("benchmark"):
        raise InputError("--t2n-benchmark: the plugin pytest-benchmark is not loaded (-p no:benchmark)")
    return settings


def _refuse_unknown_keys(config: pytest.Config) -> None:
    """Raise InputError for a `t2n_…` key of the ini file that no plugin has registered.

    pytest itself only warns of it, and a session without `t2n_require` can pass.
    """
    known_keys = [dest for _, dest, session_option in options_of(Settings) if session_option.ini is not None]
    with warnings.catch_warnings(action="ignore"):  # pytest deprecates it, and has nothing else that lists the keys
        keys = list(config.inicfg)
    for key in keys:
        if key.startswith("t2n_") and key not in known_keys:
            try:
                config.getini(key)  # another plugin may have registered it
            except ValueError:
                from t2n_core.text import suggestion

                raise InputError(f"{config.inipath}: unknown key `{key}`; {suggestion(key, known_keys)}") from None
