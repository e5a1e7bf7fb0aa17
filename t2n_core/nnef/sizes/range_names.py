"""Names that a range has in the text of an archive: for its writer, and for the reader of an engine's error."""

from __future__ import annotations

from typing import Final

NODE: Final = "sizes_out_of_range"
"""Prefix of the names of the statements that fail at sizes out of the range."""
PROPERTY: Final = "t2n_sizes"
"""The range, in the properties of an archive."""
