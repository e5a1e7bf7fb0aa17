"""Operators of a captured graph in halves, by plan."""
