"""How the weights of an archive are stored: the forms, what reads them, and a user's choice among the forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, TypeAlias, get_args

from t2n_core.errors import InputError

WeightForm: TypeAlias = Literal["float16", "int8", "q4_0"]
FORMS: Final[tuple[WeightForm, ...]] = get_args(WeightForm)
PLAIN_FORM: Final = "float32"
"""The word for a weight that stays as the model has it."""

Scales: TypeAlias = Callable[[Any, int, int], Any]
"""(rows [n, k], lowest, highest) -> [n]: the scale of each row, whose numbers become lowest to highest times that."""


@dataclass(frozen=True, slots=True)
class StoredAs:
    """A form of stored weights, and how its scales are found.

    Args:
        form: `float16`; `int8`, integers from -127 to 127 with a scale for each output channel; `q4_0`, -8 to 7
            with a scale for every 32 neighbours in a row.
        scales: a function of (rows, lowest, highest): a tensor [n, k] of float32 whose rows share a scale each, and the
            bounds of the integers. It returns the n scales; numbers beyond the bounds are cut. Without one, the
            number of largest magnitude is at a bound. `t2n_core.op.stored.scales` has some. It is called with a part
            of the rows at a time.

    Raises:
        InputError: there is no such form, or it has no scales.
    """

    form: WeightForm
    scales: Scales | None = None

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise InputError(f"weights: {self.form!r} is none of {', '.join(FORMS)}, {PLAIN_FORM}")
        if self.scales is not None and self.form == "float16":
            raise InputError("weights: float16 has no scales")


class Reader(StrEnum):
    """A kind of operator that reads a weight."""

    LINEAR = "linear layers"
    EMBEDDING = "embeddings"
    CONVOLUTION = "convolutions"
    DEPTHWISE = "depthwise convolutions"
    TRANSPOSED = "transposed convolutions"
    EXPERTS = "experts picked by index"
    MATRIX = "plain products"
    OTHER = "other operators"


ChosenForm: TypeAlias = StoredAs | str | None
ChoiceFunction: TypeAlias = Callable[[str, Any], ChosenForm]
WeightOption: TypeAlias = ChosenForm | Mapping[str, StoredAs | str] | ChoiceFunction
"""One form for all weights; forms by patterns of names; a function of name and tensor that returns one, or None."""
WeightChoice: TypeAlias = tuple[tuple[str, StoredAs | None], ...] | ChoiceFunction


def weight_choice(given: WeightOption) -> WeightChoice:
    """Return a user's choice; empty for none. Raises InputError for a form that there is not."""
    if given is None:
        return ()
    if isinstance(given, str | StoredAs):
        return (("*", _form(given)),)
    if isinstance(given, Mapping):
        return tuple((pattern, _form(form)) for pattern, form in given.items())
    if callable(given):
        return given
    raise InputError(f"weights={given!r} is not a form, a mapping of patterns to forms, or a function")


def chosen_form(choice: WeightChoice, label: str, tensor: Any) -> StoredAs | None:
    """Return the form that is chosen for a weight: that of the first pattern that fits its name, or a module's."""
    if callable(choice):
        return _form(choice(label, tensor))
    fits = (form for pattern, form in choice if fnmatchcase(label, pattern) or fnmatchcase(label, f"{pattern}.*"))
    return next(fits, None)


def _form(given: ChosenForm) -> StoredAs | None:
    if given is None or given == PLAIN_FORM:
        return None
    return StoredAs(given) if isinstance(given, str) else given  # type: ignore[arg-type]


__all__ = [
    "FORMS",
    "PLAIN_FORM",
    "Reader",
    "Scales",
    "StoredAs",
    "WeightChoice",
    "WeightForm",
    "WeightOption",
    "chosen_form",
    "weight_choice",
]
