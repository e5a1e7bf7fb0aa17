"""A hook of mkdocs that adds the pages of ONNX's backend tests to the site."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

FOLDER = "reference/onnx"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Return the files of the site with those pages."""
    from mkdocs.structure.files import File

    sys.path.insert(0, str(Path(__file__).parents[1]))  # the site is built without an installed package
    from conformance.onnx.page import pages

    for name, text in pages().items():
        files.append(File.generated(config, f"{FOLDER}/{name}.md", content=text))
    return files
