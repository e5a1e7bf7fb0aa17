"""Names of the tolerance levels, in order. Does not import numpy, so that a plugin can read options without it."""

from __future__ import annotations

from enum import StrEnum


class TractCheckTolerance(StrEnum):
    """Limits of the distance between the engine's values and PyTorch's, tightest first; tighter levels are smaller."""

    EXACT = "exact"
    CLOSE = "close"
    APPROXIMATE = "approximate"
    VERY = "very"
    SUPER = "super"
    ULTRA = "ultra"

    @classmethod
    def _missing_(cls, value: object) -> TractCheckTolerance | None:
        """Return the level of a case-insensitive name; None for any other value, which the enum then refuses."""
        if isinstance(value, str):
            for member in cls:
                if member.value == value.strip().lower():
                    return member
        return None

    @classmethod
    def parse(cls, value: str | TractCheckTolerance) -> TractCheckTolerance:
        """Return the level called `value`, in any case.

        Raises:
            InputError: no level has this name.
        """
        try:
            return cls(value)
        except ValueError:
            from t2n_core.errors import InputError  # not at the start of each session of pytest

            raise InputError(
                f"{value!r} is not a tolerance level", hint=f"one of {', '.join(cls)}, tightest first"
            ) from None

    @property
    def rank(self) -> int:
        """Position in the order of levels, 0 for the tightest."""
        return _RANKS[self.value]

    def __lt__(self, other: str) -> bool:
        return self.rank < TractCheckTolerance(other).rank

    def __le__(self, other: str) -> bool:
        return self.rank <= TractCheckTolerance(other).rank

    def __gt__(self, other: str) -> bool:
        return self.rank > TractCheckTolerance(other).rank

    def __ge__(self, other: str) -> bool:
        return self.rank >= TractCheckTolerance(other).rank


LEVELS: tuple[TractCheckTolerance, ...] = tuple(TractCheckTolerance)
_RANKS = {level.value: rank for rank, level in enumerate(LEVELS)}
DEFAULT_LEVEL = TractCheckTolerance.APPROXIMATE
