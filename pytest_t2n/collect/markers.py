"""The marker `nnef_export`: its arguments, and the errors for wrong ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_t2n.collect.names import MARKER
from pytest_t2n.collect.rewriters import checked_rewriters
from pytest_t2n.config.engines import parse_versions

if TYPE_CHECKING:
    from t2n_core.check.level import TractCheckTolerance
    from t2n_core.engine.versions import SpecItem

CASE_ARGUMENTS = frozenset(
    """
    target versions dynamic_axes tolerance input_names output_names inputs fn_name capture nnef_variable_naming_scheme
    rewriters strict_rewrites
    """.split()
)
"""Keyword arguments that every target takes."""

TARGET_OPTIONS: Mapping[str, Sequence[str]] = {
    "tract": """
        feature_flags specific_properties dump_identity_properties force_attention_inner_in_f32
        force_linear_accumulation_in_f32 force_norm_in_f32 reify_sdpa_operator upsample_with_debox weight_compression
        pulse custom_extensions custom_fragments
    """.split(),
    "khronos": [],
}
"""Keyword arguments of a target's class that a marker may set, by target; docs/options.md describes them."""

OTHER_NAMES = {"version": "versions", "check_io_tolerance": "tolerance"}
"""Names of arguments in the target classes, and their names in a marker, which takes both."""

ELSEWHERE = {
    "specific_tract_binary_path": "a binary is an engine of the session: --t2n-tract=path:/to/tract",
    "offline": "where engines come from is said once for the session: --t2n-offline",
    "engine": "the engine of a test comes from --t2n-tract",
}

CHOICES = {"capture": ("export", "trace"), "nnef_variable_naming_scheme": ("natural", "raw", "numeric")}
"""Values that the converter takes, the default first; it is not imported while tests are collected."""

_NOT_IN_A_CALL = ("target", "versions")


class MarkerError(Exception):
    """A wrong argument of the marker or of the fixture; the message says which and what was near it."""


@dataclass(frozen=True, slots=True)
class CaseOptions:
    """Validated arguments of one test."""

    targets: tuple[str, ...] = ("tract",)
    versions: tuple[SpecItem, ...] | None = None
    dynamic_axes: Any = None
    tolerance: TractCheckTolerance | None = None
    input_names: Sequence[str] | None = None
    output_names: Sequence[str] | None = None
    inputs: Any = ()
    fn_name: str = "forward"
    capture: Literal["export", "trace"] = "export"
    nnef_variable_naming_scheme: Literal["natural", "raw", "numeric"] = "natural"
    rewriters: tuple[Any, ...] = ()
    strict_rewrites: bool = False
    target_options: Mapping[str, Any] = field(default_factory=dict)

    def options_of(self, target: str) -> dict[str, Any]:
        """Return the keyword arguments for the class of one target, without those of others."""
        return {name: value for name, value in self.target_options.items() if name in TARGET_OPTIONS[target]}


def read_marks(marks: Iterable[pytest.Mark], overrides: Mapping[str, Any] | None = None) -> CaseOptions:
    """Return the options of a test from its marks, which are closest first; for each argument the closest mark counts.

    `overrides` are the options of a call of the fixture.

    Raises:
        MarkerError: an argument, target or level is unknown, or a value is of a wrong kind.
    """
    merged: dict[str, Any] = {}
    for mark in reversed(list(marks)):
        if len(mark.args) > 1:
            raise MarkerError(f"{MARKER} takes one positional argument, the target, not {len(mark.args)}")
        if mark.args:
            if "target" in mark.kwargs:
                raise MarkerError(f"{MARKER} got its target twice")
            merged["target"] = mark.args[0]
        merged.update(_own_names(mark.kwargs))
    for name, value in _own_names(overrides or {}).items():
        if name in _NOT_IN_A_CALL:
            raise MarkerError(f"`{name}` chooses the engines of a test, so it belongs to its marker @{MARKER}(…)")
        merged[name] = value
    return _validated(merged)


def marks_of(node: pytest.Item | pytest.Function) -> list[pytest.Mark]:
    """Return the marks of a test, closest first."""
    return list(node.iter_markers(MARKER))


