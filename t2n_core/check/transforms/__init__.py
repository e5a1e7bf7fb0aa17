"""Checks of archives after transforms of the engine: `check.py` is the entry point."""
