"""Causes of a mismatch that can be identified: decisions on sizes, inputs that lead to NaN, and rounding."""
