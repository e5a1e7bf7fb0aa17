"""The comparison as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.lab.measure.tables import machine_line
from conformance.lab.pages.tables import figures_table as table
from conformance.lab.timing import ratio

WHO = ("ours", "peer")


def markdown(results: Mapping[str, Any]) -> str:
    """Return the machine, and the tables of tokens, speed and exports."""
    models = results["models"]
    parts = [machine_line(results["machine"]), tokens_table(models), speed_table(models), export_table(models)]
    return "\n\n".join(parts) + "\n"


def tokens_table(models: Mapping[str, Any]) -> str:
    """Return the tokens that are right, and the largest error of logits up to the first wrong token."""
    rows = []
    for name, model in models.items():
        found = [_tokens(model, who) for who in WHO]
        rows.append(
            [name, *(part for pair in found for part in pair), str(model["tokens"].get("different_tokens", ""))]
        )
    head = ["model", "ours: right", "error of logits", "peer: right", "error of logits", "different tokens"]
    return table(head, rows)


def _tokens(model: Mapping[str, Any], who: str) -> tuple[str, str]:
    figures = _figures(model, who)
    if "error" in figures:
        return str(figures["error"]).replace("|", "/")[:120], ""
    told = f"{figures['right']} of {figures['of']}"
    if figures["right"] < figures["of"]:
        told += f", first wrong at step {figures['right']}"
    alone = figures.get("one_by_one")
    if alone:
        told += f"; {alone['right']} with the prompt token by token"
    return told, f"{figures['largest_error']:.1e}"


def _figures(model: Mapping[str, Any], who: str) -> Mapping[str, Any]:
    """Return the figures of an exporter's tokens, or its error: of the export, of its process, or of all."""
    written, tokens = model["exports"].get(who, {}), model["tokens"]
    found: Mapping[str, Any] = written if "error" in written else tokens.get(who, tokens)
    return found


def speed_table(models: Mapping[str, Any]) -> str:
    """Return tokens per second, and ratios of neighbouring turns."""
    rows = []
    for name, model in models.items():
        figures = {who: _figures(model, who) for who in (*WHO, "steps", "torch")}
        rates = [_shown(figures[who], "token_ms", lambda ms: f"{1e3 / ms:.0f}") for who in (*WHO, "torch")]
        prompts = [_shown(figures[who], "prompt_ms", lambda ms: f"{ms:.1f}") for who in (*WHO, "torch")]
        ratios = [_ratio(figures["peer"], figures["ours"], figure) for figure in ("token_ms", "prompt_ms")]
        single = [_ratio(figures[other], figures["steps"], "token_ms") for other in ("peer", "torch")]
        rows.append([name, *rates, ratios[0], *single, *prompts, ratios[1]])
    head = [
        "model",
        "ours, tokens/s",
        "peer",
        "PyTorch",
        "ours / peer",
        "step archive / peer",
        "step archive / PyTorch",
    ]
    return table([*head, "ours, prompt in ms", "peer", "PyTorch", "ours / peer"], rows)


def _shown(figures: Mapping[str, Any], name: str, text: Any) -> str:
    return "-" if "error" in figures else str(text(min(figures[name])))


def _ratio(slow: Mapping[str, Any], fast: Mapping[str, Any], name: str) -> str:
    if "error" in slow or "error" in fast:
        return "-"
    return f"{ratio(fast[name], slow[name]):.2f} x"


def export_table(models: Mapping[str, Any]) -> str:
    """Return what an export takes: CPU seconds, memory beyond the imports, size of the archive."""
    rows = []
    for name, model in models.items():
        row = [name, f"{model['weights_bytes'] / 1e6:.0f}"]
        for figure, unit, digits in (("cpu_seconds", 1.0, 1), ("process_seconds", 1.0, 1), ("peak_bytes", 1e6, 0)):
            written = [model["exports"][who] for who in WHO]
            row += ["-" if "error" in one else f"{one[figure] / unit:.{digits}f}" for one in written]
        rows.append(row)
    head = ["model", "weights, MB", "ours, s", "peer, s", "ours, whole process, s", "peer", "ours, peak in MB", "peer"]
    return table(head, rows)
