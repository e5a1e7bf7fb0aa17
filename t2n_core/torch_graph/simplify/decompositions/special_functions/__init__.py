"""Decompositions of special functions, computed in float64."""
