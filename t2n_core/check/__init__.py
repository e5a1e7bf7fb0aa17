"""Tolerances, comparisons, outcomes and parity checks; numpy only, no torch."""
