"""Names of a range in the text of an archive, shared by its writer and the reader of engine errors."""

from __future__ import annotations

from typing import Final

NODE: Final = "sizes_out_of_range"
"""Prefix of the names of the operations that fail at sizes out of the range."""
PROPERTY: Final = "t2n_sizes"
"""The range, in the properties of an archive."""
