"""Settings of a session; the command line takes precedence over the ini file, and that over defaults."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_t2n.config.options import DEFAULT_TIMEOUT, OPTIONS
from pytest_t2n.config.shard import Shard
from t2n_core.level import DEFAULT_LEVEL, TractCheckTolerance

_WITHOUT_RUN = ("collectonly", "showfixtures", "show_fixtures_per_test", "cacheshow", "setuponly", "setupplan")
"""Options of pytest whose sessions call no test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The user's settings for this session."""

    tract: tuple[str, ...] = ()
    """Version specs; each may be a comma list."""
    cpu: str = ""
    """Kernel tiers, a comma list; empty for the native tier."""
    runtime: str = ""
    """Runtimes, a comma list; empty for the CPU."""
    paths: str = ""
    """Paths through tract, a comma list; empty for all of each release."""
    khronos: bool = False
    report: Path | None = None
    baseline: Path | None = None
    offline: bool = False
    allow_unlisted: bool = False
    level: TractCheckTolerance = DEFAULT_LEVEL
    timeout: float = DEFAULT_TIMEOUT
    memory: int | None = None
    """Bytes of an engine's job; None for an equal share of the machine's memory."""
    cache_dir: Path | None = None
    expect: tuple[Path, ...] = ()
    """Files of expectations, in order of precedence."""
    accept: bool = False
    shard: Shard | None = None
    durations: Path | None = None
    bundle: Path | None = None
    bundle_failures: Path | None = None
    resume: bool = False
    reuse: bool = False
    junit_properties: bool = False
    benchmark: bool = False
    benchmark_rounds: int = 0
    bisect: bool = False
    bisect_releases: bool = False
    reduce: Path | None = None
    profile: Path | None = None
    transforms: tuple[str, ...] = ()
    """Transforms of tract after which each passing cell is also checked."""
    require: bool = False
    strict: bool = False
    only_collects: bool = False
    """True for a session that runs no test."""

    @property
    def selects_engines(self) -> bool:
        """Return whether the session has engines."""
        return bool(self.tract) or self.khronos


def read_settings(config: pytest.Config) -> Settings:
    """Return the settings of this session.

    Raises:
        pytest.UsageError: the level does not exist, the timeout is not a positive number, options exclude each other,
            or a key of the ini file is no option of this plugin.
    """
    _refuse_unknown_keys(config)
    of_command_line = config.getoption("t2n_tract")
    if of_command_line and not any(spec.strip(", ") for spec in of_command_line):
        raise pytest.UsageError("--t2n-tract= names no version: is a variable empty? Leave it out to select none")
    specs = of_command_line or config.getini("t2n_tract")
    return Settings(
        tract=tuple(spec.strip() for spec in specs if spec.strip()),
        cpu=_text(config, "t2n_cpu"),
        runtime=_text(config, "t2n_runtime"),
        paths=_paths(_text(config, "t2n_paths")),
        khronos=_flag(config, "t2n_khronos"),
        report=_path(config, "t2n_report"),
        baseline=_path(config, "t2n_baseline"),
        offline=_flag(config, "t2n_offline"),
        allow_unlisted=_flag(config, "t2n_allow_unlisted"),
        level=_level(_text(config, "t2n_level")),
        timeout=_seconds(_text(config, "t2n_timeout")),
        memory=_memory(_text(config, "t2n_memory")),
        cache_dir=_path(config, "t2n_cache_dir"),
        expect=_expect(config),
        accept=_accept(config),
        shard=_shard(config.getoption("t2n_shard")),
        durations=_durations(config),
        bundle=_given_path(config, "t2n_bundle"),
        bundle_failures=_given_path(config, "t2n_bundle_failures"),
        resume=_resume(config),
        reuse=_flag(config, "t2n_reuse"),
        junit_properties=_flag(config, "t2n_junit_properties"),
        benchmark=_benchmark(config),
        benchmark_rounds=_benchmark_rounds(config),
        bisect=_flag(config, "t2n_bisect"),
        bisect_releases=_flag(config, "t2n_bisect_releases"),
        reduce=_given_path(config, "t2n_reduce"),
        profile=_given_path(config, "t2n_profile"),
        transforms=_transforms(_text(config, "t2n_transforms")),
        require=_flag(config, "t2n_require"),
        strict=_flag(config, "t2n_strict"),
        only_collects=any(config.getoption(name, None) for name in _WITHOUT_RUN),
    )


