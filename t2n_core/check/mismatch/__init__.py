"""Causes of a mismatch that can be told: decisions on sizes, inputs that make NaN, and rounding."""
