"""The table of what differs from the documents that the API follows, written from their tests.

python -m tools.document_items
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from conformance.lab.tables import table

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests" / "contract" / "documents"
PAGE = ROOT / "docs" / "explanation" / "other-names.md"
DOCUMENTS: Mapping[str, tuple[str, ...]] = {
    "Extractors": ("extractors",),
    "The torch graph": ("torch_graph", "torch_graph_calls"),
    "Recurrent operators": ("rnn",),
    "Rewriters": ("rewriters", "rewriter_symbolics"),
    "Targets": ("targets", "targets_tract"),
    "The plugin": ("card",),
}
"""Subject of a document -> the files with the tests of its items."""
_BEGIN, _END = "<!-- items that differ -->\n\n", "<!-- end of items that differ -->"


def items_of(path: Path) -> tuple[int, dict[str, str]]:
    """Return the number of items that a file tests, and the items that differ with their reasons."""
    tree = ast.parse(path.read_text("utf-8"))
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return len(tests), dict(_differing(tree))


def _differing(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(one) for one in node.targets] == ["DIFFERS"]:
            yield from ast.literal_eval(node.value).items()


def page() -> str:
    """Return the page with the table of each document."""
    parts = []
    for subject, names in DOCUMENTS.items():
        found = [items_of(TESTS / f"test_{name}.py") for name in names]
        total, differing = sum(count for count, _ in found), {k: v for _, one in found for k, v in one.items()}
        parts.append(f"## {subject}\n\n{total - len(differing)} of {total} statements hold as written.\n\n")
        if differing:
            rows = [(_readable(item), reason) for item, reason in differing.items()]
            parts.append(f"{table(('statement', 'here'), rows)}\n\n")
    before, _, rest = PAGE.read_text("utf-8").partition(_BEGIN)
    return f"{before}{_BEGIN}{''.join(parts)}{_END}{rest.partition(_END)[2]}"


def _readable(item: str) -> str:
    """Return an item that is written as a name as words."""
    return item if " " in item or "." in item else item.replace("_", " ").strip()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
