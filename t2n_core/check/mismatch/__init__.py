"""Causes of a mismatch that can be named: decisions on sizes, inputs that make NaN, and rounding."""
