"""Tolerances, comparisons, outcomes and parity checks."""
