"""Command lines of this package, and lines of progress next to their output."""

from __future__ import annotations

import argparse
import sys


def command_parser(module: str, text: str | None) -> argparse.ArgumentParser:
    """Return the parser of `python -m MODULE`, whose help is the module's docstring as it is written."""
    form = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(prog=f"python -m {module}", description=text, formatter_class=form)


def add_tract(parser: argparse.ArgumentParser, default: str = "all-minors") -> None:
    """Add the option that names the engines, as --t2n-tract does for the plugin; default: the newest of each line."""
    parser.add_argument("--tract", default=default, metavar="SPEC", help="engines, as --t2n-tract")


def say(text: str) -> None:
    """Print a line of progress, which is no part of the results."""
    print(f"… {text}", file=sys.stderr, flush=True)
