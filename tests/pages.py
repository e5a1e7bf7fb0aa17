"""The code blocks of a documentation page, and how they are run.

- `python` blocks are one program, in the order of the page, in a file called as `title=` of the first one says. A block
  with another title is a file of its own, and so is a `toml` block with a title.
- `sh` blocks are run line by line behind the program. A line that ends with `# fails` must fail.
- A block with the comment `<!-- not run by a test: REASON -->` in the line above it is not run. Readers do not see it.
- `text` blocks are output: each of their lines must be printed by what the page runs. `…` stands for anything. What a
  `log` block shows is not run here.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from tests.starter import FOR_EXPORTS, FOR_MODELS, starter

ROOT = Path(__file__).parents[1]
_NOT_RUN = re.compile(r" *<!-- not run by a test: (?P<why>\S.+) -->")
_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?(?P<rest>.*)$")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    title: str
    text: str
    line: int
    not_run: str = ""
    """The reason why no test runs it; empty for one that is run."""


@dataclass(frozen=True)
class Page:
    """A page of Markdown with its code blocks."""

    path: Path

    @property
    def name(self) -> str:
        """The path from the root of the repository."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def blocks(self) -> list[Block]:
        """Every fenced block, in the order of the page."""
        return list(_blocks(self.path.read_text("utf-8")))

    def of(self, language: str) -> list[Block]:
        """The blocks in one language."""
        return [block for block in self.blocks if block.language == language]

    @property
    def run_python(self) -> list[Block]:
        """The blocks of Python that are run."""
        return [block for block in self.of("python") if not block.not_run]

    @property
    def program_name(self) -> str:
        """The file name of the page's program."""
        blocks = self.run_python
        return blocks[0].title or f"{self.path.stem.replace('-', '_').lower()}.py"

    @property
    def program(self) -> str:
        """The text of the page's program."""
        program_blocks = [block for block in self.run_python if block.title in ("", self.program_name)]
        return "\n".join(block.text for block in program_blocks)

    @property
    def files(self) -> dict[str, str]:
        """Every file that the page describes, the program among them."""
        titled = [block for block in self.blocks if block.language in ("python", "toml") and block.title]
        texts = {block.title: block.text for block in titled}
        return texts | ({self.program_name: self.program} if self.run_python else {})

    @property
    def commands(self) -> list[tuple[str, bool]]:
        """Each command that a test runs, and whether it must succeed."""
        lines = []
        for block in self.of("sh"):
            if not block.not_run:
                lines += block.text.replace("\\\n", " ").splitlines()
        return [(line, not line.endswith("# fails")) for line in lines if line and not line.startswith("#")]


def pages() -> list[Page]:
    """The README and every page of the documentation."""
    return [Page(ROOT / "README.md"), *(Page(path) for path in sorted((ROOT / "docs").rglob("*.md")))]


def has_tests(text: str) -> bool:
    """True where a program defines test functions."""
    return any(name.startswith("test_") for name in functions_of(text))


def functions_of(text: str) -> list[str]:
    """The names of the functions at the top level of a program; a name that is defined twice is there twice."""
    return [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]


def run_command(command: str, folder: Path) -> tuple[int, str]:
    """Exit code and output of a shell command in a folder, with this environment's programs."""
    scripts = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    python_path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    environment = inherited | {"PATH": scripts, "PYTHONPATH": python_path, "COLUMNS": "200"}
    environment["PYTEST_ADDOPTS"] = "-p no:hypothesispytest"  # a second per session, for a summary that nobody reads
    words = shlex.split(command, comments=True)
    if words[0] == "python":
        words.pop(0)
    if words[0] in ("pytest", "t2n") or words[0].endswith(".py"):
        with NamedTemporaryFile() as file:
            printed = Path(file.name)
            modules = FOR_MODELS if "export-llm" in words else FOR_EXPORTS
            code = starter(modules).run(words, folder, environment, stdout=printed, stderr=printed, timeout=300)
            return code, printed.read_text("utf-8")
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def missing_lines(expected: str, printed: str) -> list[str]:
    """The lines of a `text` block that were not printed."""
    unmatched_lines = []
    for line in filter(str.strip, expected.splitlines()):
        pattern = ".*".join(re.escape(part.strip()) for part in line.split("…"))
        if re.search(pattern, printed) is None:
            unmatched_lines.append(line)
    return unmatched_lines


def _blocks(text: str) -> Iterator[Block]:
    opened: re.Match[str] | None = None
    start, inside, above = 0, list[str](), ""
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if opened is None and fence is not None:
            opened, start, inside = fence, number, []
            excuse = _NOT_RUN.fullmatch(above)
        elif opened is not None and line.strip() == "```":
            language = opened["language"] + opened["rest"]
            why = excuse["why"] if excuse is not None else ""
            yield Block(language, opened["title"] or "", "\n".join(inside) + "\n", start, why)
            opened = None
        elif opened is not None:
            inside.append(line.removeprefix(opened["indent"]))
        above = line
