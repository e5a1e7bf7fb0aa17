"""Operators of a captured graph in float16, by plan."""
