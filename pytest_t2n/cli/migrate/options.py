"""The options of torch-to-nnef's command for language models, as those of `t2n export-llm`."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_t2n.cli.migrate.table import Move, moves
from pytest_t2n.cli.output import warn
from t2n_core.errors import InputError

FIRST = "FOLDER"
"""The new spelling of an option whose value is the first argument now."""


def rename_options(arguments: Sequence[str]) -> list[str]:
    """Return arguments with old options as new ones, and print a note on stderr for each.

    Raises InputError, with what to write, for an old option without a counterpart.
    """
    known = {name: move for move in moves() if move.kind == "option" for name in move.old.split()}
    given, found = list(arguments), list[str]()
    while given:
        name, equal, value = given.pop(0).partition("=")
        move = known.get(name)
        if move is None:
            found.append(name + equal + value)
            continue
        following = value if equal else "".join(given[:1])
        special = known.get(f"{name}={following}")
        move = special or move
        if move.change == "error":
            raise InputError(f"`{name}` is an option of t2n_export_llm_to_tract", hint=move.note)
        warn(_note(f"{name} {following}" if special else name, move))
        if (special or move.change.endswith("value")) and not equal:
            del given[:1]
        if move.new == FIRST:
            found.insert(0, following)
        elif move.new:
            found += [*move.new.split("="), *([following] if move.change == "rename value" else [])]
    return found


def _note(name: str, move: Move) -> str:
    instead = f"written `{move.new}` here" if move.new else "not needed here"
    return f"note: `{name}` of t2n_export_llm_to_tract is {instead}" + (f": {move.note}" if move.note else "")
