"""The comparison as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.lab.measure.tables import machine_line
from conformance.lab.pages.render import render
from conformance.lab.timing import ratio

Figures = Mapping[str, Any]


def markdown(results: Figures) -> str:
    """Return the machine, and the tables of tokens, speed and exports."""
    functions = (machine_line, tokens, figures, least, multiple)
    return render("language_models", functions, machine=results["machine"], models=results["models"])


def tokens(model: Figures, who: str) -> tuple[str, str]:
    """Return the tokens that are right, and the largest error of logits up to the first wrong token."""
    of = figures(model, who)
    if "error" in of:
        return str(of["error"]).replace("|", "/")[:120], ""
    text = f"{of['right']} of {of['of']}"
    if of["right"] < of["of"]:
        text += f", first wrong at step {of['right']}"
    alone = of.get("one_by_one")
    if alone:
        text += f"; {alone['right']} with the prompt token by token"
    return text, f"{of['largest_error']:.1e}"


def figures(model: Figures, who: str) -> Figures:
    """Return the figures of an exporter's tokens, or its error: of the export, of its process, or of all."""
    written, generated = model["exports"].get(who, {}), model["tokens"]
    result: Figures = written if "error" in written else generated.get(who, generated)
    return result


def least(of: Figures, name: str) -> float | None:
    """Return the least time of all turns; None where there is an error."""
    return None if "error" in of else min(of[name])


def multiple(slow: Figures, fast: Figures, name: str) -> str:
    """Return the ratio of the times of neighbouring turns."""
    return "-" if "error" in slow or "error" in fast else f"{ratio(fast[name], slow[name]):.2f} x"
