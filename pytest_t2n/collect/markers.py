"""The markers `nnef_export` and `nnef_generate`: their arguments, and the errors for wrong ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest

from pytest_t2n.collect.generating import GENERATING, GenerateOptions
from pytest_t2n.collect.judging import JUDGING, judgement_of, seconds_of
from pytest_t2n.collect.names import FILE, GENERATE, MARKER, PROGRAM, marker_of
from pytest_t2n.collect.rewriters import check_rewriters
from pytest_t2n.collect.targets import ELSEWHERE, OTHER_NAMES, TARGETS, OwnTarget, options_of_target, read_targets
from pytest_t2n.config.engines import parse_versions
from t2n_core.export.options import ExportOptions, choices_of, marker_options
from t2n_core.text import suggestion

if TYPE_CHECKING:
    from t2n_core.engine.provision.versions import SpecItem

OWN_ARGUMENTS = ("target", "versions", "exporter", *JUDGING, "transforms", "check")
"""Keyword arguments about the test; the others are options of the export."""

PROGRAM_ARGUMENTS = ("target", "versions", "tolerance", "timeout", "check")
"""Keyword arguments of `nnef_program`."""

FILE_ARGUMENTS = ("path", "sizes", "versions", *JUDGING)
"""Arguments of `nnef_file`, of which the first may be positional."""

_NOT_IN_A_CALL = ("target", "versions", "exporter")


class MarkerError(Exception):
    """A wrong argument of the marker or of the fixture; the message names it and similar ones."""


@dataclass(frozen=True, slots=True)
class CaseOptions:
    """Validated arguments of one test."""

    targets: tuple[str, ...] = ("tract",)
    own: Mapping[str, OwnTarget] = field(default_factory=dict)
    """Targets of the user, by name."""
    versions: tuple[SpecItem, ...] | None = None
    exporters: Mapping[str, Any] = field(default_factory=dict)
    """Exporters by name, each with its class if the test names the class; empty for the session's."""
    judged_by: Mapping[str, Any] = field(default_factory=dict)
    """Level, tolerances and metrics, unchanged."""
    timeout: float | None = None
    """Seconds; None for the session's default."""
    transforms: tuple[str, ...] = ()
    """Transforms of tract, as texts."""
    check: bool = True
    export: ExportOptions = field(default_factory=ExportOptions)
    target_options: Mapping[str, Any] = field(default_factory=dict)
    generate: GenerateOptions | None = None
    """None for a test without the marker `nnef_generate`."""
    program: bool = False
    """True for a test of `nnef_program`."""
    file: str | None = None
    """The path of a test of `nnef_file`, relative to the folder of its module; empty if the test returns the file."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Sizes of dynamic dimensions of that file."""

    def options_of(self, target: str) -> dict[str, Any]:
        """Return the keyword arguments for one target's class, without other targets' arguments."""
        if not self.target_options or target not in (*TARGETS, *self.own):
            return {}
        option_names = self.own[target].options() if target in self.own else options_of_target(target)
        return {name: value for name, value in self.target_options.items() if name in option_names}

    def has_fixed_sizes(self, target: str) -> bool:
        """Return whether a target has fixed sizes: khronos, and the user's targets derived from it."""
        return (self.own[target].base if target in self.own else target) == "khronos"


def read_marks(marks: Iterable[pytest.Mark], overrides: Mapping[str, Any] | None = None) -> CaseOptions:
    """Return the options of a test from its marks, closest first; for each argument the closest mark counts.

    `overrides` are the options of a call of the fixture.

    Raises:
        MarkerError: an argument, target or level is unknown, or a value has a wrong type.
    """
    merged: dict[str, Any] = {}
    marker = MARKER
    for mark in reversed(list(marks)):
        first = "path" if mark.name == FILE else "target"
        if len(mark.args) > 1:
            raise MarkerError(f"{mark.name} takes one positional argument, the {first}, not {len(mark.args)}")
        if mark.args:
            if first in mark.kwargs:
                raise MarkerError(f"{mark.name} got its {first} twice")
            merged[first] = mark.args[0]
        merged.update(_own_names(mark.kwargs))
        marker = mark.name
    for name, value in _own_names(overrides or {}).items():
        if name in _NOT_IN_A_CALL:
            raise MarkerError(f"`{name}` is about the test and not about an export: it belongs to @{MARKER}(…)")
        merged[name] = value
    if marker == PROGRAM:
        return _program(merged)
    if marker == FILE:
        return file_options(merged)
    return _generating(merged) if marker == GENERATE else _validate(merged)


