"""The plugin's options: command line before ini file before default."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_t2n.benchmarking import check_available, rounds_of
from pytest_t2n.shard import Shard
from t2n_core.check.level import DEFAULT_LEVEL, LEVELS, TractCheckTolerance
from t2n_core.errors import InputError

_DEFAULT_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user asked for in this session."""

    tract: tuple[str, ...] = ()
    """Version specs; each may be a comma list."""
    khronos: bool = False
    report: Path | None = None
    baseline: Path | None = None
    offline: bool = False
    level: TractCheckTolerance = DEFAULT_LEVEL
    timeout: float = _DEFAULT_TIMEOUT
    cache_dir: Path | None = None
    expect: tuple[Path, ...] = ()
    """Files of expectations, in the order in which their entries count."""
    accept: bool = False
    shard: Shard | None = None
    bundle: Path | None = None
    bundle_failures: Path | None = None
    resume: bool = False
    reuse: bool = False
    junit_properties: bool = False
    benchmark: bool = False
    benchmark_rounds: int = 0
    bisect: bool = False

    @property
    def selects_engines(self) -> bool:
        return bool(self.tract) or self.khronos


def add_options(parser: pytest.Parser) -> None:
    """The group `t2n`, and an ini twin of each option."""
    group = parser.getgroup("t2n", "parity of exported models (t2n)")
    group.addoption(
        "--t2n-tract",
        action="append",
        metavar="SPEC",
        help="Run marked tests on these tract versions: 0.21 (newest 0.21.x), 0.21.13, '>=0.21,<0.23', latest, "
        "all-minors, all, path:/to/tract, or a comma list; may be given several times",
    )
    group.addoption(
        "--t2n-khronos",
        action="store_true",
        default=None,
        help="Run marked tests whose target is khronos, judged by the reference tools",
    )
    group.addoption(
        "--t2n-report",
        metavar="DIR",
        help="Write the matrix (index.html, matrix.jsonl, summary.md, badges) to this directory",
    )
    group.addoption(
        "--t2n-baseline",
        metavar="FILE",
        help="matrix.jsonl of an earlier run, or a directory with one: the report and the summary say what changed",
    )
    group.addoption(
        "--t2n-offline",
        action="store_true",
        default=None,
        help="Use engines and version lists of the cache only",
    )
    group.addoption(
        "--t2n-level",
        metavar="LEVEL",
        help=f"Tolerance of tests that name none: {', '.join(LEVELS)}; default {DEFAULT_LEVEL.value}",
    )
    group.addoption(
        "--t2n-timeout",
        metavar="SECONDS",
        help=f"Time an engine may take for one case; default {_DEFAULT_TIMEOUT:g}",
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
        help="TOML file with the failures that are known; one that is mended or fails otherwise fails its test; "
        "may be given several times",
    )
    group.addoption(
        "--t2n-accept",
        action="store_true",
        help="Rewrite the file of --t2n-expect so that it says what this session found",
    )
    group.addoption(
        "--t2n-shard",
        metavar="I/N",
        help="Run the I-th of N parts of the suite; `t2n matrix merge` puts their reports together",
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
        help="Look for the first wrong node of each cell that fails in its engine: operator, source line, whose fault",
    )
    group.addoption(
        "--t2n-resume",
        action="store_true",
        help="Keep what an interrupted session left in the report's matrix.jsonl, and run the rest",
    )
    group.addoption(
        "--t2n-reuse",
        action="store_true",
        default=None,
        help="Do not run an engine again on the same archive, inputs and expected outputs where it passed before",
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
        help="Measure export, load and run of what passes, and hand it to pytest-benchmark: its table, "
        "--benchmark-json, --benchmark-autosave and --benchmark-compare",
    )
    parser.addini("t2n_reuse", "as --t2n-reuse", type="bool", default=False)
    parser.addini("t2n_bisect", "as --t2n-bisect", type="bool", default=False)
    parser.addini("t2n_junit_properties", "as --t2n-junit-properties", type="bool", default=False)
    parser.addini("t2n_tract", "version specs of tract, one per line, as --t2n-tract", type="linelist", default=[])
    parser.addini("t2n_khronos", "as --t2n-khronos", type="bool", default=False)
    parser.addini("t2n_report", "as --t2n-report; relative to the root directory", default="")
    parser.addini("t2n_baseline", "as --t2n-baseline; relative to the root directory", default="")
    parser.addini("t2n_offline", "as --t2n-offline", type="bool", default=False)
    parser.addini("t2n_level", "as --t2n-level", default="")
    parser.addini("t2n_timeout", "as --t2n-timeout", default="")
    parser.addini(
        "t2n_expect",
        "files as of --t2n-expect, one per line; relative to the root directory",
        type="linelist",
        default=[],
    )
    parser.addini("t2n_cache_dir", "as --t2n-cache-dir; relative to the root directory", default="")


