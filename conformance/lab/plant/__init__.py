"""Planted faults, and how many of them the checks find."""
