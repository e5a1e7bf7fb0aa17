"""Sizes that are computed from input sizes, as arguments of operations."""

from __future__ import annotations


class Size(int):
    """A size that the graph computes: of a symbol, an expression or a tensor, and not an integer in the text.

    tract reads a written bound of 0 or less from the end of an axis, and a computed one as it is.
    """
