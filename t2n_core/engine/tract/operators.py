"""The operators of a graph after the engine's optimiser, counted in the engine's own list of its nodes.

Without inputs the engine's profile runs nothing: it lists the nodes, in about a hundredth of the time of the optimiser.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from t2n_core.engine.protocol import DIED_LISTING, OPERATORS, OPERATORS_UNKNOWN
from t2n_core.engine.tract.driver import TractDriver, TractModel, TractRunnable
from t2n_core.errors import EngineError

_STORED = ("Source", "Const")
"""Operators of inputs and of constants, which compute nothing."""


def optimise_for_profile(
    driver: TractDriver, model: TractModel, *, declutter: bool = True
) -> tuple[Any, TractModel | TractRunnable]:
    """Return the engine's profiling function, None if there is none, with the optimised graph that it takes.

    Up to 0.22 that is the model, which may then become a runnable; later, the runnable. Raises EngineOptimiseError.
    """
    if profile := driver.find("tract_model_profile_json"):
        model.optimise(declutter=declutter)
        return profile, model
    return driver.find("tract_runnable_profile_json"), model.into_runnable(optimise=True)


def list_operators(
    driver: TractDriver, profile: Any, graph: TractModel | TractRunnable, tell: Callable[[dict[str, Any]], None]
) -> None:
    """Call `tell` with the facts of the operators of an optimised graph; see `optimise_for_profile`.

    The facts of an unknown list are sent first, and stay if the engine ends the process.
    """
    tell(_unknown(DIED_LISTING))
    tell(_operators(driver, profile, graph.pointer))


def _operators(driver: TractDriver, function: Any, graph: Any) -> dict[str, Any]:
    if function is None:
        return _unknown(f"tract {driver.reported_version} has no function that lists them")
    try:
        text = driver.text(function, graph, None, *driver.no_states)
        return {OPERATORS: count_operators(text), OPERATORS_UNKNOWN: ""}
    except (EngineError, ValueError, KeyError, TypeError, IndexError) as cause:
        return _unknown(str(cause))


def _unknown(reason: str) -> dict[str, Any]:
    return {OPERATORS_UNKNOWN: reason}


def count_operators(text: str) -> dict[str, int]:
    """Return the number of nodes of each operator in the engine's list, by name; in a body as `Scan/Tanh`.

    Inputs and constants are left out. Raises ValueError, KeyError, TypeError or IndexError for any other text.
    """
    nodes: list[dict[str, Any]] = json.loads(text)["nodes"]
    names = {_place(*node["qualified_id"]): str(node["op_name"]) for node in nodes}
    counts: Counter[str] = Counter()
    for node in nodes:
        outer, index = node["qualified_id"]
        if node["op_name"] in _STORED:
            continue
        around = [names[_place(outer[:depth], outer_index)] for depth, (outer_index, _) in enumerate(outer)]
        counts["/".join([*around, names[_place(outer, index)]])] += 1
    return dict(sorted(counts.items()))


def _place(outer: Sequence[Sequence[Any]], index: int) -> tuple[Any, ...]:
    """Return what identifies a node: the nodes with a body around it, each with the name of that body, and its own."""
    return *map(tuple, outer), index
