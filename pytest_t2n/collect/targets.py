"""The targets of a marker: tract, khronos, and the user's, with their options and engines."""

from __future__ import annotations

import copy
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from pytest_t2n.records.cell import SelectedEngine
from t2n_core.text import suggestion

TARGETS = ("tract", "khronos")

OTHER_NAMES = {"version": "versions", "check_io_tolerance": "tolerance", "check_io": "check"}
"""Names of arguments in the target classes, and their names in a marker, which accepts both."""

ELSEWHERE = {
    "specific_tract_binary_path": "a binary is an engine of the session: --t2n-tract=path:/to/tract",
    "offline": "where engines come from is set once for the session: --t2n-offline",
    "engine": "the engine of a test comes from --t2n-tract",
    "tract": 'versions="0.23" narrows the releases of a test, which --t2n-tract selects for the session',
}

OTHER_NAME = 'give a class another name, by `name = "…"` in its body'
"""Advice for a name that is taken."""
_OF_CASES = {"dynamic_axes"}
"""Arguments of the target classes that every test declares separately."""
_WANTED = f"{', '.join(TARGETS)}, a subclass of InferenceTarget, an instance of one, or the name of an entry point"


@dataclass(frozen=True, slots=True)
class OwnTarget:
    """A target of the user: a class, which is created for each engine, or an instance."""

    name: str
    """The name in node ids and records."""
    given: Any

    @property
    def kind(self) -> type:
        """Return the class."""
        return self.given if isinstance(self.given, type) else type(self.given)

    @property
    def base(self) -> str:
        """Return the name of the built-in target that it is a kind of, or ''."""
        return _base_of(self.kind)

    @property
    def runs_on(self) -> str:
        """Return the built-in target whose engines of the session it runs on; '' if it has its own engine."""
        return self.base if isinstance(self.given, type) else ""

    def options(self) -> tuple[str, ...]:
        """Return the options of its class that a marker may set."""
        if not isinstance(self.given, type):
            return ()
        parameters = inspect.signature(self.kind).parameters
        further = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
        inherited = options_of_target(self.base) if further and self.base else ()
        return tuple(dict.fromkeys((*_settable(self.kind), *inherited)))

    def engines(self, engines: Sequence[SelectedEngine]) -> list[SelectedEngine]:
        """Return its engines; `engines` are the session's engines that a test runs on.

        A class over a built-in target has that target's engines. An instance, or another class, has its own engine in
        every session with engines.

        Raises:
            T2NError: its engine is not available.
            ValueError: its class cannot be created.
        """
        if self.runs_on:
            return [replace(engine, target=self.name) for engine in engines if engine.target == self.runs_on]
        if not engines:
            return []
        target = self.create(None, None, {})
        version, platform = str(target.version), engines[0].platform
        if self.base != "tract":
            return [SelectedEngine(self.name, version, version, None, platform)]
        for engine in engines:  # this release is there already, in the session's cache
            if (engine.target, engine.label) == ("tract", version):
                return [replace(engine, target=self.name)]
        return [SelectedEngine(self.name, version, target.resolved.label, target.resolved.to_dict(), platform)]

    def create(self, engine: SelectedEngine | None, dynamic_axes: Any, options: Mapping[str, Any]) -> Any:
        """Return the target for an engine, with the dynamic axes of a test. Raises ValueError if that is impossible."""
        from t2n_core.engine import ResolvedEngine

        files = None if engine is None or engine.resolved is None else ResolvedEngine.from_dict(engine.resolved)
        if not isinstance(self.given, type):
            return copy.copy(self.given) if files is None else self.given.on(files)
        arguments = dict(options) if files is None else {**options, "engine": files}
        if dynamic_axes is not None and self.base != "khronos":
            arguments["dynamic_axes"] = dynamic_axes
        versions = (engine.version,) if self.runs_on and engine is not None else ()
        try:
            inspect.signature(self.kind).bind(*versions, **arguments)
        except TypeError as exc:
            call = ", ".join([*map(repr, versions), *(f"{name}=…" for name in arguments)])
            raise ValueError(
                f"target={self.kind.__name__}: {self.kind.__name__}({call}) does not fit its __init__ ({exc}); "
                f"give an instance, target={self.kind.__name__}(…)"
            ) from None
        return self.kind(*versions, **arguments)


@cache
def options_of_target(target: str) -> tuple[str, ...]:
    """Return the keyword arguments of a target's class that a marker may set; docs/reference/options.md describes them.

    The classes are imported only here, since most tests set none of these during collection.
    """
    from t2n_core.inference_target import KhronosNNEF, TractNNEF

    return _settable({"tract": TractNNEF, "khronos": KhronosNNEF}[target])


def read_targets(value: Any) -> tuple[tuple[str, ...], dict[str, OwnTarget]]:
    """Return a marker's target names, and the user's targets by name. Raises ValueError for anything else."""
    values = value if isinstance(value, list | tuple) else [value]
    if not values:
        raise ValueError(f"target={value!r} names no target; write {_WANTED}, or a list of these")
    names: list[str] = []
    own_targets: dict[str, OwnTarget] = {}
    for item in values:
        if isinstance(item, str) and item in TARGETS:
            names.append(item)
            continue
        target = _own_target(item)
        if own_targets.setdefault(target.name, target).given is not target.given:
            raise ValueError(f"target: two targets are called `{target.name}`; {OTHER_NAME}")
        names.append(target.name)
    return tuple(dict.fromkeys(names)), own_targets


def _own_target(value: Any) -> OwnTarget:
    from t2n_core.entry_points import load_entry_points
    from t2n_core.errors import InputError

    name = ""
    if isinstance(value, str):
        try:
            points = load_entry_points("t2n.targets")
        except InputError as exc:
            raise ValueError(f"target={value!r}: {exc.message}") from None
        if value not in points:
            raise ValueError(f"unknown target {value!r}; {suggestion(value, [*TARGETS, *points])}")
        name, value = value, points[value]
    kind = value if isinstance(value, type) else type(value)
    targets = sys.modules.get("t2n_core.inference_target")  # loaded, if there is a target: this need not load torch
    if targets is None or not issubclass(kind, targets.InferenceTarget) or value is targets.InferenceTarget:
        raise ValueError(f"target={value!r} is not a target; write {_WANTED}, or a list of these")
    name = name or _name_of(kind)
    if name in TARGETS:
        raise ValueError(f"target={kind.__name__} has the name of the built-in target `{name}`; {OTHER_NAME}")
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ValueError(f"target={kind.__name__}: {name!r} cannot be part of a node id; write letters, digits and `_`")
    return OwnTarget(name, value)


def _name_of(kind: type) -> str:
    """Return the name that a class or one of its bases declares; otherwise the class's name in lower case."""
    for base in kind.__mro__:
        if base.__module__.startswith("t2n_core.inference_target"):
            break
        if "name" in vars(base):
            return str(vars(base)["name"])
    return kind.__name__.lower()


def _base_of(kind: type) -> str:
    from t2n_core.inference_target import KhronosNNEF, TractNNEF

    bases: dict[str, type] = {"tract": TractNNEF, "khronos": KhronosNNEF}
    return next((name for name, base in bases.items() if issubclass(kind, base)), "")


def _settable(kind: type) -> tuple[str, ...]:
    skipped = {*_OF_CASES, *OTHER_NAMES, *ELSEWHERE}
    keyword_kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    parameters = inspect.signature(kind).parameters.items()
    return tuple(name for name, parameter in parameters if parameter.kind in keyword_kinds and name not in skipped)