def _program(arguments: Mapping[str, Any]) -> CaseOptions:
    """Return the options of a test whose model is a program of several archives."""
    for name in arguments:
        if name not in PROGRAM_ARGUMENTS:
            more = f"; {suggestion(name, PROGRAM_ARGUMENTS)}"
            where = "options of an export belong to its Part"
            raise MarkerError(f"`{name}` is not an argument of {PROGRAM}: {where}{more}")
    options = _validate(arguments, PROGRAM)
    if options.targets != ("tract",):
        raise MarkerError(f"target={arguments['target']!r}: only tract runs programs of several archives")
    return replace(options, program=True)


def file_options(arguments: Mapping[str, Any]) -> CaseOptions:
    """Return the options of a check of a file. Raises MarkerError for a wrong argument."""
    for name in arguments:
        if name not in FILE_ARGUMENTS:
            raise MarkerError(f"`{name}` is not an argument of {FILE}; {suggestion(name, FILE_ARGUMENTS)}")
    path, sizes = arguments.get("path", ""), arguments.get("sizes") or {}
    if not isinstance(path, str | os.PathLike):
        raise MarkerError(f"{FILE} takes the path of a file, not {path!r}")
    if not isinstance(sizes, Mapping) or not all(isinstance(size, int) and size >= 0 for size in sizes.values()):
        raise MarkerError(f"sizes={sizes!r} is not a mapping of names of dimensions to sizes")
    options = _validate({name: value for name, value in arguments.items() if name not in ("path", "sizes")}, FILE)
    return replace(options, file=os.fspath(path), sizes=sizes)


def _generating(arguments: Mapping[str, Any]) -> CaseOptions:
    """Return the options of a test that generates."""
    for name in arguments:
        if name in JUDGING and name not in ("tolerance", "timeout"):
            raise MarkerError(f"`{name}` is not an argument of {GENERATE}: it compares tokens, and logits by a level")
    if "transforms" in arguments:
        raise MarkerError(f"`transforms` is not an argument of {GENERATE}: `check_transform` also runs caches")
    if isinstance(arguments.get("tolerance"), Mapping):
        raise MarkerError(f"tolerance={arguments['tolerance']!r} is not one level, that of the logits")
    try:
        generate = GenerateOptions.of({name: value for name, value in arguments.items() if name in GENERATING})
    except ValueError as exc:
        raise MarkerError(str(exc)) from None
    plain = {name: value for name, value in arguments.items() if name not in GENERATING}
    options = _validate(plain, GENERATE, GENERATING)
    if options.targets != ("tract",):
        raise MarkerError(f"target={arguments['target']!r}: only tract generates tokens")
    return replace(options, generate=generate)


def with_judgement(options: CaseOptions, arguments: Mapping[str, Any], *, defaults: bool = False) -> CaseOptions:
    """Return the options with other arguments of the judgement.

    None leaves a value unchanged; with `defaults`, values that the test sets win.

    Raises:
        MarkerError: an unknown argument, or a wrong value.
    """
    __tracebackhide__ = True
    for name in arguments:
        if name not in JUDGING:
            raise MarkerError(f"unknown argument `{name}` of a check; {suggestion(name, JUDGING)}")
    new_values = {name: value for name, value in arguments.items() if value is not None}
    test_values = {**options.judged_by, "timeout": options.timeout} if options.timeout else {**options.judged_by}
    merged = {**new_values, **test_values} if defaults else {**test_values, **new_values}
    return replace(options, judged_by=_judged_by(merged), timeout=_timeout(merged.get("timeout")))


