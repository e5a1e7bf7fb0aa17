"""The page of the documentation about the archives of two exporters, judged with and without PyTorch."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from packaging.version import Version

from conformance.lab.pages.tables import table

Row = Mapping[str, Any]
_VERDICTS = ("right", "wrong", "refused", "crashed", "timed out", "not evaluated")

_HEAD = """# Archives judged without PyTorch

`t2n check ARCHIVE` needs neither a model nor expected outputs: the definitions of the archive's operators say what it
computes, and inputs are drawn from what it declares. Here it is tried on the architectures of the suite `models`
(small, random weights), exported by this converter and by torch-to-nnef 0.24.12, in an environment of its own. The same
archives are judged by PyTorch's outputs too.

A verdict without PyTorch is about the engine: it computes what the archive says, or not. An archive whose computation
is not the model's passes it, and only PyTorch shows that: these are the rows where the exporter is named. An archive
in which a statement reads a name that no statement defines is malformed, and by the definitions it is `refused`.
"""


def archives_page(rows: Iterable[Row]) -> str:
    """Return the page as Markdown; a row that was judged again takes the place of the earlier one."""
    last = {(row["name"], row["exporter"], row["release"]): row for row in rows}
    found = [last[key] for key in sorted(last, key=lambda key: (key[1], Version(key[2]), key[0]))]
    names = len({row["name"] for row in found})
    head = _HEAD.replace("the architectures of", f"{names} architectures of")
    return "\n".join([head, _verdicts(found), _agreement(found), _times(found), _disagreements(found)]).rstrip() + "\n"


def who(row: Row) -> str:
    """Return who causes the disagreement of an archive's verdicts; empty if they agree.

    The verdict without PyTorch is that on drawn inputs, and on PyTorch's inputs where drawn ones decide otherwise.
    """
    if row["export"] or "pytorch" not in row or row["definitions"] == row["pytorch"]:
        return ""
    if row["definitions"] == "not evaluated":
        return "not evaluated"
    if row["same_inputs"] == row["pytorch"]:
        return "inputs"
    return "exporter" if row["meaning"] != "right" else "rounding"


def _groups(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["exporter"], row["release"]), []).append(row)
    return groups


def _verdicts(rows: Sequence[Row]) -> str:
    lines = []
    for (exporter, release), group in _groups(rows).items():
        exported = [row for row in group if not row["export"]]
        for name, key in (("definitions", "definitions"), ("PyTorch", "pytorch")):
            counts = Counter(row.get(key, "not evaluated") for row in exported)
            lines.append(
                [exporter, release, f"{len(exported)} of {len(group)}", name, *(str(counts[one]) for one in _VERDICTS)]
            )
    return f"## Verdicts\n\n{table(['exporter', 'tract', 'exported', 'judged by', *_VERDICTS], lines)}\n"


def _agreement(rows: Sequence[Row]) -> str:
    lines = []
    for (exporter, release), group in _groups(rows).items():
        judged = [row for row in group if not row["export"] and "pytorch" in row]
        kinds = Counter(map(who, judged))
        named = [str(kinds[kind]) for kind in ("exporter", "inputs", "rounding", "not evaluated")]
        lines.append([exporter, release, f"{kinds['']} of {len(judged)}", *named])
    head = ["exporter", "tract", "verdicts agree", "the exporter's", "other inputs", "rounding", "not evaluated"]
    return f"## Agreement\n\n{table(head, lines)}\n"


def _times(rows: Sequence[Row]) -> str:
    lines = []
    for (exporter, release), group in _groups(rows).items():
        timed = [row for row in group if "evaluation_seconds" in row and "run" in row.get("engine_seconds", {})]
        if not timed:
            continue
        engine = [sum(row["engine_seconds"].values()) for row in timed]
        ours = [row["evaluation_seconds"] * 2 for row in timed]  # two sets of inputs, as the engine ran
        ratios = [one / other for one, other in zip(ours, engine, strict=True)]
        figures = (statistics.mean(ours) / statistics.mean(engine), statistics.median(ratios), max(ratios))
        lines.append([exporter, release, str(len(timed)), *(f"{figure:.2f}" for figure in figures)])
    head = ["exporter", "tract", "archives", "mean time / engine's", "median ratio", "largest ratio"]
    text = "Time of the evaluation in float64 beside the engine's, which loads, optimises and runs the archive."
    return f"## Time\n\n{text}\n\n{table(head, lines)}\n"


def _disagreements(rows: Sequence[Row]) -> str:
    lines = [
        [
            row["name"], row["exporter"], row["release"], row["definitions"], row["pytorch"], kind,
            _first_line(row["meaning"] if kind == "exporter" else row["reason"] or row["pytorch_reason"]),
        ]
        for row in rows
        if (kind := who(row))
    ]  # fmt: skip
    if not lines:
        return ""
    head = ["architecture", "exporter", "tract", "definitions", "PyTorch", "whose", "what"]
    text = """`exporter`: the archive means something else than the model computes. `inputs`: the drawn inputs meet
an error that PyTorch's do not, or the other way round. `rounding`: the error in float32 is at the bound of the level.
"""
    return f"## Where the two differ\n\n{text}\n{table(head, lines)}\n"


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
