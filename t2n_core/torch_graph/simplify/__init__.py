"""Rewriting of the captured graph before it is lowered."""