def marks_of(node: pytest.Item | pytest.Function) -> list[pytest.Mark]:
    """Return the marks of a test, closest first."""
    return list(node.iter_markers(marker_of(node)))


def _validate(arguments: Mapping[str, Any], marker: str = MARKER, further: Iterable[str] = ()) -> CaseOptions:
    """Return the options of a marker; `further` are the names of its other arguments."""
    targets, own_targets = _targets(arguments.get("target", "tract"))
    of_export = marker_options()
    of_targets = [name for name in arguments if name not in OWN_ARGUMENTS and name not in of_export]
    if of_targets:
        allowed = {
            *OWN_ARGUMENTS,
            *of_export,
            *chain.from_iterable(
                own_targets[name].options() if name in own_targets else options_of_target(name) for name in targets
            ),
        }
        for name in of_targets:
            if name not in allowed:
                raise MarkerError(_unknown_argument(name, marker, targets, sorted({*allowed, *further})))
    return CaseOptions(
        targets=targets,
        own=own_targets,
        versions=_versions(arguments.get("versions")),
        exporters=_exporters(arguments.get("exporter")),
        judged_by=_judged_by(arguments),
        timeout=_timeout(arguments.get("timeout")),
        transforms=_transforms(arguments.get("transforms")),
        check=_switch("check", arguments.get("check", True)),
        export=_export_options(
            {of_export[n].name: _check_option(n, v, of_export[n]) for n, v in arguments.items() if n in of_export}
        ),
        target_options={name: arguments[name] for name in of_targets},
    )


def _export_options(options: Mapping[str, Any]) -> ExportOptions:
    from t2n_core.errors import InputError

    try:
        return ExportOptions.of(options)
    except InputError as exc:
        raise MarkerError(exc.message) from None


def _check_option(name: str, value: Any, option: Field[Any]) -> Any:
    """Return an option of the export. Raises MarkerError for a value of a wrong type."""
    choices = choices_of(option)
    if choices and value not in choices:
        raise MarkerError(f"{name}={value!r} is unknown; {suggestion(str(value), choices)}")
    check = _CHECKS.get(name)
    return value if check is None else check(value)