def read_settings(config: pytest.Config) -> Settings:
    """The settings of this session.

    Raises:
        pytest.UsageError: a level that does not exist, a timeout that is no positive number.
    """
    specs = config.getoption("t2n_tract") or config.getini("t2n_tract")
    return Settings(
        tract=tuple(spec.strip() for spec in specs if spec.strip()),
        khronos=_flag(config, "t2n_khronos"),
        report=_path(config, "t2n_report"),
        baseline=_path(config, "t2n_baseline"),
        offline=_flag(config, "t2n_offline"),
        level=_level(_text(config, "t2n_level")),
        timeout=_seconds(_text(config, "t2n_timeout")),
        cache_dir=_path(config, "t2n_cache_dir"),
        expect=_expect(config),
        accept=_accept(config),
        shard=_shard(config.getoption("t2n_shard")),
        bundle=_given_path(config, "t2n_bundle"),
        bundle_failures=_given_path(config, "t2n_bundle_failures"),
        resume=_resume(config),
        reuse=_flag(config, "t2n_reuse"),
        junit_properties=_flag(config, "t2n_junit_properties"),
        benchmark=_benchmark(config),
        benchmark_rounds=rounds_of(config),
        bisect=_flag(config, "t2n_bisect"),
    )


def _text(config: pytest.Config, name: str) -> str:
    given = config.getoption(name)
    return str(config.getini(name) if given is None else given).strip()


def _flag(config: pytest.Config, name: str) -> bool:
    given = config.getoption(name)
    return bool(config.getini(name) if given is None else given)


def _path(config: pytest.Config, name: str) -> Path | None:
    """An absolute path: of the command line relative to where pytest was started, of the ini file to the root."""
    given = config.getoption(name)
    if given:
        return config.invocation_params.dir / Path(given).expanduser()
    text = str(config.getini(name)).strip()
    return config.rootpath / Path(text).expanduser() if text else None


def _given_path(config: pytest.Config, name: str) -> Path | None:
    given = config.getoption(name)
    return config.invocation_params.dir / Path(given).expanduser() if given else None


def _resume(config: pytest.Config) -> bool:
    resume = bool(config.getoption("t2n_resume"))
    if resume and _path(config, "t2n_report") is None:
        raise pytest.UsageError("--t2n-resume: name the directory of the interrupted session with --t2n-report=DIR")
    return resume


def _expect(config: pytest.Config) -> tuple[Path, ...]:
    given = config.getoption("t2n_expect")
    if given:
        return tuple(config.invocation_params.dir / Path(one).expanduser() for one in given)
    return tuple(config.rootpath / Path(one).expanduser() for one in config.getini("t2n_expect"))


def _benchmark(config: pytest.Config) -> bool:
    wanted = bool(config.getoption("t2n_benchmark"))
    if wanted:
        check_available(config)
    return wanted


def _accept(config: pytest.Config) -> bool:
    accept = bool(config.getoption("t2n_accept"))
    if accept and not _expect(config):
        raise pytest.UsageError("--t2n-accept: there is no file to write; name one with --t2n-expect=FILE")
    return accept


def _shard(text: str | None) -> Shard | None:
    if text is None:
        return None
    try:
        return Shard.parse(text)
    except ValueError:
        raise pytest.UsageError(f"--t2n-shard: {text!r} is not I/N with 1 <= I <= N, as 2/4") from None


def _level(text: str) -> TractCheckTolerance:
    try:
        return TractCheckTolerance.parse(text) if text else DEFAULT_LEVEL
    except InputError as exc:
        raise pytest.UsageError(f"--t2n-level: {exc}") from None


def _seconds(text: str) -> float:
    if not text:
        return _DEFAULT_TIMEOUT
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise pytest.UsageError(f"--t2n-timeout: {text!r} is not a positive number of seconds")
    return seconds


__all__ = ["Settings", "add_options", "read_settings"]
