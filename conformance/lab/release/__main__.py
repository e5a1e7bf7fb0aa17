"""Report what a release of tract does otherwise than the one before, with the errata, definitions and suites of here.

    python -m conformance.lab.release 0.24.0 --against 0.23.8 --folder build/tract-0.24.0 --quick
    python -m conformance.lab.release 0.24.0 --against 0.23.8 --folder build/tract-0.24.0

`t2n releases scan VERSION --checkout .` runs it after it has asked the library what it holds. The parts are the
errata (which are mended, which still hold, by their own nets), the definitions of tract's dialect, and, without
`--quick`, the suites on both releases and ONNX's own node tests. Each part is a file of the folder; an interrupted run
resumes where it stopped. Prints the report in Markdown.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.lab.command import command_parser, say
from conformance.lab.release.definitions import compare_definitions
from conformance.lab.release.errata import compare_errata
from conformance.lab.release.onnx import compare_onnx
from conformance.lab.release.suites import compare_suites
from t2n_core.engine.provision.resolution import ALLOW_UNLISTED


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the report."""

    name: str
    compare: Callable[[str, str, Path], Sequence[str]]
    """Returns the lines of a section for a release, the one before, and a folder for what it keeps."""
    is_quick: bool


PARTS: Final = (
    Part("errata", compare_errata, is_quick=True),
    Part("definitions", compare_definitions, is_quick=True),
    Part("suites", compare_suites, is_quick=False),
    Part("onnx", compare_onnx, is_quick=False),
)


def main(arguments: list[str] | None = None) -> int:
    parser = command_parser("conformance.lab.release", __doc__)
    parser.add_argument("release")
    parser.add_argument("--against", required=True, metavar="VERSION")
    parser.add_argument("--folder", type=Path, required=True, help="where the parts are kept")
    parser.add_argument("--quick", action="store_true", help="only what takes minutes")
    options = parser.parse_args(arguments)
    os.environ.setdefault(ALLOW_UNLISTED, "1")
    for part in PARTS:
        if part.is_quick or not options.quick:
            print(section(part, options.release, options.against, options.folder), end="")
    return 0


def section(part: Part, release: str, against: str, folder: Path) -> str:
    """Return a section of the report, which is computed if the folder does not have it."""
    file = folder / f"{part.name}-since-{against}.md"
    if not file.exists():
        say(f"{part.name} in tract {against} and {release}")
        folder.mkdir(parents=True, exist_ok=True)
        lines = part.compare(release, against, file.with_suffix(""))
        text = "".join(f"{line}\n" for line in ("", f"## {part.name.capitalize()}", "", *lines))
        file.write_text(text, "utf-8")
    return file.read_text("utf-8")


if __name__ == "__main__":
    sys.exit(main())
