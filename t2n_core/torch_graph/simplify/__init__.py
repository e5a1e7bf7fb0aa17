"""Simplification of the captured graph before it is lowered."""
