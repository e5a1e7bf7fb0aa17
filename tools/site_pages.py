"""A hook of mkdocs that adds pages made of data to the site: ONNX's backend tests, and the definitions of operators."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

FOLDERS = {"reference/onnx": "conformance.onnx.page", "reference/dialect/definitions": "tools.definitions.pages"}
"""The folder of the pages, and the module that returns their texts by name."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Return the files of the site with those pages."""
    from mkdocs.structure.files import File

    sys.path.insert(0, str(Path(__file__).parents[1]))  # the site is built without an installed package
    for folder, module in FOLDERS.items():
        for name, text in importlib.import_module(module).pages().items():
            files.append(File.generated(config, f"{folder}/{name}.md", content=text))
    return files
