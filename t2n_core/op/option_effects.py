"""Effects of a target's options on a graph, recorded where a rule uses the lowering that an option enables."""

from __future__ import annotations

from t2n_core.nnef.emitter import Emitter


def use_option(g: Emitter, option: str) -> bool:
    """Return whether an option is on, and record it as an effect: call it where only the option decides."""
    on = bool(getattr(g.options, option))
    if on:
        g.graph.effects.add(option)
    return on
