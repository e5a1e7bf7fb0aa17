"""The table of pytest's options in the documentation, written from the options themselves.

python -m tools.option_table
"""

from __future__ import annotations

from pathlib import Path

from _pytest.config.argparsing import Parser

import pytest_t2n.plugin

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "command-line.md"
BEGIN, END = "<!-- options -->\n\n", "\n<!-- end of options -->"


def option_table() -> str:
    """Return a line of Markdown for each option of the plugin, with its ini twin and its help."""
    parser = Parser(_ispytest=True)
    pytest_t2n.plugin.pytest_addoption(parser)
    lines = ["| option | ini | meaning |", "|---|---|---|"]
    for option in parser.getgroup("t2n").options:
        (name,), attributes = option.names(), option.attrs()
        twin = f"`{attributes['dest']}`" if attributes["dest"] in parser._inidict else ""
        value = f"={attributes['metavar']}" if attributes.get("metavar") else ""
        meaning = attributes["help"].replace("|", "\\|")
        lines.append(f"| `{name}{value}` | {twin} | {meaning} |")
    return "\n".join(lines) + "\n"


def with_table(text: str) -> str:
    """Return the page with the table of today between its two comments."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + option_table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), encoding="utf-8")
