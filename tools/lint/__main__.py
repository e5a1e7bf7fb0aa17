"""Run all checks: `python -m tools.lint`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.lint.imports import circles_of_imports
from tools.lint.layout import lists_of_own_names, small_files, small_folders
from tools.lint.places import (
    comparisons_of_versions,
    kernels_for_meta,
    names_of_pytorch,
    names_of_the_newest_release,
)
from tools.lint.prose import names_of_functions, names_of_variables, openings_of_docstrings, words_of_the_field
from tools.lint.tree import Finding, Tree

CHECKS: tuple[Callable[[Tree], Iterator[Finding]], ...] = (
    small_files,
    small_folders,
    lists_of_own_names,
    words_of_the_field,
    names_of_functions,
    names_of_variables,
    openings_of_docstrings,
    circles_of_imports,
    names_of_pytorch,
    kernels_for_meta,
    comparisons_of_versions,
    names_of_the_newest_release,
)


def main(root: Path) -> int:
    tree = Tree(root)
    findings = sorted({finding for check in CHECKS for finding in check(tree)})
    for finding in findings:
        print(finding)
    return min(len(findings), 1)


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parents[2]))
