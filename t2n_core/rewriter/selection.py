"""Selection of the rewriters of one export: those for its target, and the most specific one for each subject."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from t2n_core.errors import RewriteError, RewriteWarning
from t2n_core.rewriter.resolve import Absent, ClassSite, OperatorSite, PythonSite, TorchSite, resolve
from t2n_core.rewriter.specs import Level, Rewriter
from t2n_core.rewriter.torch_calls import spellings


@dataclass(slots=True)
class Selection:
    """The rewriters of one export by their subjects."""

    python: dict[int, dict[type | None, Rewriter]] = field(default_factory=dict)
    """Rewriters by the `id` of the function, then by the class of its object; None means all classes."""
    subjects: dict[int, Any] = field(default_factory=dict)
    torch: dict[Any, tuple[Rewriter, bool]] = field(default_factory=dict)
    """The rewriter of each function of torch, and True if its two operands are swapped."""
    operators: dict[str, Rewriter] = field(default_factory=dict)
    modules: dict[type, Rewriter] = field(default_factory=dict)
    rules: dict[str, Rewriter] = field(default_factory=dict)
    functions: dict[type, Rewriter] = field(default_factory=dict)
    """Autograd functions that stay whole."""
    absent: dict[Rewriter, str] = field(default_factory=dict)
    """Reason why a rewriter cannot apply here."""
    chosen: list[Rewriter] = field(default_factory=list)

    @property
    def of_capture(self) -> frozenset[Rewriter]:
        """Return the rewriters that change the capture; the others act when the captured graph is lowered."""
        tables: tuple[Mapping[Any, Any], ...] = (self.modules, self.functions)
        rewriters = {r for table in tables for r in table.values()}
        rewriters |= {r for owners in self.python.values() for r in owners.values()}
        return frozenset(rewriters | {r for r, _ in self.torch.values()})


def select(rewriters: Iterable[Rewriter], target: Any) -> Selection:
    """Return the selection for a target. Raises RewriteError for a wrong name and for equally specific rewriters."""
    selection = Selection()
    best: dict[Any, Rewriter] = {}
    values: dict[Any, Any] = {}
    replaced: dict[Rewriter, Rewriter] = {}
    for rewriter in dict.fromkeys(rewriters):
        if not rewriter.fits(target):
            continue
        try:
            sites = _sites(rewriter)
        except Absent as reason:
            selection.absent[rewriter] = str(reason)
            continue
        for key, value in sites.items():
            chosen = best.get(key)
            if chosen is not None and chosen.rank == rewriter.rank and not rewriter.registered:
                raise RewriteError(
                    f"two rewriters for {rewriter.subject_name} are equally specific: "
                    f"{chosen.place} and {rewriter.place}",
                    target=str(target) if target is not None else None,
                    hint="remove one, or restrict one of them to a target or a range of versions",
                )
            if chosen is not None and rewriter.registered and chosen.rank == rewriter.rank:
                replaced[chosen] = rewriter
            if chosen is None or rewriter.rank > chosen.rank or (rewriter.registered and rewriter.rank == chosen.rank):
                best[key], values[key] = rewriter, value
    for earlier, later in replaced.items():
        warnings.warn(RewriteWarning(f"{later} takes the place of {earlier}, registered before"), stacklevel=2)
    for key, rewriter in best.items():
        _enter(selection, key, values[key], rewriter)
    selection.chosen = list(dict.fromkeys([*best.values(), *selection.absent]))
    return selection


def _sites(rewriter: Rewriter) -> dict[Any, Any]:
    """Return the sites of a rewriter by keys that are equal for rewriters of the same subject."""
    site = resolve(rewriter)
    if isinstance(site, ClassSite):
        return {(rewriter.level, site.cls): site.cls}
    if isinstance(site, OperatorSite):
        return {(rewriter.level, site.key): site.key}
    if rewriter.level is not Level.FUNCTION:
        raise RewriteError(
            f"{rewriter.place}: {rewriter.subject_name} is not an operator or a class of autograd functions"
        )
    sites: dict[Any, Any] = {}
    for variant in (site, *(resolve(_spelling(rewriter, s)) for s in rewriter.spellings)):
        if isinstance(variant, TorchSite):
            sites |= {
                ("torch", callable_): (callable_, reflected) for callable_, reflected in spellings(variant.function)
            }
        elif isinstance(variant, PythonSite):
            sites["python", id(variant.function), variant.owner] = variant
    return sites


def _spelling(rewriter: Rewriter, subject: Any) -> Rewriter:
    return Rewriter(Level.FUNCTION, subject, rewriter.replacement, place=rewriter.place, builtin=rewriter.builtin)


def _enter(selection: Selection, key: Any, value: Any, rewriter: Rewriter) -> None:
    if isinstance(value, PythonSite):
        selection.subjects[id(value.function)] = value.function
        selection.python.setdefault(id(value.function), {})[value.owner] = rewriter
    elif key[0] == "torch":
        selection.torch[value[0]] = (rewriter, value[1])
    elif rewriter.level is Level.MODULE:
        selection.modules[value] = rewriter
    elif isinstance(value, type):
        selection.functions[value] = rewriter
    elif rewriter.level is Level.SYMBOLIC:
        selection.rules[value] = rewriter
    else:
        selection.operators[value] = rewriter
