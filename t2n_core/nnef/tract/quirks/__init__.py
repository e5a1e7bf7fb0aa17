"""Errata of releases: quirks, which the emitter repairs (`table.py`), and hazards, which are refused (`hazards.py`)."""
