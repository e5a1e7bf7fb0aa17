"""The table of architectures: the verdicts on torch.onnx's file of each in releases of tract."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from t2n_core.parity.stage import Status

FILE: Final = Path(__file__).with_name("verdicts.tsv")
VERDICTS: Final = ("right", "weak", "wrong", "refused", "died", "not judged")
_OF_STATUS: Final[Mapping[str, str]] = {
    Status.PASS: "right",
    Status.WEAK: "weak",
    Status.MISMATCH: "wrong",
    Status.CRASH: "died",
    Status.TIMEOUT: "died",
    Status.OOM: "died",
    "": "not judged",
}
"""The verdict of a status; any other one is a refusal."""
_FOLDERS: Final = re.compile(r"(?<=\s)/\S+/(?=[^\s/]+/src/)")
_LONGEST: Final = 160
Json = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """An architecture in a release; without one, what torch.onnx does not export."""

    name: str
    release: str = ""
    sizes: str = ""
    """`free` if the file has the suite's dynamic axes, else `fixed`; empty without a file."""
    reference: str = ""
    """The verdict by the file's own reference, at drawn inputs."""
    pytorch: str = ""
    """The verdict by PyTorch's outputs at the examples."""
    file: str = ""
    """How the outputs of the file's reference differ from PyTorch's."""
    op: str = ""
    refusal: str = ""
    reason: str = ""
    """The first line of the engine's error, or of the exporter's."""
    repaired: str = ""
    """The verdict by the file's own reference after the repairs; empty if they were not tried."""
    repairs: str = ""

    @property
    def agrees(self) -> bool:
        """Return whether both verdicts are the same; a weak one is right."""
        return self.reference.replace("weak", "right") == self.pytorch.replace("weak", "right")

    @property
    def fails(self) -> bool:
        """Return whether the release does not compute what the file's own reference does."""
        return self.reference in ("wrong", "refused", "died")


def rows_of(
    exports: Iterable[Json],
    verdicts: Mapping[str, Sequence[Json]],
    repaired: Mapping[str, Sequence[Json]] = MappingProxyType({}),
) -> list[Row]:
    """Return the rows of exports, of the verdicts in each release, and of those after repairs."""
    of_release = {release: {entry["name"]: entry for entry in judged} for release, judged in verdicts.items()}
    rows = []
    for export in exports:
        name, sizes = export["name"], export["sizes"]
        error = _line(export.get("free_error", export.get("fixed_error", "")))
        if error:
            rows.append(Row(name, sizes=sizes, reason=error))
        for release, judged in of_release.items():
            after = next((entry for entry in repaired.get(release, ()) if entry["name"] == name), None)
            rows += [_row(name, release, sizes, judged[name], after)] if name in judged else []
    return rows


def _row(name: str, release: str, sizes: str, judged: Json, after: Json | None) -> Row:
    by_reference, by_pytorch = judged["reference"], judged["pytorch"]
    cause = by_reference if by_reference.get("reason") else by_pytorch
    return Row(
        name,
        release,
        sizes,
        _verdict(by_reference),
        _verdict(by_pytorch),
        file=_line(judged["file"].get("differs") or judged["file"].get("reason", "")),
        op=cause.get("op", ""),
        refusal=cause.get("refusal", ""),
        reason=_reason(cause),
        repaired="" if after is None else _verdict(after),
        repairs="" if after is None else ", ".join(after.get("repairs", ())),
    )


def _verdict(judged: Json) -> str:
    return _OF_STATUS.get(judged["status"], "refused")


def _reason(judged: Json) -> str:
    if judged["status"] == Status.MISMATCH:
        return f"off by {judged['off']:.2g} at most"
    return _line(judged.get("reason", ""))


def totals(rows: Iterable[Row], release: str) -> Counter[str]:
    """Return how many files have each verdict by their reference in a release."""
    return Counter(row.reference for row in rows if row.release == release)


def write(rows: Iterable[Row], file: Path = FILE) -> None:
    """Write rows as text."""
    with file.open("w", encoding="utf-8", newline="") as out:
        names = [field.name for field in fields(Row)]
        writer = csv.DictWriter(out, names, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None)
        writer.writeheader()
        writer.writerows(map(asdict, rows))


def read(file: Path = FILE) -> list[Row]:
    """Return the rows of a file."""
    with file.open(encoding="utf-8", newline="") as lines:
        return [Row(**row) for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]


def _line(text: str) -> str:
    """Return the first line of a text, without tabs, and without the folders of the machine that built the engine."""
    first, _, _ = text.strip().partition("\n")
    return " ".join(_FOLDERS.sub("", first).split())[:_LONGEST]
