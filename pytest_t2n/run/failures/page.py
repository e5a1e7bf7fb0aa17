"""The page of a failing cell: modules as a tree, and each tensor with its error, its time, its line and its NNEF."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_t2n.config.settings import Settings
from pytest_t2n.run.failure_bundle import folder_name
from pytest_t2n.run.profiled import profile_of

if TYPE_CHECKING:
    from pytest_t2n.run.bundles import CheckInputs
    from t2n_core.check.bisect import NodeError
    from t2n_core.export.result import ExportResult
    from t2n_core.parity.outcome import Outcome
    from t2n_core.profiling.profile import Profile

PAGE = "page.html"
_ROOT = "(model)"


@dataclass(slots=True)
class Module:
    """A module of the model, with all tensors that are computed in it or in its submodules."""

    name: str
    count: int = 0
    bad: bool = False
    error: float = 0.0
    seconds: float = 0.0
    children: list[Module] = field(default_factory=list)

    @property
    def worst(self) -> str:
        return f"{self.error:.3g}"

    @property
    def time(self) -> str:
        return _time(self.seconds)

    def child(self, name: str) -> Module:
        """Return the submodule of that name; it is created if there is none."""
        child = next((module for module in self.children if module.name == name), None)
        if child is None:
            child = Module(name)
            self.children.append(child)
        return child


def page_of_failure(
    settings: Settings, inputs: CheckInputs, outcome: Outcome, result: ExportResult, nodes: Sequence[NodeError]
) -> str:
    """Write the page of a failure into its bundle, and files for Model Explorer; return a line with its path.

    Both have times if the session profiles.
    """
    from t2n_core.errors import T2NError
    from t2n_core.export.model_explorer import write_explorer_files

    assert settings.bundle_failures is not None
    nodeid = inputs.cell.nodeid
    profile = None
    if settings.profile is not None:
        with suppress(T2NError):  # a page without times is better than none
            profile = profile_of(result, inputs.request.timeout)
    try:
        folder = settings.bundle_failures / folder_name(nodeid)
        page = write_failure_page(folder, nodeid, outcome, nodes, profile)
        times = {} if profile is None else {"times": {line.name: line.seconds for line in profile.lines}}
        write_explorer_files(result.graph, folder, nodeid, errors=_errors(nodes), **times)
        return f"page: {page}"
    except OSError as exc:
        return f"no page of this failure: {exc}"


def write_failure_page(
    folder: Path, title: str, outcome: Outcome, nodes: Sequence[NodeError], profile: Profile | None
) -> Path:
    """Write the page into the bundle of a failure, and return its path. Raises OSError."""
    import jinja2

    times = _times(profile)
    root = Module(_ROOT)
    for node in nodes:
        for module in _path(root, node):
            module.count += 1
            module.bad |= not node.comparison.passed
            module.error = max(module.error, node.comparison.max_abs)
    for origin, (path, seconds) in times.items():
        if origin:
            for module in _path_from_root(root, path):
                module.seconds += seconds
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pytest_t2n.run.failures"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    note = "" if profile is None else f"Times are shares of {profile.median * 1e3:.3g} ms, the median of plain runs."
    text = environment.get_template("failure.html").render(
        title=title, outcome=outcome.describe(), tree=root, rows=list(_rows(nodes, times)), time_note=note
    )
    page = folder / PAGE
    page.write_text(text, encoding="utf-8")
    return page


def _errors(nodes: Sequence[NodeError]) -> dict[str, float]:
    """Return the largest error of each torch operator by the name of the result of its last operation."""
    errors: dict[str, float] = {}
    for node in nodes:
        if node.statements and math.isfinite(node.comparison.max_abs):
            name = re.findall(r"\w+", node.statements[-1].partition(" = ")[0])[0]
            errors[name] = max(node.comparison.max_abs, errors.get(name, 0.0))
    return errors


def _path(root: Module, node: NodeError) -> Iterator[Module]:
    return _path_from_root(root, node.origin.module_path if node.origin else "")


def _path_from_root(root: Module, path: str) -> Iterator[Module]:
    """Yield the modules on the path to a module, the model first."""
    yield root
    module = root
    for name in path.split(".") if path else ():
        module = module.child(name)
        yield module


def _times(profile: Profile | None) -> dict[str, tuple[str, float]]:
    """Return module path and seconds of each origin."""
    times: dict[str, tuple[str, float]] = {}
    for line in profile.lines if profile is not None else ():
        path = line.origin.partition("in module `")[2].partition("`")[0]
        times[line.origin] = (path, times.get(line.origin, ("", 0.0))[1] + line.seconds)
    return times


def _rows(nodes: Sequence[NodeError], times: dict[str, tuple[str, float]]) -> Iterator[dict[str, object]]:
    seen: set[str] = set()
    for node in nodes:
        origin = str(node.origin or "")
        seconds = times.get(origin, ("", 0.0))[1] if origin not in seen else 0.0  # one operator, several tensors
        seen.add(origin)
        yield {
            "kind": node.kind,
            "where": origin.removeprefix(node.origin.op).strip() if node.origin else "",
            "statements": "\n".join(node.statements),
            "error": node.comparison.problem or f"{node.comparison.max_abs:.3g}",
            "level": node.comparison.level.value if node.comparison.level else "none",
            "time": _time(seconds),
            "bad": not node.comparison.passed,
        }


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs" if seconds else ""
