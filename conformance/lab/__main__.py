"""List the commands of the laboratory: `python -m conformance.lab`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from conformance.lab.machine import ROOT


def commands() -> Iterator[tuple[str, str]]:
    """Yield the module of each command with its own parser, and the first line of its help."""
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        text = path.read_text("utf-8")
        if "_parser(" in text and '__name__ == "__main__"' in text and path != Path(__file__):
            help = ast.get_docstring(ast.parse(text)) or ""
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield module.removesuffix(".__main__"), help.partition("\n")[0]


if __name__ == "__main__":
    for module, line in commands():
        print(f"python -m {module}\n    {line}")