def _own_names(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments under their names in this file."""
    canonical_values: dict[str, Any] = {}
    for name, value in arguments.items():
        if name in ELSEWHERE:
            raise MarkerError(f"`{name}` is not an argument of {MARKER}: {ELSEWHERE[name]}")
        canonical_name = OTHER_NAMES.get(name, name)
        if canonical_name in arguments and canonical_name != name:
            raise MarkerError(f"`{name}` and `{canonical_name}` are synonyms; give one of them")
        canonical_values[canonical_name] = value
    return canonical_values


def _targets(value: Any) -> tuple[tuple[str, ...], Mapping[str, OwnTarget]]:
    try:
        return read_targets(value)
    except ValueError as exc:
        raise MarkerError(str(exc)) from None


def _unknown_argument(name: str, marker: str, targets: Sequence[str], allowed: Sequence[str]) -> str:
    for target in TARGETS:
        if name in options_of_target(target):
            return f"argument `{name}` belongs to target {target!r}, and this test has {', '.join(targets)}"
    return f"unknown argument `{name}` of {marker}; {suggestion(name, allowed)}"


def _versions(value: Any) -> tuple[SpecItem, ...] | None:
    if value is None:
        return None
    from t2n_core.errors import EngineResolveError

    try:
        return parse_versions(value)
    except (EngineResolveError, TypeError) as exc:
        why = exc.message if isinstance(exc, EngineResolveError) else "neither a text nor a list of texts"
        raise MarkerError(
            f"versions={value!r} is not a version spec ({why}); "
            "write 0.21, 0.21.13, '>=0.21,<0.23', latest or a list of these"
        ) from None


def _exporters(value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    from pytest_t2n.collect.exporters import read_exporters
    from t2n_core.errors import InputError

    try:
        return read_exporters(value)
    except (ValueError, InputError) as exc:
        raise MarkerError(f"exporter: {exc}") from None


def _dynamic_axes(value: Any) -> Any:
    if value is None:
        return value
    if not isinstance(value, Mapping):
        raise MarkerError(f'dynamic_axes={value!r} is not a mapping {{"input": {{axis: "symbol"}}}}')
    for name, axes in value.items():
        if not isinstance(axes, Mapping | list | tuple):
            raise MarkerError(f"dynamic_axes: {axes!r}, of {name!r}, is neither a mapping of axes nor a list of them")
        for axis, size in axes.items() if isinstance(axes, Mapping) else ():
            if not (size is None or isinstance(size, str) or type(size).__module__.startswith("torch.")):
                expected = 'a name such as "T", or a torch.export.Dim'
                raise MarkerError(f"dynamic_axes: {size!r}, axis {axis} of {name!r}, is not {expected}")
    return value


def _judged_by(arguments: Mapping[str, Any]) -> dict[str, Any]:
    __tracebackhide__ = True
    criteria = {name: arguments[name] for name in JUDGING if name != "timeout" and arguments.get(name) is not None}
    if not criteria:
        return criteria
    from t2n_core.errors import InputError
    from t2n_core.level import DEFAULT_LEVEL, TractCheckTolerance

    try:
        judgement_of(criteria, DEFAULT_LEVEL)
    except InputError as exc:
        if exc.hint is None:
            raise MarkerError(exc.message) from None
        near = suggestion(str(criteria.get("tolerance")).lower(), TractCheckTolerance, "")
        raise MarkerError(f"tolerance: {exc.message}{near and f'; {near}'} ({exc.hint})") from None
    return criteria


def _timeout(value: Any) -> float | None:
    try:
        return seconds_of(value)
    except ValueError as exc:
        raise MarkerError(str(exc)) from None


def _transforms(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    from pytest_t2n.config.transforms import read_transforms

    try:
        return read_transforms(value)
    except ValueError as exc:
        raise MarkerError(f"transforms: {exc}") from None


def _switch(argument: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise MarkerError(f"{argument}={value!r} is neither True nor False")
    return value


def _names(argument: str, value: Any) -> Sequence[str] | None:
    if value is None:
        return None
    if isinstance(value, str) or not all(isinstance(name, str) for name in value):
        raise MarkerError(f"{argument}={value!r} is not a list of names")
    return tuple(value)


def _method(value: Any) -> str:
    if not isinstance(value, str) or not value.isidentifier():
        raise MarkerError(f"fn_name={value!r} is not the name of a method")
    return value


def _rewriters(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    try:
        return check_rewriters(value, "rewriters")
    except ValueError as exc:
        raise MarkerError(str(exc)) from None


def _inputs(value: Any) -> Any:
    """Return a list as a tuple, and a hypothesis strategy or a function unchanged."""
    if value is None:
        return ()
    from t2n_core.check.sampling.hypothesis_inputs import is_strategy

    if is_strategy(value) or callable(value):
        return value
    if not isinstance(value, list | tuple):
        raise MarkerError(
            "inputs is a list of input sets, each like those that a test returns, a hypothesis strategy, or a function "
            "of the sizes"
        )
    return tuple(value)


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "dynamic_axes": _dynamic_axes,
    "input_names": partial(_names, "input_names"),
    "output_names": partial(_names, "output_names"),
    "inputs": _inputs,
    "fn_name": _method,
    "rewriters": _rewriters,
    "strict_rewrites": bool,
    "registered_rewriters": partial(_switch, "registered_rewriters"),
}
"""Checks of the options that are easily given with a wrong type."""
