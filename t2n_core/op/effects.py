"""Effects of a target's options on a graph, noted where a rule takes the form that an option asks for."""

from __future__ import annotations

from t2n_core.nnef.emitter import Emitter


def use_option(g: Emitter, option: str) -> bool:
    """Return whether an option is on, and note it as an effect: ask where nothing else decides any more."""
    on = bool(getattr(g.options, option))
    if on:
        g.graph.effects.add(option)
    return on
