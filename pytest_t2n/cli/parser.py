"""The argument parser of `t2n`, which suggests the nearest option or command for an unknown one."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from t2n_core.level import DEFAULT_LEVEL, TractCheckTolerance
from t2n_core.text import suggestion

LEVEL_HELP = f"the least level of parity: {', '.join(TractCheckTolerance)}; {DEFAULT_LEVEL} if not given"
"""Help of an option that takes a tolerance level."""
SIZE_HELP = "the size of a dynamic dimension of an ONNX model, in drawn inputs, or NAME=N.. for its least size"
"""Help of the option `--size`."""
SPEC_HELP = "releases: 0.21 (its newest), 0.21.13, '>=0.21,<0.23', latest, all-minors, all, path:FILE, or a comma list"
"""Help of an option that takes a specification of releases of tract."""
_INVALID_CHOICE = re.compile(r"argument COMMAND: invalid choice: '(.*?)'")


class Parser(argparse.ArgumentParser):
    """An argument parser that suggests names, and keeps the line breaks of its texts."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.formatter_class = argparse.RawDescriptionHelpFormatter
        self.translate: Callable[[Sequence[str]], Sequence[str]] | None = None
        """Turns another command's arguments into this command's."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments; an unknown one is an error of the parser of its command, whose options it knows."""
        arguments = args if self.translate is None else self.translate(args)
        options, unknown = super().parse_known_args(arguments, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        """Print the usage and a message, with the names that were probably meant, and exit with status 2."""
        choice = _INVALID_CHOICE.search(message)
        if choice is not None:
            super().error(f"there is no command {choice[1]!r}{_hint(choice[1], self._commands())}")
        if message.startswith("unrecognized arguments: -"):
            name = message.split()[2].partition("=")[0]
            super().error(f"{message}{_hint(name, self._option_string_actions)}")
        super().error(message)

    def _commands(self) -> Iterator[str]:
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from action.choices


def size_argument(text: str) -> tuple[str, int | list[int]]:
    """Return the name and the size of `NAME=N`, or the name and the least size, as a list, of `NAME=N..`.

    Raises argparse.ArgumentTypeError.
    """
    name, _, size = text.rpartition("=")
    number = size.removesuffix("..")
    if not name or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither NAME=N nor NAME=N..")
    return name, int(number) if number == size else [int(number)]


def _hint(name: str, names: Any) -> str:
    return f"; {suggestion(name, names, '`--help` lists them', most=2)}"
