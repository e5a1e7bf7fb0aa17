"""The markers of a test that `t2n export` uses for its model."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from pytest_t2n.collect.markers import MarkerError, read_marks
from pytest_t2n.collect.names import GENERATE, MARKER, PROGRAM
from t2n_core.errors import InputError


def options_of_marks(owners: list[Any], target: str, *, no_check: bool) -> dict[str, Any]:
    """Return the options of the export, of the target and of the check that the markers of a test set, by name.

    `owners` are the module, its classes and the function, outermost first. With `no_check`, all that the test judges
    by is left out but a level. Raises InputError for a wrong marker, and for a judgement that the command does not
    support.
    """
    # without pytest nothing is marked
    marks = [mark for owner in reversed(owners) for mark in _marks_of(owner)] if "pytest" in sys.modules else []
    if any(mark.name == GENERATE for mark in marks):
        raise InputError("this test is marked nnef_generate", hint="`t2n export-llm` writes a model that generates")
    if any(mark.name == PROGRAM for mark in marks):
        raise InputError("this test is marked nnef_program", hint="`t2n_core.program.export_program` writes a program")
    try:
        options = read_marks(mark for mark in marks if mark.name == MARKER)
    except MarkerError as wrong:
        raise InputError(f"@pytest.mark.{MARKER}: {wrong}") from None
    level = options.judged_by.get("tolerance")
    other = sorted(set(options.judged_by) - {"tolerance"})
    if (other or isinstance(level, Mapping)) and not no_check:
        raise InputError(
            f"@pytest.mark.{MARKER} judges by {', '.join(other) or 'levels of outputs'}, and `t2n export` by one level",
            hint="give --no-check: the test judges the same export",
        )
    plain = read_marks(()).export.arguments()
    of_export = {name: value for name, value in options.export.arguments().items() if value is not plain[name]}
    of_check = {} if level is None or isinstance(level, Mapping) else {"check_io_tolerance": level}
    return {**of_export, **options.options_of(target), **of_check}


def _marks_of(owner: Any) -> list[Any]:
    pytestmark = vars(owner).get("pytestmark", [])
    marks = pytestmark if isinstance(pytestmark, list) else [pytestmark]
    return [getattr(mark, "mark", mark) for mark in reversed(marks)]