def _validated(given: Mapping[str, Any]) -> CaseOptions:
    targets = _targets(given.get("target", "tract"))
    allowed = {*CASE_ARGUMENTS, *(name for target in targets for name in TARGET_OPTIONS[target])}
    for name in given:
        if name not in allowed:
            raise MarkerError(_unknown_argument(name, targets, sorted(allowed)))
    options = {name: value for name, value in given.items() if name not in CASE_ARGUMENTS}
    return CaseOptions(
        targets=targets,
        versions=_versions(given.get("versions")),
        dynamic_axes=_dynamic_axes(given.get("dynamic_axes")),
        tolerance=_tolerance(given.get("tolerance")),
        input_names=_names("input_names", given.get("input_names")),
        output_names=_names("output_names", given.get("output_names")),
        inputs=_inputs(given.get("inputs")),
        fn_name=_method(given.get("fn_name", "forward")),
        capture=_choice("capture", given),
        nnef_variable_naming_scheme=_choice("nnef_variable_naming_scheme", given),
        rewriters=_rewriters(given.get("rewriters")),
        strict_rewrites=bool(given.get("strict_rewrites", False)),
        target_options=options,
    )


def _own_names(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments under the names of this file, without `check_io=True`, which a marked test does anyway."""
    own: dict[str, Any] = {}
    for name, value in given.items():
        if name in ELSEWHERE:
            raise MarkerError(f"`{name}` is no argument of {MARKER}: {ELSEWHERE[name]}")
        if name == "check_io":
            if value is not True:
                raise MarkerError(
                    f"check_io={value!r}: a marked test always checks; export_model_to_nnef exports without a check"
                )
            continue
        wanted = OTHER_NAMES.get(name, name)
        if wanted in given and wanted != name:
            raise MarkerError(f"`{name}` and `{wanted}` say the same; give one of them")
        own[wanted] = value
    return own


def _targets(value: Any) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple) or not values:
        raise MarkerError(f"target={value!r} is neither a name nor a list of names ({', '.join(TARGET_OPTIONS)})")
    for one in values:
        if one not in TARGET_OPTIONS:
            raise MarkerError(f"unknown target {one!r}{_near(str(one), TARGET_OPTIONS)}")
    return tuple(dict.fromkeys(values))


def _unknown_argument(name: str, targets: Sequence[str], allowed: Sequence[str]) -> str:
    for target, options in TARGET_OPTIONS.items():
        if name in options:
            return f"argument `{name}` belongs to target {target!r}, and this test has {', '.join(targets)}"
    return f"unknown argument `{name}` of {MARKER}{_near(name, allowed)}"


def _near(word: str, known: Iterable[str]) -> str:
    import difflib

    names = list(known)
    match = difflib.get_close_matches(word, names, 1)
    return f"; did you mean `{match[0]}`?" if match else f"; known: {', '.join(names)}"


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
                wanted = 'a name such as "T", or a torch.export.Dim'
                raise MarkerError(f"dynamic_axes: {size!r}, axis {axis} of {name!r}, is not {wanted}")
    return value


def _tolerance(value: Any) -> TractCheckTolerance | None:
    if value is None:
        return None
    from t2n_core.check.level import TractCheckTolerance
    from t2n_core.errors import InputError

    try:
        return TractCheckTolerance.parse(value)
    except InputError as exc:
        import difflib

        near = difflib.get_close_matches(str(value).lower(), [str(level) for level in TractCheckTolerance], 1)
        more = f"; did you mean {near[0]!r}?" if near else ""
        raise MarkerError(f"tolerance: {exc.message}{more} ({exc.hint})") from None


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


def _choice(name: str, given: Mapping[str, Any]) -> Any:
    value = given.get(name, CHOICES[name][0])
    if value not in CHOICES[name]:
        raise MarkerError(f"{name}={value!r} is unknown{_near(str(value), CHOICES[name])}")
    return value


def _rewriters(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    try:
        return checked_rewriters(value, "rewriters")
    except ValueError as exc:
        raise MarkerError(str(exc)) from None


def _inputs(value: Any) -> Any:
    """Return a list as a tuple, and a strategy of hypothesis unchanged."""
    if value is None:
        return ()
    from t2n_core.drawn import is_strategy

    if is_strategy(value):
        return value
    if not isinstance(value, list | tuple):
        raise MarkerError("inputs is a list of input sets, each as the test returns it, or a strategy of hypothesis")
    return tuple(value)


__all__ = ["TARGET_OPTIONS", "CaseOptions", "MarkerError", "marks_of", "read_marks"]
