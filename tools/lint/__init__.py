"""Checks of the sources that ruff and import-linter do not have.

    python -m tools.lint

Prints `file:line: message` for each finding, and exits with 1 if there is one.
"""