def _refuse_unknown_keys(config: pytest.Config) -> None:
    """Raise pytest.UsageError for a `t2n_…` key of the ini file that no plugin has registered.

    pytest itself only warns of it, and a session without `t2n_require` can pass.
    """
    known = [f"t2n_{option.name.replace('-', '_')}" for option in OPTIONS if option.ini is not None]
    with warnings.catch_warnings(action="ignore"):  # pytest deprecates it, and has nothing else that lists the keys
        keys = list(config.inicfg)
    for key in keys:
        if key.startswith("t2n_") and key not in known:
            try:
                config.getini(key)  # another plugin may have registered it
            except ValueError:
                from t2n_core.text import suggestion

                raise pytest.UsageError(f"{config.inipath}: unknown key `{key}`; {suggestion(key, known)}") from None


def _text(config: pytest.Config, name: str) -> str:
    given = config.getoption(name)
    return str(config.getini(name) if given is None else given).strip()


def _flag(config: pytest.Config, name: str) -> bool:
    given = config.getoption(name)
    return bool(config.getini(name) if given is None else given)


def _path(config: pytest.Config, name: str) -> Path | None:
    """Return an absolute path: from the command line relative to the start folder, from the ini file to the root."""
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
    if wanted and not config.pluginmanager.hasplugin("benchmark"):
        raise pytest.UsageError("--t2n-benchmark: the plugin pytest-benchmark is not loaded (-p no:benchmark)")
    return wanted


def _benchmark_rounds(config: pytest.Config) -> int:
    """Return pytest-benchmark's own `--benchmark-min-rounds`."""
    return int(config.getoption("benchmark_min_rounds", 5))


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


def _durations(config: pytest.Config) -> Path | None:
    path = _given_path(config, "t2n_durations")
    if path is not None and config.getoption("t2n_shard") is None:
        raise pytest.UsageError("--t2n-durations: there are no parts to balance; name one with --t2n-shard=I/N")
    return path


def _level(text: str) -> TractCheckTolerance:
    if not text:
        return DEFAULT_LEVEL
    from t2n_core.errors import InputError

    try:
        return TractCheckTolerance.parse(text)
    except InputError as exc:
        raise pytest.UsageError(f"--t2n-level: {exc}") from None


def _paths(text: str) -> str:
    if text:
        from t2n_core.engine.paths import parse_paths
        from t2n_core.errors import InputError

        try:
            parse_paths(text)
        except InputError as exc:
            raise pytest.UsageError(f"--t2n-paths: {exc}") from None
    return text


def _transforms(text: str) -> tuple[str, ...]:
    if not text:
        return ()
    from pytest_t2n.config.transforms import read_transforms

    try:
        return read_transforms(text)
    except ValueError as exc:
        raise pytest.UsageError(f"--t2n-transforms: {exc}") from None


def _seconds(text: str) -> float:
    if not text:
        return DEFAULT_TIMEOUT
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise pytest.UsageError(f"--t2n-timeout: {text!r} is not a positive number of seconds")
    return seconds


def _memory(text: str) -> int | None:
    if not text:
        return None
    from t2n_core.engine.processes.memory import parse_size
    from t2n_core.errors import InputError

    try:
        return parse_size(text)
    except InputError as exc:
        raise pytest.UsageError(f"--t2n-memory: {exc}") from None
