"""Make something smaller while it still fails: the state that holds the smallest, and the order of its passes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

P = TypeVar("P")
M = TypeVar("M", bound="Minimiser[Any]")


class Minimiser(ABC, Generic[P]):
    """A program that fails, made smaller by passes."""

    def __init__(self, program: P) -> None:
        self.program = program
        """The smallest so far."""
        self.taken = 0
        """Number of accepted candidates."""

    @property
    @abstractmethod
    def is_over(self) -> bool:
        """Return whether the time is used up."""

    @abstractmethod
    def fails_alike(self, candidate: P) -> bool:
        """Return whether a tidied candidate fails as the first program does."""

    def tidy(self, candidate: P) -> P:
        """Return a candidate without its unused parts."""
        return candidate

    def fails(self, candidate: P) -> bool:
        """Return whether a candidate fails as the first program does; False when the time is used up."""
        return not self.is_over and self.fails_alike(self.tidy(candidate))

    def take(self, candidate: P | None) -> bool:
        """Accept a candidate if it fails in the same way, and return whether it does."""
        if candidate is None or not self.fails(candidate):
            return False
        self.program = self.tidy(candidate)
        self.taken += 1
        return True

    def take_one(self, candidates: Callable[[P], Iterable[P]]) -> bool:
        """Make the first candidate that fails alike the program; return whether there is one."""
        return any(self.take(candidate) for candidate in candidates(self.program))

    def take_all(self, candidates: Callable[[P], Iterable[P]]) -> None:
        """Take candidates, each built from the last one taken, as long as one fails alike."""
        while not self.is_over and self.take_one(candidates):
            pass


def run_passes(
    state: M,
    passes: Sequence[Callable[[M], None]],
    rounds: int | None = None,
    after: Callable[[Callable[[M], None]], None] = lambda pass_: None,
) -> None:
    """Run passes for `rounds` rounds, or until one takes nothing; `after` gets each pass that took something."""
    while not state.is_over and rounds != 0:
        first = state.taken
        for pass_ in passes:
            before = state.taken
            pass_(state)
            if state.taken > before:
                after(pass_)
        if state.taken == first:
            return
        rounds = None if rounds is None else rounds - 1


def minimise(names: list[str], attempt: Callable[[list[str]], bool]) -> list[str]:
    """Return the names that cannot be removed, by delta debugging.

    `attempt` tries fewer names, and returns whether that succeeded.
    """
    parts = 2
    while len(names) > 1:
        size = max(1, -(-len(names) // parts))
        for start in range(0, len(names), size):
            fewer = names[:start] + names[start + size :]
            if fewer and attempt(fewer):
                names = fewer
                parts = max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(len(names), 2 * parts)
    return names
