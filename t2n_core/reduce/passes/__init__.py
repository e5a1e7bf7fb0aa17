"""Passes of a reduction. Each takes the state, and makes the program smaller if that keeps the failure."""
