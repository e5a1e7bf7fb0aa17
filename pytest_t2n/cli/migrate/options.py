"""The options of torch-to-nnef's command for language models, as `t2n export-llm` options."""

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
    moves_by_name = {name: move for move in moves() if move.kind == "option" for name in move.old.split()}
    rest, renamed = list(arguments), list[str]()
    while rest:
        name, equal, value = rest.pop(0).partition("=")
        move = moves_by_name.get(name)
        if move is None:
            renamed.append(name + equal + value)
            continue
        following = value if equal else "".join(rest[:1])
        special = moves_by_name.get(f"{name}={following}")
        move = special or move
        if move.change == "error":
            raise InputError(f"`{name}` is an option of t2n_export_llm_to_tract", hint=move.note)
        warn(_note(f"{name} {following}" if special else name, move))
        if (special or move.change.endswith("value")) and not equal:
            del rest[:1]
        if move.new == FIRST:
            renamed.insert(0, following)
        elif move.new:
            renamed += [*move.new.split("="), *([following] if move.change == "rename value" else [])]
    return renamed


def _note(name: str, move: Move) -> str:
    instead = f"written `{move.new}` here" if move.new else "not needed here"
    return f"note: `{name}` of t2n_export_llm_to_tract is {instead}" + (f": {move.note}" if move.note else "")
