"""`t2n bisect` is pytest with --t2n-bisect, for users who start from a failure.

t2n bisect 'test_encoder.py::test_encoder[False-tract-0.22.4]' --t2n-tract=0.22.4
"""

from __future__ import annotations

import argparse

import pytest


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments, which are pytest's."""
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="...", help="what pytest takes: tests, --t2n-tract=…, -k …"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run pytest; return its exit status."""
    warning_filter = "ignore::pytest.PytestAssertRewriteWarning"  # this package is already imported
    return int(pytest.main(["--t2n-bisect", "-W", warning_filter, *options.arguments]))
