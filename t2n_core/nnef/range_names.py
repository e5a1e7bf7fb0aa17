"""What the range of an archive is called in its text, for those who write it and for those who read an engine's error."""

from __future__ import annotations

from typing import Final

NODE: Final = "sizes_out_of_range"
"""How the names of the statements begin that fail out of the range."""
PROPERTY: Final = "t2n_sizes"
"""The range, in the properties of an archive."""
