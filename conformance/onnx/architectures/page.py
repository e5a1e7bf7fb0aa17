"""The page of the site with the verdicts on torch.onnx's files of architectures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from packaging.version import Version

from conformance.lab.pages.render import render
from conformance.onnx.architectures.table import VERDICTS, Row, totals


def page(rows: Sequence[Row]) -> str:
    """Return the text of the page."""
    releases = sorted({row.release for row in rows if row.release}, key=Version)
    names = list(dict.fromkeys(row.name for row in rows))
    judged = [row for row in rows if row.release]
    newest = [row for row in judged if row.release == releases[-1]]
    return render(
        "onnx_architectures",
        (totals, reasons, cell),
        verdicts=VERDICTS,
        rows=judged,
        names=names,
        releases=releases,
        newest=newest,
        sizes=Counter(row.sizes for row in newest),
        failures=[row for row in rows if not row.release],
        differing=[row for row in judged if not row.agrees],
        off=[row for row in judged if row.file],
        harmful=harmful(judged),
        repaired=[row for row in judged if row.repaired],
        by_name={(row.name, row.release): row for row in judged},
    )


def harmful(rows: Sequence[Row]) -> list[tuple[str, str, str, list[str]]]:
    """Return architectures with a wrong verdict or the death of the process, its reason, and the releases."""
    bad = [row for row in rows if row.reference in ("wrong", "died")]
    groups = {(row.name, row.reference, row.reason) for row in bad}
    return [
        (name, verdict, reason, [row.release for row in bad if (row.name, row.reason) == (name, reason)])
        for name, verdict, reason in sorted(groups)
    ]


def reasons(rows: Sequence[Row], release: str) -> list[tuple[str, list[tuple[str, int]], int]]:
    """Return the kinds of refusals of a release, most frequent first, each with its operators and their number."""
    refused = [row for row in rows if row.release == release and row.reference == "refused"]
    kinds = Counter(row.refusal or "other" for row in refused)
    return [
        (kind, Counter(row.op for row in refused if (row.refusal or "other") == kind).most_common(), count)
        for kind, count in kinds.most_common()
    ]


def cell(row: Row | None) -> str:
    """Return the verdict of an architecture in a release, with the operator of a refusal."""
    if row is None:
        return ""
    text = row.reference if row.agrees else f"{row.reference} by the file, {row.pytorch} by PyTorch"
    return f"{text}: `{row.op}`" if row.op and row.reference == "refused" else text
