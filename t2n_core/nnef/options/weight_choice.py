"""Storage formats of weights, and a user's choice among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, TypeAlias, get_args

from t2n_core.errors import InputError

WeightFormat: TypeAlias = Literal["float16", "int8", "q4_0"]
FORMATS: Final[tuple[WeightFormat, ...]] = get_args(WeightFormat)
PLAIN_FORMAT: Final = "float32"
"""The name for a weight that keeps the model's dtype."""

Scales: TypeAlias = Callable[[Any, int, int], Any]
"""(rows [n, k], lowest, highest) -> [n]: the scale of each row, whose elements become lowest to highest times that."""


@dataclass(frozen=True, slots=True)
class StoredAs:
    """A storage format of weights, and how its scales are computed.

    Args:
        format: `float16`; `int8`, integers from -127 to 127 with a scale for each output channel; `q4_0`, -8 to 7
            with a scale for every 32 adjacent elements of a row.
        scales: a function of (rows, lowest, highest): a tensor [n, k] of float32 whose rows share a scale each, and the
            bounds of the integers. It returns the n scales; elements beyond the bounds are clipped. Without one,
            the element of largest magnitude is mapped to a bound. `t2n_core.op.stored.scales` has some. It is called
            with a part of the rows at a time.

    Raises:
        InputError: there is no such format, or it has no scales.
    """

    format: WeightFormat
    scales: Scales | None = None

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise InputError(f"weights: {self.format!r} is not one of {', '.join(FORMATS)}, {PLAIN_FORMAT}")
        if self.scales is not None and self.format == "float16":
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


ChosenFormat: TypeAlias = StoredAs | str | None
ChoiceFunction: TypeAlias = Callable[[str, Any], ChosenFormat]
WeightOption: TypeAlias = ChosenFormat | Mapping[str, StoredAs | str] | ChoiceFunction
"""One format for all weights; formats by patterns of names; a function of name and tensor that returns one, or None."""
WeightChoice: TypeAlias = tuple[tuple[str, StoredAs | None], ...] | ChoiceFunction


def weight_choice(option: WeightOption) -> WeightChoice:
    """Return a user's choice; empty for None. Raises InputError for an unknown format."""
    if option is None:
        return ()
    if isinstance(option, str | StoredAs):
        return (("*", _stored_as(option)),)
    if isinstance(option, Mapping):
        return tuple((pattern, _stored_as(format)) for pattern, format in option.items())
    if callable(option):
        return option
    raise InputError(f"weights={option!r} is not a format, a mapping of patterns to formats, or a function")


def chosen_format(choice: WeightChoice, label: str, tensor: Any) -> StoredAs | None:
    """Return the format chosen for a weight, by the first pattern that matches its name or a module's."""
    if callable(choice):
        return _stored_as(choice(label, tensor))
    fits = (format for pattern, format in choice if fnmatchcase(label, pattern) or fnmatchcase(label, f"{pattern}.*"))
    return next(fits, None)


def _stored_as(chosen: ChosenFormat) -> StoredAs | None:
    if chosen is None or chosen == PLAIN_FORMAT:
        return None
    return StoredAs(chosen) if isinstance(chosen, str) else chosen  # type: ignore[arg-type]
