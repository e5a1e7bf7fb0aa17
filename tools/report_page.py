"""A hook of mkdocs that adds the report of recorded results to the site, as `matrix/index.html`.

The records cover layers and dynamic sizes on the newest release of each minor line. The published site has the records
of all suites instead: its workflow overwrites these.
"""

from __future__ import annotations

import lzma
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "tools/recorded/matrix.jsonl.xz"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Return the files of the site with the page of the report."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "matrix/index.html", content=page()))
    return files


def page() -> str:
    """Return the page of the recorded results."""
    sys.path.insert(0, str(ROOT))  # the site is built without an installed package
    from pytest_t2n.records.file import decode_line
    from pytest_t2n.report.write import write_report

    with lzma.open(RECORDS, "rt", encoding="utf-8") as lines, TemporaryDirectory() as folder:
        write_report([decode_line(line) for line in lines], Path(folder))
        return Path(folder, "index.html").read_text("utf-8")
